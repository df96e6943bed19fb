"""`google.protobuf.Any`: a message in its binary form, with its name. It is the value that is in it."""

import struct
from collections.abc import Callable
from typing import Final

from dra_driver.cel.error import Fault
from dra_driver.cel.library.civil import wrap
from dra_driver.cel.record import Empty
from dra_driver.cel.value import INT_MAX, INT_MIN, Duration, Map, Timestamp, Uint, Value
from dra_driver.cel.wire import Field, Wire, read_fields

_SECOND: Final = 10**9
_YEAR_1970: Final = 62_135_596_800
_MAX_DEPTH: Final = 100
ANY: Final = "google.protobuf.Any"


def unpack(url: str, message: bytes) -> Value:
    """Give the value of a message; what stands before the last slash of its name does not count. Raises a fault."""
    name = url.rpartition("/")[2]
    read = _READERS.get(name)
    if read is None:
        raise Fault(f"no message {name!r} can be unpacked")
    try:
        return read(message, 0)
    except (ValueError, RecursionError):
        raise Fault(f"these bytes are no {name}") from None


def span_to_duration(seconds: int, nanos: int) -> Duration:
    """Make a duration. What is out of range becomes the longest there is."""
    whole = seconds * _SECOND
    if INT_MIN <= whole <= INT_MAX and INT_MIN <= whole + nanos <= INT_MAX:
        return Duration(whole + nanos)
    return Duration(INT_MIN if seconds < 0 else INT_MAX)


def span_to_timestamp(seconds: int, nanos: int) -> Timestamp:
    """Make a timestamp, of any year. Go counts from the year 1, so that the last ones come before all others."""
    return Timestamp((wrap(seconds + _YEAR_1970) - _YEAR_1970) * _SECOND + nanos)


def _signed(number: int, bits: int) -> int:
    number &= 2**bits - 1
    return number - 2**bits if number >> (bits - 1) else number


def _text(field: Field) -> str:
    assert isinstance(field.content, bytes)  # noqa: S101 - the caller looked
    return field.content.decode()


def _wrapper(wire: Wire, zero: Value, convert: Callable[[Field], Value]) -> Callable[[bytes, int], Value]:
    def read(message: bytes, _: int) -> Value:
        value = zero
        for field in read_fields(message):
            if field.number == 1 and field.wire is wire:
                value = convert(field)
        return value

    return read


def _integer(convert: Callable[[int], Value]) -> Callable[[Field], Value]:
    def read(field: Field) -> Value:
        assert isinstance(field.content, int)  # noqa: S101 - the caller looked
        return convert(field.content)

    return read


def _double(field: Field) -> float:
    assert isinstance(field.content, bytes)  # noqa: S101 - the caller looked
    return float(struct.unpack("<d" if field.wire is Wire.FIXED64 else "<f", field.content)[0])


def _read_span(message: bytes) -> tuple[int, int]:
    seconds = nanos = 0
    for field in read_fields(message):
        if field.wire is Wire.VARINT and isinstance(field.content, int):
            if field.number == 1:
                seconds = _signed(field.content, 64)
            elif field.number == 2:  # noqa: PLR2004 - its number
                nanos = _signed(field.content, 32)
    return seconds, nanos


def _read_timestamp(message: bytes, _: int) -> Timestamp:
    return span_to_timestamp(*_read_span(message))


def _read_empty(message: bytes, _: int) -> Empty:
    return Empty(b"".join(field.raw for field in read_fields(message)))


def _read_any(message: bytes, depth: int) -> Value:
    url, content = "", b""
    for field in read_fields(message):
        if field.wire is Wire.BYTES and isinstance(field.content, bytes):
            if field.number == 1:
                url = _text(field)
            elif field.number == 2:  # noqa: PLR2004 - its number
                content = field.content
    if depth > _MAX_DEPTH:
        raise ValueError("nested too deeply")
    read = _READERS.get(url.rpartition("/")[2])
    if read is None:
        raise ValueError("an unknown message")
    return read(content, depth + 1)


