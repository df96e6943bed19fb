"""The values of the language, as Python holds them, and when two are equal.

    bool int double string bytes null   bool, int, float, str, bytes, None
    uint                                Uint, an int
    list                                tuple; EmptyList; Concat for `a + b`; MutableList while a macro builds one
    map                                 Map; MutableMap while a macro builds one; DeviceMap for parts of a device
    timestamp duration                  Timestamp, Duration: whole nanoseconds
    type                                TypeValue
    optional                            Optional
    Quantity Semver IP CIDR URL Format  the classes of dra_driver.api, ipaddress and of the libraries here

Equality is as in the reference implementation: numbers compare across types, other types are unequal without an
error, except that a Kubernetes type on the left compares with its own type only.
"""

import ipaddress
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from dra_driver.api.quantity import Quantity
from dra_driver.api.semver import Semver
from dra_driver.cel.error import Abort, Fault

Value: TypeAlias = Any

INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**63 - 1
UINT_MAX: Final = 2**64 - 1


class Uint(int):
    """An unsigned number of 64 bits."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Duration:
    """A span of time, in nanoseconds of 64 bits."""

    nanos: int


@dataclass(frozen=True, slots=True)
class Timestamp:
    """A point in time, in nanoseconds since 1970 in UTC. `zone` is the offset it was written with, in seconds.

    `place` tells zones apart where times are the keys of a map: there, only times of one place are one key.
    """

    nanos: int
    zone: int = 0
    place: Hashable = None


@dataclass(frozen=True, slots=True)
class TypeValue:
    """A type, used as a value."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Optional:
    """A value that may be absent."""

    value: Value = None
    present: bool = False


NONE: Final = Optional()


def optional_of(value: Value) -> Optional:
    """Make an optional that has a value."""
    return Optional(value, present=True)


@dataclass(frozen=True, slots=True)
class Cidr:
    """A range of addresses; host bits may be set."""

    address: ipaddress.IPv4Address | ipaddress.IPv6Address
    bits: int


@dataclass(frozen=True, slots=True, eq=False)
class Format:
    """A named format. `validate` gives what is wrong with a text."""

    name: str
    validate: Callable[[str], tuple[str, ...]]
    regex_size: int


class Concat:
    """Two lists, one after the other. Joining copies nothing, as long as nobody looks at all of it."""

    __slots__ = ("_flat", "left", "right", "size")

    def __init__(self, left: "ListValue", right: "ListValue") -> None:
        self.left = left
        self.right = right
        self.size = len(left) + len(right)
        self._flat: tuple[Value, ...] | None = None
        if self.size > MAX_ELEMENTS:
            raise Abort(f"list of {self.size} elements, want at most {MAX_ELEMENTS}")

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Value]:
        return iter(self.flat())

    def __getitem__(self, index: int) -> Value:
        part: ListValue = self
        while isinstance(part, Concat):
            if part._flat is not None:  # noqa: SLF001 - of the same class
                return part._flat[index]  # noqa: SLF001 - of the same class
            if index < len(part.left):
                part = part.left
            else:
                index -= len(part.left)
                part = part.right
        return part[index]

    def flat(self) -> tuple[Value, ...]:
        """Give all elements."""
        if self._flat is None:
            elements: list[Value] = []
            parts: list[ListValue] = [self]
            while parts:
                part = parts.pop()
                if isinstance(part, Concat) and part._flat is None:  # noqa: SLF001 - of the same class
                    parts += (part.right, part.left)
                else:
                    elements.extend(part)
            self._flat = tuple(elements)
        return self._flat


class EmptyList(tuple[Value, ...]):
    """An empty list that, as the key of a map, is another one than any other. Python has a single empty tuple."""

    __slots__ = ()


def distinct_list(value: Value) -> Value:
    """Give a value; an empty list becomes one of its own."""
    return EmptyList() if type(value) is tuple and not value else value


class MutableList(list[Value]):
    """The list that a macro builds."""

    __slots__ = ()


ListValue: TypeAlias = tuple[Value, ...] | Concat | MutableList

# Beyond these, looking at all of a value costs more than Kubernetes lets an evaluation cost, or takes seconds.
MAX_ELEMENTS: Final = 3_000_000
MAX_CHARACTERS: Final = 10_000_000

LISTS: Final = (tuple, EmptyList, Concat, MutableList)


class Map:
    """A map. Keys 1 and 1u are two entries, and each finds the other if it stands alone."""

    __slots__ = ("_entries",)

    def __init__(self, entries: "dict[Value, tuple[Value, Value]]") -> None:
        self._entries = entries

    @classmethod
    def of(cls, pairs: "Iterator[tuple[Value, Value]] | list[tuple[Value, Value]]") -> "Map":
        """Make a map; of equal keys the last wins."""
        return cls({map_key(key): (key, value) for key, value in pairs})

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Value]:
        return iter([key for key, _ in self._entries.values()])

    def items(self) -> list[tuple[Value, Value]]:
        """Give the entries, in the order they were made."""
        return list(self._entries.values())

    def find(self, key: Value) -> tuple[Value, bool]:
        """Give the value, and whether there is one."""
        if not self._entries:
            return None, False
        if (found := self._entries.get(map_key(key))) is not None:
            return found[1], True
        for other in _other_keys(key):
            if (found := self._entries.get(map_key(other))) is not None:
                return found[1], True
        return None, False

    def contains(self, key: Value) -> bool:
        """Tell whether there is an entry."""
        return self.find(key)[1]


