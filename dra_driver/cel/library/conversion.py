"""Conversions between the standard types, as Go reads and prints them."""

import ipaddress
import re
from decimal import Decimal
from typing import Final

from dra_driver.cel.error import Fault
from dra_driver.cel.function import Library, Overload
from dra_driver.cel.library.civil import wrap
from dra_driver.cel.library.moment import parse_duration, parse_timestamp, render_duration, render_timestamp
from dra_driver.cel.library.standard import check_timestamp
from dra_driver.cel.type import BOOL, BYTES, CIDR, DOUBLE, DURATION, INT, IP, STRING, TIMESTAMP, UINT, Type
from dra_driver.cel.value import Cidr, Duration, Timestamp, TypeValue, Uint, Value, check_int, check_uint, type_name

CONVERSIONS: Final = Library()
_TRUE: Final = frozenset(("1", "t", "T", "TRUE", "true", "True"))
_FALSE: Final = frozenset(("0", "f", "F", "FALSE", "false", "False"))
_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_HEXADECIMAL: Final = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+")
_SPECIAL: Final = re.compile(r"[+-]?inf(?:inity)?|nan", re.IGNORECASE)
_MAX_DIGITS: Final = 400
# From this exponent on `%g` prints one; below -4 too.
_FIXED_BELOW: Final = 6


def _fault(value: Value, target: str) -> Fault:
    return Fault(f"type conversion error from '{type_name(value)}' to '{target}'")


def text_to_bool(text: str) -> bool:
    """`bool("true")`."""
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise _fault(text, "bool")


def text_to_double(text: str) -> float:
    """`double("1.5")`."""
    try:
        if _DECIMAL.fullmatch(text) or _SPECIAL.fullmatch(text):
            value = float(text)
        elif _HEXADECIMAL.fullmatch(text):
            value = float.fromhex(text)
        else:
            raise _fault(text, "double")
    except OverflowError:
        raise _fault(text, "double") from None
    if value in (float("inf"), float("-inf")) and not _SPECIAL.fullmatch(text):
        raise _fault(text, "double")
    return value


def text_to_int(text: str) -> int:
    """`int("12")`."""
    if re.fullmatch(r"[+-]?[0-9]+", text) and (value := _whole(text)) is not None and -(2**63) <= value < 2**63:
        return value
    raise _fault(text, "int")


def text_to_uint(text: str) -> Uint:
    """`uint("12")`."""
    if re.fullmatch(r"[0-9]+", text) and (value := _whole(text)) is not None and value < 2**64:
        return Uint(value)
    raise _fault(text, "uint")


def _whole(text: str) -> int | None:
    digits = text.lstrip("+-").lstrip("0") or "0"
    if len(digits) > _MAX_DIGITS:
        return None
    return -int(digits) if text[0] == "-" else int(digits)


def double_to_int(value: float) -> int:
    """`int(1.9)`, which is 1."""
    if not -(2.0**63) < value < 2.0**63:
        raise Fault("integer overflow")
    return int(value)


def double_to_uint(value: float) -> Uint:
    """`uint(1.9)`."""
    if not 0 <= value < 2.0**64:
        raise Fault("unsigned integer overflow")
    return Uint(int(value))


def render_double(value: float) -> str:
    """Print a double with the fewest digits that give it back, as `%g` does."""
    if value != value:  # noqa: PLR0124 - NaN
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "+Inf" if value > 0 else "-Inf"
    if value == 0:
        return "-0" if str(value)[0] == "-" else "0"
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    text = "".join(map(str, digits)).rstrip("0")
    point = len(digits) + int(exponent) - 1
    prefix = "-" if sign else ""
    if -5 < point < _FIXED_BELOW:  # noqa: PLR2004 - the exponent below which Go prints one
        return prefix + _render_fixed(text, point)
    mantissa = text[0] + ("." + text[1:] if len(text) > 1 else "")
    return f"{prefix}{mantissa}e{'-' if point < 0 else '+'}{abs(point):02d}"


def _render_fixed(digits: str, point: int) -> str:
    if point < 0:
        return "0." + "0" * (-point - 1) + digits
    digits = digits.ljust(point + 1, "0")
    return digits[: point + 1] + ("." + digits[point + 1 :] if len(digits) > point + 1 else "")