def _read_list(message: bytes, depth: int) -> tuple[Value, ...]:
    return tuple(
        _read_value(field.content, depth + 1)
        for field in read_fields(message)
        if field.number == 1 and isinstance(field.content, bytes) and field.wire is Wire.BYTES
    )


def _read_struct(message: bytes, depth: int) -> Map:
    pairs = []
    for field in read_fields(message):
        if field.number == 1 and field.wire is Wire.BYTES and isinstance(field.content, bytes):
            key, value = "", b""
            for part in read_fields(field.content):
                if part.wire is Wire.BYTES and isinstance(part.content, bytes):
                    if part.number == 1:
                        key = _text(part)
                    elif part.number == 2:  # noqa: PLR2004 - its number
                        value += part.content
            pairs.append((key, _read_value(value, depth + 1)))
    return Map.of(pairs)


def _read_value(message: bytes, depth: int) -> Value:
    """Read a value of JSON: the last of its fields counts, and messages of one field are joined."""
    if depth > _MAX_DEPTH:
        raise ValueError("nested too deeply")
    value: Value = None
    last, joined = 0, b""
    for field in read_fields(message):
        wire, read = _JSON.get(field.number, (Wire.END, _read_nothing))
        if field.wire is not wire:
            continue
        if isinstance(field.content, bytes) and field.number in _MESSAGES:
            read(field, field.content, depth + 1)
            joined = joined + field.content if last == field.number else field.content
        value = read(field, joined, depth + 1)
        last = field.number
    return value


def _read_nothing(_: Field, __: bytes, ___: int) -> Value:
    return None


_JSON: Final[dict[int, tuple[Wire, Callable[[Field, bytes, int], Value]]]] = {
    1: (Wire.VARINT, _read_nothing),
    2: (Wire.FIXED64, lambda field, _, __: _double(field)),
    3: (Wire.BYTES, lambda field, _, __: _text(field)),
    4: (Wire.VARINT, lambda field, _, __: bool(field.content)),
    5: (Wire.BYTES, lambda _, joined, depth: _read_struct(joined, depth)),
    6: (Wire.BYTES, lambda _, joined, depth: _read_list(joined, depth)),
}
_MESSAGES: Final = (5, 6)
_READERS: Final[dict[str, Callable[[bytes, int], Value]]] = {
    ANY: _read_any,
    "google.protobuf.BoolValue": _wrapper(Wire.VARINT, False, _integer(bool)),  # noqa: FBT003 - the value
    "google.protobuf.BytesValue": _wrapper(Wire.BYTES, b"", lambda field: field.content),
    "google.protobuf.DoubleValue": _wrapper(Wire.FIXED64, 0.0, _double),
    "google.protobuf.FloatValue": _wrapper(Wire.FIXED32, 0.0, _double),
    "google.protobuf.Int32Value": _wrapper(Wire.VARINT, 0, _integer(lambda number: _signed(number, 32))),
    "google.protobuf.Int64Value": _wrapper(Wire.VARINT, 0, _integer(lambda number: _signed(number, 64))),
    "google.protobuf.StringValue": _wrapper(Wire.BYTES, "", _text),
    "google.protobuf.UInt32Value": _wrapper(Wire.VARINT, Uint(0), _integer(lambda number: Uint(number % 2**32))),
    "google.protobuf.UInt64Value": _wrapper(Wire.VARINT, Uint(0), _integer(Uint)),
    "google.protobuf.Duration": lambda message, _: span_to_duration(*_read_span(message)),
    "google.protobuf.Timestamp": _read_timestamp,
    "google.protobuf.Empty": _read_empty,
    "google.protobuf.ListValue": _read_list,
    "google.protobuf.Struct": _read_struct,
    "google.protobuf.Value": _read_value,
}
