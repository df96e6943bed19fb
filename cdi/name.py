"""CDI names: kinds (`vendor/class`), qualified device names (`vendor/class=device`) and names of spec files.

The character rules are those of the reference parser, which is what container runtimes apply. All letters and digits
are ASCII.

| part   | starts with     | then                            | ends with       |
|--------|-----------------|---------------------------------|-----------------|
| vendor | letter          | letters, digits, `_`, `-`, `.`  | letter or digit |
| class  | letter          | letters, digits, `_`, `-`, `.`  | letter or digit |
| device | letter or digit | the same, and `:`               | letter or digit |
"""

from collections.abc import Iterator
from dataclasses import dataclass
from string import ascii_letters, digits

from cdi.errors import InvalidNameError

_LETTERS = frozenset(ascii_letters)
_ALPHANUMERIC = _LETTERS | frozenset(digits)
_INNER = _ALPHANUMERIC | frozenset("_-.")
_DEVICE_INNER = _INNER | frozenset(":")


@dataclass(frozen=True, slots=True)
class Kind:
    """What a spec describes: devices of one class of one vendor."""

    vendor: str
    device_class: str

    def __str__(self) -> str:
        return f"{self.vendor}/{self.device_class}"


@dataclass(frozen=True, slots=True)
class QualifiedName:
    """The name under which a container asks for a device."""

    kind: Kind
    device: str

    def __str__(self) -> str:
        return f"{self.kind}={self.device}"


def validate_vendor(text: str) -> tuple[str, ...]:
    """Return every problem of a vendor, none if it is valid."""
    return tuple(_part_problems("vendor", text, first=_LETTERS, inner=_INNER))


def validate_class(text: str) -> tuple[str, ...]:
    """Return every problem of a class, none if it is valid."""
    return tuple(_part_problems("class", text, first=_LETTERS, inner=_INNER))


def validate_device_name(text: str) -> tuple[str, ...]:
    """Return every problem of a device name without its kind, none if it is valid."""
    return tuple(_part_problems("device name", text, first=_ALPHANUMERIC, inner=_DEVICE_INNER))


def validate_kind(text: str) -> tuple[str, ...]:
    """Return every problem of a kind, none if it is valid."""
    vendor, slash, device_class = text.partition("/")
    if not slash:
        return ("no '/', want vendor/class",)
    return validate_vendor(vendor) + validate_class(device_class)


def validate_qualified_name(text: str) -> tuple[str, ...]:
    """Return every problem of a qualified name, none if it is valid."""
    kind, equals, device = text.partition("=")
    if not equals:
        return ("no '=', want vendor/class=device",)
    return validate_kind(kind) + validate_device_name(device)


def parse_kind(text: str) -> Kind:
    """Split `vendor/class`. Raises InvalidNameError with every problem."""
    if problems := validate_kind(text):
        raise InvalidNameError(f"kind {text!r}", problems)
    vendor, _, device_class = text.partition("/")
    return Kind(vendor, device_class)


def parse_qualified_name(text: str) -> QualifiedName:
    """Split `vendor/class=device`. Raises InvalidNameError with every problem."""
    if problems := validate_qualified_name(text):
        raise InvalidNameError(f"qualified name {text!r}", problems)
    kind, _, device = text.partition("=")
    return QualifiedName(parse_kind(kind), device)


def build_qualified_name(kind: str, device: str) -> str:
    """Join a kind and a device name to `vendor/class=device`. Raises InvalidNameError with every problem."""
    return str(parse_qualified_name(f"{kind}={device}"))


def build_spec_name(kind: str, transient_id: str = "") -> str:
    """Name the file of a spec as the reference does, without extension: `vendor-class` or `vendor-class_id`.

    A transient spec lives as long as something else, such as a claim; `transient_id` is the unique id of that.
    Raises InvalidNameError if the kind is malformed.
    """
    parsed = parse_kind(kind)
    base = f"{parsed.vendor}-{parsed.device_class}"
    return f"{base}_{transient_id.replace('/', '_')}" if transient_id else base


def _part_problems(what: str, text: str, *, first: frozenset[str], inner: frozenset[str]) -> Iterator[str]:
    if not text:
        yield f"{what} is empty"
        return
    if text[0] not in first:
        yield f"{what} {text!r} starts with {text[0]!r}, want a {'letter or digit' if first > _LETTERS else 'letter'}"
    for character in dict.fromkeys(text[1:-1]):
        if character not in inner:
            marks = ", ".join(repr(mark) for mark in "_-.:" if mark in inner)
            yield f"{what} {text!r} contains {character!r}, want letters, digits, {marks}"
    if len(text) > 1 and text[-1] not in _ALPHANUMERIC:
        yield f"{what} {text!r} ends with {text[-1]!r}, want a letter or digit"
