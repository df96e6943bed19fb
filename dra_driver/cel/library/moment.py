"""Timestamps and durations: reading, printing, parts, time zones."""

import re
from collections.abc import Callable, Hashable
from datetime import UTC, datetime, tzinfo
from decimal import Decimal
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from dra_driver.cel.error import Fault
from dra_driver.cel.function import Library, Overload
from dra_driver.cel.library.civil import CivilTime, civil_at, offset_at, wrap
from dra_driver.cel.library.standard import check_timestamp
from dra_driver.cel.type import DURATION, INT, STRING, TIMESTAMP
from dra_driver.cel.value import INT_MAX, INT_MIN, Duration, Timestamp, Value

MOMENTS: Final = Library()
SECOND: Final = 10**9
_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
}
_PART: Final = re.compile(r"([0-9]*)(?:(\.)([0-9]*))?([^0-9.]+)")
_TIMESTAMP: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?"
    r"(?:(Z)|([+-])([0-9]{2}):([0-9]{2}))"
)
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,400}")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_DIGITS: Final = 25


def parse_duration(text: str) -> int:
    """Give the nanoseconds of `1h30m0.5s`. Raises a fault."""
    fault = Fault("type conversion error from 'string' to 'google.protobuf.Duration'")
    body = text[1:] if text[:1] in ("-", "+") else text
    if body == "0":
        return 0
    if not body:
        raise fault
    total = 0
    position = 0
    while position < len(body):
        match = _PART.match(body, position)
        if match is None:
            raise fault
        whole, dot, fraction, unit = match[1], match[2], match[3] or "", match[4]
        if (not whole and not fraction) or unit not in _UNITS or len(whole.lstrip("0")) > _MAX_DIGITS:
            raise fault
        del dot
        total += int(whole or "0") * _UNITS[unit] + _fraction(fraction, _UNITS[unit])
        position = match.end()
        if total > INT_MAX + 1:
            raise fault
    if text[0] == "-":
        return -total
    if total > INT_MAX:
        raise fault
    return total


