"""What an expression may name: the variable `device`, types and functions; and how large parts of a device can be."""

from dataclasses import dataclass
from functools import cache
from typing import Final

from dra_driver.cel import type as t
from dra_driver.cel.function import Function
from dra_driver.cel.library.table import functions
from dra_driver.cel.type import Kind, Type

MAX_ENTRIES: Final = 32
MAX_DOMAIN: Final = 63
MAX_ID: Final = 32
MAX_DRIVER: Final = 63
MAX_VALUE: Final = 64
DEVICE: Final = Type(Kind.STRUCT, "kubernetes.DRADevice")

_TYPES: Final[dict[str, Type]] = {
    "bool": t.BOOL,
    "bytes": t.BYTES,
    "double": t.DOUBLE,
    "int": t.INT,
    "list": t.list_of(t.DYN),
    "map": t.map_of(t.DYN, t.DYN),
    "null_type": t.NULL,
    "string": t.STRING,
    "type": t.TYPE,
    "uint": t.UINT,
    "google.protobuf.Duration": t.DURATION,
    "google.protobuf.Timestamp": t.TIMESTAMP,
    t.EMPTY.name: t.EMPTY,
    t.ENTRY.name: t.ENTRY,
    "optional_type": t.optional_of(t.DYN),
    "net.IP": t.IP,
    "net.CIDR": t.CIDR,
}
_CONSTANTS: Final = {"google.protobuf.NullValue.NULL_VALUE": 0}


@dataclass(frozen=True, slots=True)
class Environment:
    """`fields` are those of `device`, `value` is the type of an attribute."""

    functions: dict[str, Function]
    fields: dict[str, Type]
    value: Type

    def find_constant(self, name: str) -> int | None:
        """Give the value of a name that is a constant."""
        return _CONSTANTS.get(name)

    def find_type(self, name: str) -> Type | None:
        """Give the type of a name that is a type."""
        found = _TYPES.get(name)
        if found is not None:
            return t.type_of(found)
        return DEVICE if name == DEVICE.name else None

    def size_of(self, path: tuple[str, ...]) -> int | None:
        """Give the largest size of a part of a device; None if it is no part of one."""
        if not path or path[0] != "device":
            return None
        if len(path) == 1:
            return 0
        kind, rest = path[1], path[2:]
        if kind == "driver" and not rest:
            return MAX_DRIVER
        if kind == "allowMultipleAllocations" and not rest:
            return 1 if kind in self.fields else None
        if kind not in ("attributes", "capacity"):
            return None
        return _size_in_maps(rest, named=kind == "attributes")


def _size_in_maps(path: tuple[str, ...], *, named: bool) -> int | None:  # noqa: PLR0911 - a case of each kind
    """Give the size within `attributes` or `capacity`: a map of maps. Only the values of attributes go by any name."""
    match path:
        case ():
            return MAX_ENTRIES
        case ("@keys",):
            return MAX_DOMAIN
        case ("@items" | "@values",):
            return MAX_ENTRIES
        case ("@items" | "@values", "@keys"):
            return MAX_ID
        case ("@items" | "@values", "@items" | "@values"):
            return MAX_VALUE if named else 0
        case ("@items" | "@values", _):
            return MAX_VALUE if named else None
        case _:
            return None


@cache
def environment(*, stored: bool, lists: bool, consumable_capacity: bool) -> Environment:
    """Make the environment that Kubernetes 1.37 has for these settings.

    Expressions that are stored already get everything; new ones get what its predecessor knows too.
    """
    value = t.DYN if stored or lists else t.ANY
    fields = {
        "driver": t.STRING,
        "attributes": t.map_of(t.STRING, t.map_of(t.STRING, value)),
        "capacity": t.map_of(t.STRING, t.map_of(t.STRING, t.QUANTITY)),
    }
    if stored or consumable_capacity:
        fields["allowMultipleAllocations"] = t.BOOL
    return Environment(functions(includes=stored or lists), fields, value)
