"""The calendar: date and time of day of any second that 64 bits count, in any time zone.

Python's own calendar has the years 1 to 9999. The Gregorian one repeats every 400 years, weekdays included, so that
other years are looked up there.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

DAY: Final = 86_400
_CYCLE_YEARS: Final = 400
_CYCLE: Final = 146_097 * DAY
_BASE: Final = datetime(2000, 1, 1, tzinfo=UTC)
_BASE_SECOND: Final = 946_684_800
# Go counts the seconds from March of a year so long ago that 64 bits without a sign hold all that it needs.
_GO_ZERO: Final = (730_692_556 * 146_097 + 306) * DAY + 62_135_596_800
# Years whose zones are looked up as they are: rules repeat after, and none were before.
_FIRST: Final = -36_000_000_000
_LAST: Final = 200_000_000_000


@dataclass(frozen=True, slots=True)
class CivilTime:
    """A date and a time of day. Months and days count from 1, `day_of_year` too; `weekday` is 0 on Sundays."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int
    weekday: int
    day_of_year: int


def wrap(number: int) -> int:
    """Give what 64 bits with a sign keep of a number."""
    return (number + 2**63) % 2**64 - 2**63


def civil_at(second: int) -> CivilTime:
    """Give the date and time of day of a second since 1970. What 64 bits do not count wraps, as it does in Go."""
    second = (second + _GO_ZERO) % 2**64 - _GO_ZERO
    cycles, rest = divmod(second - _BASE_SECOND, _CYCLE)
    moment = _BASE + timedelta(seconds=rest)
    return CivilTime(
        moment.year + cycles * _CYCLE_YEARS,
        moment.month,
        moment.day,
        moment.hour,
        moment.minute,
        moment.second,
        moment.isoweekday() % 7,
        moment.timetuple().tm_yday,
    )


def offset_at(second: int, zone: tzinfo) -> int:
    """Give the offset of a zone at a second since 1970, in seconds."""
    if not _FIRST <= second <= _LAST:
        nearest = _FIRST if second < _FIRST else _LAST - _CYCLE
        second = nearest + (second - nearest) % _CYCLE
    offset = (_BASE + timedelta(seconds=second - _BASE_SECOND)).astimezone(zone).utcoffset()
    return 0 if offset is None else round(offset.total_seconds())
