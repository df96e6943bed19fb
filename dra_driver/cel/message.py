"""The messages that an expression can make: those of Protocol Buffers that stand for values of the language.

`google.protobuf.Int64Value{value: 1}` is 1, and what is left out is the zero of its type. A `Struct` is a map, a
`ListValue` a list, and what is in them becomes JSON: whole numbers are doubles there.
"""

import base64
import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Final

from dra_driver.api.quantity import Quantity
from dra_driver.api.semver import Semver
from dra_driver.cel import type as t
from dra_driver.cel.environment import DEVICE, Environment
from dra_driver.cel.error import Fault
from dra_driver.cel.library.conversion import to_text
from dra_driver.cel.library.uri import Url
from dra_driver.cel.packed import span_to_duration, span_to_timestamp, unpack
from dra_driver.cel.record import RECORDS, Empty, Entry, record_to_map
from dra_driver.cel.type import Type
from dra_driver.cel.value import (
    LISTS,
    MAPS,
    Cidr,
    Duration,
    Map,
    Optional,
    Timestamp,
    Uint,
    Value,
    type_name,
)

Fields = dict[str, Value]
_JSON_EXACT: Final = 2**53 - 1


@dataclass(frozen=True, slots=True)
class Message:
    """A message: the type of its value, its fields, and how the value is made of those that are given."""

    type: Type
    fields: Mapping[str, Type]
    build: Callable[[Fields], Value]


def find_message(name: str, environment: Environment) -> Message | None:
    """Give the message of a name. The device has a type, but none can be made."""
    if name == DEVICE.name:
        return Message(DEVICE, environment.fields, _unknown(name))
    return _MESSAGES.get(name)


def _unknown(name: str) -> Callable[[Fields], Value]:
    def build(_: Fields) -> Value:
        raise Fault(f"unknown type {name!r}")

    return build


def _unwrapped(value: Value) -> Value:
    while type(value) is Optional and value.present:
        value = value.value
    return value


def _take(value: Value, kind: type, what: str) -> Value:
    value = _unwrapped(value)
    if type(value) is not kind:
        raise Fault(f"a {type_name(value)} is no {what}")
    return value


def _take_text(value: Value) -> str:
    """Take a text, or one of Kubernetes' values that have one."""
    value = _unwrapped(value)
    if type(value) is Cidr:
        return to_text(value)
    return str(value) if isinstance(value, _WITH_TEXT) else _take(value, str, "string")


def _take_bytes(value: Value) -> bytes:
    """Take bytes, or a list of them as numbers."""
    value = _unwrapped(value)
    if not isinstance(value, LISTS):
        return _take(value, bytes, "bytes")  # type: ignore[no-any-return]
    numbers = [_take(each, Uint, "byte") for each in value]
    if any(number > 255 for number in numbers):  # noqa: PLR2004 - the largest byte
        raise Fault("unsigned integer overflow")
    return bytes(numbers)


_WITH_TEXT: Final = (Quantity, Semver, Url, IPv4Address, IPv6Address)


def _take_int32(value: Value) -> int:
    whole: int = _take(value, int, "int of 32 bits")
    if not -(2**31) <= whole < 2**31:
        raise Fault("integer overflow")
    return whole


def _take_null(value: Value) -> None:
    """Take the number of the enumeration that has one value."""
    _take_int32(value)


def _take_uint32(value: Value) -> Uint:
    whole: Uint = _take(value, Uint, "uint of 32 bits")
    if whole >= 2**32:
        raise Fault("unsigned integer overflow")
    return whole


def _take_float(value: Value) -> float:
    double: float = _take(value, float, "float")
    try:
        return float(struct.unpack("f", struct.pack("f", double))[0])
    except OverflowError:
        return float("inf") if double > 0 else float("-inf")


def _plain(kind: type) -> Callable[[Value], Value]:
    return lambda value: _take(value, kind, kind.__name__)


def _wrapper(type_: Type, zero: Value, take: Callable[[Value], Value]) -> Message:
    def build(fields: Fields) -> Value:
        return take(fields["value"]) if "value" in fields else zero

    return Message(t.wrapper_of(type_), {"value": type_}, build)


def _take_span(fields: Fields) -> tuple[int, int]:
    return _take(fields.get("seconds", 0), int, "int"), _take_int32(fields.get("nanos", 0))


def build_duration(fields: Fields) -> Duration:
    """Make a duration. What is out of range becomes the longest there is."""
    return span_to_duration(*_take_span(fields))


def build_timestamp(fields: Fields) -> Timestamp:
    """Make a timestamp, of any year."""
    return span_to_timestamp(*_take_span(fields))


def to_json(value: Value) -> Value:  # noqa: PLR0911 - a case of each type
    """Give what JSON makes of a value."""
    value = _unwrapped(value)
    match value:
        case None | bool() | float() | str():
            return value
        case int():
            return float(value) if -_JSON_EXACT <= value <= _JSON_EXACT else str(int(value))
        case bytes():
            return base64.b64encode(value).decode()
        case Duration() | Timestamp():
            return to_text(value)
        case _ if isinstance(value, LISTS):
            return _to_list(value)
        case _ if isinstance(value, MAPS):
            return _to_struct(value)
        case _ if isinstance(value, RECORDS):
            return _record_to_json(value)
        case _:
            raise Fault(f"a {type_name(value)} is no value of JSON")


