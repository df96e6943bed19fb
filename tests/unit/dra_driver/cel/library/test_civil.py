"""The calendar beyond the years that Python knows."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_driver.cel import DeviceInput, compile_attribute
from dra_driver.cel.library.civil import civil_at, offset_at, wrap

AFTER = "google.protobuf.Timestamp{seconds: 253402300800}"
BEFORE = "google.protobuf.Timestamp{seconds: -62135596801}"
OLD = "google.protobuf.Timestamp{seconds: -62198755200}"
LAST = "google.protobuf.Timestamp{seconds: 9223372036854775807}"
VALUES = {
    "the_year_after_the_last_of_four_digits": (f"{AFTER}.getFullYear()", 10000),
    "its_weekday": (f"{AFTER}.getDayOfWeek()", 6),
    "its_hour_in_a_zone": (f"{AFTER}.getHours('Europe/Berlin')", 1),
    "its_text": (f"string({AFTER})", "10000-01-01T00:00:00Z"),
    "the_year_before_the_first": (f"{BEFORE}.getFullYear()", 0),
    "its_month": (f"{BEFORE}.getMonth()", 11),
    "its_last_day": (f"{BEFORE}.getDayOfYear()", 365),
    "its_text_too": (f"string({BEFORE})", "0000-12-31T23:59:59Z"),
    "a_year_before_the_year_zero": (
        "string(google.protobuf.Timestamp{seconds: -62198755200})",
        "-0001-01-01T00:00:00Z",
    ),
    "a_zone_that_leads_into_the_year_before": ("timestamp('0001-01-01T00:00:00Z').getFullYear('-02:30')", 0),
    "the_last_second_that_64_bits_count": (f"string({LAST})", "292277026596-12-04T15:30:07Z"),
    "which_comes_before_all_others": (f"{LAST} < timestamp(0)", True),
    "and_is_a_number_again": (f"int({LAST})", 2**63 - 1),
    "the_first_wraps": ("google.protobuf.Timestamp{seconds: -9223372036854775808}.getFullYear()", 292277026596),
    "an_offset_of_many_minutes": ("timestamp(0).getHours('99:99')", 4),
    "an_offset_to_the_west": ("timestamp(0).getMinutes('-1:5')", 55),
}


@pytest.mark.parametrize(("expression", "value"), VALUES.values(), ids=VALUES)
def test_a_time_of_any_year_has_parts_and_a_text(expression: str, value: object) -> None:
    assert compile_attribute(expression).evaluate(DeviceInput("d")) == value


@given(st.datetimes(timezones=st.just(UTC)))
def test_the_calendar_is_that_of_python_where_that_has_one(moment: datetime) -> None:
    moment = moment.replace(microsecond=0)

    date = civil_at(round((moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()))

    assert (date.year, date.month, date.day) == (moment.year, moment.month, moment.day)
    assert (date.hour, date.minute, date.second) == (moment.hour, moment.minute, moment.second)
    assert (date.weekday, date.day_of_year) == (moment.isoweekday() % 7, moment.timetuple().tm_yday)


@given(st.integers(-(2**62), 2**62))
def test_the_calendar_repeats_every_four_hundred_years(second: int) -> None:
    one, other = civil_at(second), civil_at(second + 146_097 * 86_400)

    assert (one.month, one.day, one.weekday, one.hour) == (other.month, other.day, other.weekday, other.hour)
    assert other.year == one.year + 400


@pytest.mark.parametrize(
    ("year", "month", "offset"), [(2024, 7, 7200), (2024, 1, 3600), (1800, 1, 3208)], ids=["summer", "winter", "before"]
)
def test_a_zone_has_its_offset_of_the_same_day_in_any_year(year: int, month: int, offset: int) -> None:
    berlin = ZoneInfo("Europe/Berlin")
    second = round((datetime(year, month, 5, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds())
    far = 1_000_000 * 146_097 * 86_400 * (-1 if year < 1900 else 1)

    assert offset_at(second, berlin) == offset_at(second + far, berlin) == offset


def test_numbers_wrap_as_64_bits_do() -> None:
    assert (wrap(2**63), wrap(-(2**63) - 1), wrap(5)) == (-(2**63), 2**63 - 1, 5)