class MutableMap(Map):
    """The map that a macro builds."""

    __slots__ = ()

    def insert(self, key: Value, value: Value) -> None:
        """Add an entry."""
        self._entries[map_key(key)] = (key, value)


class DeviceMap(Map):
    """A map of a device: keys are strings. With `default`, a key that is missing gives an empty map.

    Each look-up of a list or of a domain gives another one, as in the reference: as the key of a map it is equal to
    none but itself.
    """

    __slots__ = ("default", "native")

    def __init__(self, native: dict[str, Value], *, default: bool = False) -> None:
        self.native = native
        self.default = default

    def copy(self) -> "DeviceMap":
        """Give another one that is the same."""
        return DeviceMap(self.native, default=self.default)

    def __len__(self) -> int:
        return len(self.native)

    def __iter__(self) -> Iterator[Value]:
        return iter(self.native)

    def items(self) -> list[tuple[Value, Value]]:
        """Give the entries."""
        return [(key, _copied(value)) for key, value in self.native.items()]

    def find(self, key: Value) -> tuple[Value, bool]:
        """Give the value, and whether there is one."""
        if type(key) is str and key in self.native:
            return _copied(self.native[key]), True
        return (EMPTY_MAP, True) if self.default else (None, False)

    def contains(self, key: Value) -> bool:
        """Tell whether there is an entry; a default is none."""
        return type(key) is str and key in self.native


def _copied(value: Value) -> Value:
    if type(value) is tuple:
        return distinct_list(tuple([*value]))  # noqa: C409 - a tuple of a tuple is the same one
    return value.copy() if type(value) is DeviceMap and not value.default else value


EMPTY_MAP: Final = DeviceMap({})
MAPS: Final = (Map, MutableMap, DeviceMap)


def map_key(key: Value) -> Value:
    """Give what a key is looked up by. Who keeps it keeps the key too, since most keys equal none but themselves."""
    kind = type(key)
    if kind is str:
        return key
    if kind is float:
        return (kind, key) if key == key else (kind, object())  # noqa: PLR0124 - NaN is no key of anything
    if kind in _PLAIN_KEYS:
        return (kind, key)
    if kind is tuple and not key:
        return (kind, object())
    if kind in UNHASHABLE:
        raise Abort(f"internal error: {type_name(key)} cannot be the key of a map")
    return (kind, id(key))


_PLAIN_KEYS: Final = frozenset(
    (bool, int, Uint, type(None), Duration, Timestamp, TypeValue, Cidr, ipaddress.IPv4Address, ipaddress.IPv6Address)
)
UNHASHABLE: Final = frozenset((bytes, Semver, Format))


def _other_keys(key: Value) -> list[Value]:
    """Give the keys of other number types that a key finds too."""
    kind = type(key)
    if kind is int:
        return [Uint(key)] if key >= 0 else []
    if kind is Uint:
        return [int(key)] if key <= INT_MAX else []
    if kind is float and key.is_integer():
        keys: list[Value] = [int(key)] if INT_MIN < key < INT_MAX else []
        if 0 <= key < 2.0**64:
            keys.append(Uint(int(key)))
        return keys
    return []


def check_int(value: int) -> int:
    """Refuse what is no 64-bit number."""
    if INT_MIN <= value <= INT_MAX:
        return value
    raise Fault("integer overflow")


def check_uint(value: int) -> Uint:
    """Refuse what is no unsigned 64-bit number."""
    if 0 <= value <= UINT_MAX:
        return Uint(value)
    raise Fault("unsigned integer overflow")


_NAMES: Final[dict[type, str]] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    tuple: "list",
    EmptyList: "list",
    Concat: "list",
    MutableList: "list",
    Map: "map",
    MutableMap: "map",
    DeviceMap: "map",
    Timestamp: "google.protobuf.Timestamp",
    Duration: "google.protobuf.Duration",
    TypeValue: "type",
    Optional: "optional_type",
    Quantity: "kubernetes.Quantity",
    Semver: "kubernetes.Semver",
    ipaddress.IPv4Address: "net.IP",
    ipaddress.IPv6Address: "net.IP",
    Cidr: "net.CIDR",
    Format: "kubernetes.NamedFormat",
}


def register(kind: type, name: str) -> None:
    """Name the type of a library's values."""
    _NAMES[kind] = name


def type_name(value: Value) -> str:
    """Give the name of a value's type."""
    return _NAMES[type(value)]


def classes_of(name: str) -> frozenset[type]:
    """Give the classes of a type's values."""
    return frozenset(kind for kind, other in _NAMES.items() if other == name)