def _to_list(value: Value) -> tuple[Value, ...]:
    value = _unwrapped(value)
    if not isinstance(value, LISTS):
        raise Fault(f"a {type_name(value)} is no list")
    return tuple(map(to_json, value))


def _to_list_or_none(value: Value) -> tuple[Value, ...]:
    """Make a list; a map without entries is an empty one too."""
    value = _unwrapped(value)
    return () if isinstance(value, MAPS) and not len(value) else _to_list(value)


def _to_struct(value: Value) -> Map:
    value = _unwrapped(value)
    if not isinstance(value, MAPS):
        raise Fault(f"a {type_name(value)} is no map")
    return Map.of([(_take_text(key), to_json(each)) for key, each in value.items()])


def _record_to_json(record: Value) -> Map:
    made = record_to_map(record)
    if not _is_finite(made):
        raise Fault("a number that is none of JSON")
    return made


def _is_finite(value: Value) -> bool:
    if isinstance(value, LISTS):
        return all(map(_is_finite, value))
    if isinstance(value, MAPS):
        return all(_is_finite(each) for _, each in value.items())
    return type(value) is not float or math.isfinite(value)


def _build_any(fields: Fields) -> Value:
    url = _take_text(fields.get("type_url", ""))
    return unpack(url, _take_bytes(fields.get("value", b"")))


def _build_empty(_: Fields) -> Value:
    return Empty()


def _build_entry(fields: Fields) -> Value:
    key = _take_text(fields.get("key", ""))
    return Entry(key, to_json(fields.get("value")), has_value="value" in fields)


def _build_list(fields: Fields) -> Value:
    return _to_list(fields.get("values", ()))


def _build_struct(fields: Fields) -> Value:
    return _to_struct(fields.get("fields", Map({})))


_JSON_FIELDS: Final[dict[str, tuple[Type, Callable[[Value], Value]]]] = {
    "null_value": (t.INT, _take_null),
    "number_value": (t.DOUBLE, _plain(float)),
    "string_value": (t.STRING, _take_text),
    "bool_value": (t.BOOL, _plain(bool)),
    "struct_value": (t.map_of(t.STRING, t.DYN), _to_struct),
    "list_value": (t.list_of(t.DYN), _to_list_or_none),
}


def _build_json(fields: Fields) -> Value:
    """Make a value of JSON of the field that was given last."""
    made: Value = None
    for name, value in fields.items():
        made = _JSON_FIELDS[name][1](value)
    return made


_LIST: Final = {"values": t.list_of(t.DYN)}
_SPAN: Final = {"seconds": t.INT, "nanos": t.INT}
_MESSAGES: Final[dict[str, Message]] = {
    "google.protobuf.BoolValue": _wrapper(t.BOOL, False, _plain(bool)),  # noqa: FBT003 - the value
    "google.protobuf.BytesValue": _wrapper(t.BYTES, b"", _take_bytes),
    "google.protobuf.DoubleValue": _wrapper(t.DOUBLE, 0.0, _plain(float)),
    "google.protobuf.FloatValue": _wrapper(t.DOUBLE, 0.0, _take_float),
    "google.protobuf.Int32Value": _wrapper(t.INT, 0, _take_int32),
    "google.protobuf.Int64Value": _wrapper(t.INT, 0, _plain(int)),
    "google.protobuf.StringValue": _wrapper(t.STRING, "", _take_text),
    "google.protobuf.UInt32Value": _wrapper(t.UINT, Uint(0), _take_uint32),
    "google.protobuf.UInt64Value": _wrapper(t.UINT, Uint(0), _plain(Uint)),
    "google.protobuf.Duration": Message(t.DURATION, _SPAN, build_duration),
    "google.protobuf.Timestamp": Message(t.TIMESTAMP, _SPAN, build_timestamp),
    "google.protobuf.ListValue": Message(t.list_of(t.DYN), _LIST, _build_list),
    "google.protobuf.Struct": Message(t.map_of(t.STRING, t.DYN), {"fields": t.map_of(t.STRING, t.DYN)}, _build_struct),
    "google.protobuf.Value": Message(t.DYN, {name: type_ for name, (type_, _) in _JSON_FIELDS.items()}, _build_json),
    "google.protobuf.Any": Message(t.ANY, {"type_url": t.STRING, "value": t.BYTES}, _build_any),
    t.EMPTY.name: Message(t.EMPTY, {}, _build_empty),
    t.ENTRY.name: Message(t.ENTRY, {"key": t.STRING, "value": t.DYN}, _build_entry),
    # Types that the checker takes for messages, and that cannot be made.
    "list": Message(t.list_of(t.DYN), _LIST, _unknown("list")),
    "null_type": Message(t.NULL, {}, _unknown("null_type")),
}