def bytes_to_text(value: bytes) -> str:
    """`string(b"abc")`."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise Fault("invalid UTF-8 in bytes, cannot convert to string") from None


def to_text(value: Value) -> str:
    """`string(value)`, for any type that has one."""
    convert = _TEXTS.get(type(value))
    if convert is None:
        raise _fault(value, "string")
    return convert(value)  # type: ignore[no-any-return, operator]


_TEXTS: Final[dict[type, object]] = {
    str: lambda value: value,
    bool: lambda value: "true" if value else "false",
    bytes: bytes_to_text,
    float: render_double,
    Duration: lambda value: render_duration(value.nanos),
    Timestamp: render_timestamp,
    int: str,
    Uint: lambda value: str(int(value)),
    TypeValue: lambda value: value.name,
    ipaddress.IPv4Address: str,
    ipaddress.IPv6Address: str,
    Cidr: lambda value: f"{value.address}/{value.bits}",
}


def _identity(value: Value) -> Value:
    return value


_TABLE: Final[tuple[tuple[str, str, Type, Type, object], ...]] = (
    ("bool", "bool_to_bool", BOOL, BOOL, _identity),
    ("bool", "string_to_bool", STRING, BOOL, text_to_bool),
    ("bytes", "bytes_to_bytes", BYTES, BYTES, _identity),
    ("bytes", "string_to_bytes", STRING, BYTES, str.encode),
    ("double", "double_to_double", DOUBLE, DOUBLE, _identity),
    ("double", "int64_to_double", INT, DOUBLE, float),
    ("double", "string_to_double", STRING, DOUBLE, text_to_double),
    ("double", "uint64_to_double", UINT, DOUBLE, float),
    ("duration", "duration_to_duration", DURATION, DURATION, _identity),
    ("duration", "string_to_duration", STRING, DURATION, lambda value: Duration(parse_duration(value))),
    ("int", "int64_to_int64", INT, INT, _identity),
    ("int", "double_to_int64", DOUBLE, INT, double_to_int),
    ("int", "duration_to_int64", DURATION, INT, lambda value: value.nanos),
    ("int", "string_to_int64", STRING, INT, text_to_int),
    ("int", "timestamp_to_int64", TIMESTAMP, INT, lambda value: wrap(value.nanos // 10**9)),
    ("int", "uint64_to_int64", UINT, INT, lambda value: check_int(int(value))),
    ("string", "string_to_string", STRING, STRING, _identity),
    ("string", "bool_to_string", BOOL, STRING, to_text),
    ("string", "bytes_to_string", BYTES, STRING, bytes_to_text),
    ("string", "double_to_string", DOUBLE, STRING, render_double),
    ("string", "duration_to_string", DURATION, STRING, to_text),
    ("string", "int64_to_string", INT, STRING, str),
    ("string", "timestamp_to_string", TIMESTAMP, STRING, to_text),
    ("string", "uint64_to_string", UINT, STRING, to_text),
    ("string", "ip_to_string", IP, STRING, to_text),
    ("string", "cidr_to_string", CIDR, STRING, to_text),
    ("timestamp", "timestamp_to_timestamp", TIMESTAMP, TIMESTAMP, _identity),
    ("timestamp", "int64_to_timestamp", INT, TIMESTAMP, lambda value: check_timestamp(value * 10**9)),
    ("timestamp", "string_to_timestamp", STRING, TIMESTAMP, parse_timestamp),
    ("uint", "uint64_to_uint64", UINT, UINT, _identity),
    ("uint", "double_to_uint64", DOUBLE, UINT, double_to_uint),
    ("uint", "int64_to_uint64", INT, UINT, check_uint),
    ("uint", "string_to_uint64", STRING, UINT, text_to_uint),
)
for _name, _id, _from, _to, _run in _TABLE:
    CONVERSIONS.add(_name, Overload(_id, (_from,), _to, run=_run))  # type: ignore[arg-type]

FOLDED: Final = frozenset((*(row[0] for row in _TABLE), "dyn", "type"))
