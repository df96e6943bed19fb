"""Times as the API writes them."""

from datetime import UTC, datetime, timedelta, timezone

from dra_driver.api.meta_v1 import render_time


def test_a_time_is_in_utc_and_in_whole_seconds() -> None:
    moment = datetime(2026, 1, 31, 12, 0, 0, 999_999, tzinfo=UTC)
    assert render_time(moment) == "2026-01-31T12:00:00Z"
    assert render_time(moment.astimezone(timezone(timedelta(hours=8)))) == "2026-01-31T12:00:00Z"