def _fraction(digits: str, unit: int) -> int:
    """Give the part of a unit that the digits after a point mean, in the precision of Go."""
    value = 0
    scale = 1.0
    for digit in digits:
        if value > (INT_MAX // 10):
            break
        following = value * 10 + int(digit)
        if following > INT_MAX:
            break
        value = following
        scale *= 10
    return int(float(value) * (float(unit) / scale)) if value else 0


def render_duration(nanos: int) -> str:
    """Print seconds with the fewest digits."""
    whole = abs(nanos) // SECOND
    seconds = float(whole) + float(abs(nanos) % SECOND) / 1e9
    text = format(Decimal(repr(seconds)), "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return f"{'-' if nanos < 0 else ''}{text}s"


def parse_timestamp(text: str) -> Timestamp:
    """Read RFC 3339. Raises a fault."""
    fault = Fault("type conversion error from 'string' to 'google.protobuf.Timestamp'")
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        raise fault
    year, month, day, hour, minute, second = (int(match[place]) for place in range(1, 7))
    zone = 0
    if match[8] is None:
        hours, minutes = int(match[10]), int(match[11])
        if hours > 24 or minutes >= 60:  # noqa: PLR2004 - the parts of an offset
            raise fault
        zone = (hours * 60 + minutes) * (-60 if match[9] == "-" else 60)
    if hour > 23 or minute > 59 or second > 59:  # noqa: PLR2004 - the parts of a day
        raise fault
    if year == 0:
        raise Fault("timestamp overflow")
    try:
        date = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        raise fault from None
    seconds = round((date - _EPOCH).total_seconds()) - zone
    nanos = seconds * SECOND + int((match[7] or "0")[:9].ljust(9, "0"))
    return check_timestamp(nanos, zone, None if match[8] else _place(zone))


def _place(zone: int) -> Hashable:
    """Give what tells a zone apart as Go does: it keeps one for each whole hour that is in use, and makes others."""
    hours, rest = divmod(zone, 3600)
    return hours if not rest and -12 <= hours <= 14 else object()  # noqa: PLR2004 - the hours in use


def render_timestamp(value: Timestamp) -> str:
    """Print RFC 3339 with the fraction that is needed; years that it does not know are printed as they are."""
    date = civil_at(value.nanos // SECOND + value.zone)
    year = f"{'-' if date.year < 0 else ''}{abs(date.year):04d}"
    text = f"{year}-{date.month:02d}-{date.day:02d}T{date.hour:02d}:{date.minute:02d}:{date.second:02d}"
    fraction = f"{value.nanos % SECOND:09d}".rstrip("0")
    text += f".{fraction}" if fraction else ""
    if value.zone == 0:
        return text + "Z"
    minutes = abs(value.zone) // 60
    return f"{text}{'-' if value.zone < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"


def _in_utc(value: Timestamp) -> CivilTime:
    return civil_at(value.nanos // SECOND)


def _in_zone(value: Timestamp, zone: str) -> CivilTime:
    """Give the date and time of day in a zone: a name, or `hours:minutes`."""
    second = wrap(value.nanos // SECOND)
    hours, colon, minutes = zone.partition(":")
    offset = _read_offset(zone, hours, minutes) if colon else offset_at(second, _zone(zone))
    return civil_at(second + offset)


def _read_offset(zone: str, hours: str, minutes: str) -> int:
    """Give the seconds of `+01:30`. Numbers of any size wrap as numbers of 64 bits do."""
    if not _WHOLE.fullmatch(hours) or not _WHOLE.fullmatch(minutes):
        raise Fault(f"unknown time zone {zone!r}")
    whole, part = int(hours), int(minutes)
    if not INT_MIN <= whole <= INT_MAX or not INT_MIN <= part <= INT_MAX:
        raise Fault(f"unknown time zone {zone!r}")
    offset = wrap(whole * 60 + (-part if zone[0] == "-" else part))
    nanos = wrap(offset * 60 * SECOND)
    return (abs(nanos) // SECOND) * (-1 if nanos < 0 else 1)


def _zone(name: str) -> tzinfo:
    if name in ("", "UTC", "Local"):
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise Fault(f"unknown time zone {name!r}") from None


_PARTS: Final[dict[str, tuple[str, Callable[[CivilTime], int]]]] = {
    "getFullYear": ("year", lambda date: date.year),
    "getMonth": ("month", lambda date: date.month - 1),
    "getDayOfYear": ("day_of_year", lambda date: date.day_of_year - 1),
    "getDayOfMonth": ("day_of_month", lambda date: date.day - 1),
    "getDate": ("day_of_month_1_based", lambda date: date.day),
    "getDayOfWeek": ("day_of_week", lambda date: date.weekday),
    "getHours": ("hours", lambda date: date.hour),
    "getMinutes": ("minutes", lambda date: date.minute),
    "getSeconds": ("seconds", lambda date: date.second),
}
_SPANS: Final = {
    "getHours": ("hours", 3600 * SECOND),
    "getMinutes": ("minutes", 60 * SECOND),
    "getSeconds": ("seconds", SECOND),
    "getMilliseconds": ("milliseconds", 10**6),
}


def _add_part(name: str, id_: str, part: Callable[[CivilTime], int]) -> None:
    def plain(value: Timestamp) -> int:
        return part(_in_utc(value))

    def zoned(value: Timestamp, zone: str) -> int:
        return part(_in_zone(value, zone))

    _add_timestamp(name, id_, plain, zoned)


def _add_timestamp(name: str, id_: str, plain: Callable[..., Value], zoned: Callable[..., Value]) -> None:
    MOMENTS.add(
        name,
        Overload(f"timestamp_to_{id_}", (TIMESTAMP,), INT, member=True, run=plain),
        Overload(f"timestamp_to_{id_}_with_tz", (TIMESTAMP, STRING), INT, member=True, run=zoned),
    )


def _add_span(name: str, id_: str, unit: int) -> None:
    def run(value: Duration) -> int:
        whole = abs(value.nanos) // unit
        return -whole if value.nanos < 0 else whole

    MOMENTS.add(name, Overload(f"duration_to_{id_}", (DURATION,), INT, member=True, run=run))


def _milliseconds(value: Timestamp) -> int:
    return value.nanos % SECOND // 10**6


def _milliseconds_in(value: Timestamp, zone: str) -> int:
    _in_zone(value, zone)
    return _milliseconds(value)


for _name, (_id, _part) in _PARTS.items():
    _add_part(_name, _id, _part)
_add_timestamp("getMilliseconds", "milliseconds", _milliseconds, _milliseconds_in)
for _name, (_id, _unit) in _SPANS.items():
    _add_span(_name, _id, _unit)
