"""The binary form of Protocol Buffers, as far as `google.protobuf.Any` needs it: the fields of one message.

Source: the encoding chapter of the Protocol Buffers documentation.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

_MAX_FIELD: Final = 2**29 - 1
_VARINT_BYTES: Final = 10
_MAX_GROUPS: Final = 100


class Wire(IntEnum):
    """How a field is written."""

    VARINT = 0
    FIXED64 = 1
    BYTES = 2
    GROUP = 3
    END = 4
    FIXED32 = 5


@dataclass(frozen=True, slots=True)
class Field:
    """A field: its number, how it is written, what it holds, and all its bytes. Numbers are unsigned."""

    number: int
    wire: Wire
    content: int | bytes
    raw: bytes


def read_fields(message: bytes) -> Iterator[Field]:
    """Give the fields of a message in order. Raises ValueError where the bytes are none."""
    position = 0
    while position < len(message):
        field, end = _read_field(message, position, 0)
        if field.wire is Wire.END:
            raise ValueError("the end of a group that did not begin")
        yield field
        position = end


def _read_field(message: bytes, start: int, depth: int) -> tuple[Field, int]:
    tag, position = _read_varint(message, start)
    number, wire = tag >> 3, Wire(tag & 7)
    if not 1 <= number <= _MAX_FIELD:
        raise ValueError(f"field number {number}, want 1 to {_MAX_FIELD}")
    content: int | bytes = b""
    match wire:
        case Wire.VARINT:
            content, position = _read_varint(message, position)
        case Wire.FIXED64 | Wire.FIXED32:
            content, position = _take(message, position, 8 if wire is Wire.FIXED64 else 4)
        case Wire.BYTES:
            size, position = _read_varint(message, position)
            content, position = _take(message, position, size)
        case Wire.GROUP:
            position = _skip_group(message, position, number, depth + 1)
        case Wire.END:
            pass
    return Field(number, wire, content, message[start:position]), position


def _skip_group(message: bytes, position: int, number: int, depth: int) -> int:
    if depth > _MAX_GROUPS:
        raise ValueError("groups nested too deeply")
    while True:
        field, position = _read_field(message, position, depth)
        if field.wire is Wire.END:
            if field.number != number:
                raise ValueError("the end of another group")
            return position


def _take(message: bytes, position: int, size: int) -> tuple[bytes, int]:
    if position + size > len(message):
        raise ValueError("the bytes end within a field")
    return message[position : position + size], position + size


def _read_varint(message: bytes, position: int) -> tuple[int, int]:
    value = 0
    for place in range(_VARINT_BYTES):
        if position + place >= len(message):
            raise ValueError("the bytes end within a number")
        byte = message[position + place]
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:  # noqa: PLR2004 - the bit that says that more follows
            if value >= 2**64:
                raise ValueError("a number beyond 64 bits")
            return value, position + place + 1
    raise ValueError("a number beyond 64 bits")
