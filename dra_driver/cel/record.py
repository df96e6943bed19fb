"""Messages of Protocol Buffers that stay messages, since they stand for no other value of the language.

There are two: `google.protobuf.Empty`, and an entry of a `google.protobuf.Struct`. They have fields, are equal if
their fields are, and as the key of a map equal none but themselves.
"""

from dataclasses import dataclass
from typing import Final

from dra_driver.cel.equality import is_equal, register_equality
from dra_driver.cel.error import Fault, no_such_overload
from dra_driver.cel.value import Map, Value, register


@dataclass(frozen=True, slots=True, eq=False)
class Empty:
    """A message without fields. `unknown` is what stood in it when it was read."""

    unknown: bytes = b""

    @property
    def is_zero(self) -> bool:
        """Whether nothing is set."""
        return not self.unknown


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """An entry of a struct. Its value is one of JSON; that it is null and that there is none are two things."""

    key: str = ""
    value: Value = None
    has_value: bool = False

    @property
    def is_zero(self) -> bool:
        """Whether nothing is set."""
        return not self.key and not self.has_value


RECORDS: Final = (Empty, Entry)


def find_field(record: Value, name: Value) -> tuple[Value, bool]:
    """Give a field, and whether it is set. Raises a fault if there is none."""
    if type(name) is not str:
        raise no_such_overload()
    if type(record) is Entry:
        match name:
            case "key":
                return record.key, bool(record.key)
            case "value":
                return record.value, record.has_value
    raise Fault(f"no such field {name!r}")


def record_to_map(record: Value) -> Map:
    """Give what JSON makes of a message: the fields that are set."""
    if type(record) is Empty:
        return Map({})
    fields = [(name, *find_field(record, name)) for name in ("key", "value")]
    return Map.of([(name, value) for name, value, is_set in fields if is_set])


def _empty(left: Empty, right: Value) -> bool:
    return type(right) is Empty and left.unknown == right.unknown


def _entry(left: Entry, right: Value) -> bool:
    if type(right) is not Entry or left.key != right.key or left.has_value is not right.has_value:
        return False
    return is_equal(left.value, right.value)


register(Empty, "google.protobuf.Empty")
register(Entry, "google.protobuf.Struct.FieldsEntry")
register_equality(Empty, _empty)
register_equality(Entry, _entry)
