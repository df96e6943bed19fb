"""The types of the language, and when one can stand for another.

Assignability and unification follow the reference checker: `dyn` and `any` go with everything, type parameters are
bound to the more general of the types they meet, null goes with objects and opaque types.
"""

from dataclasses import dataclass, field
from enum import IntEnum, auto
from operator import is_
from typing import Final


class Kind(IntEnum):
    """What a type is, whatever its name and parameters."""

    DYN = auto()
    ANY = auto()
    ERROR = auto()
    BOOL = auto()
    BYTES = auto()
    DOUBLE = auto()
    DURATION = auto()
    INT = auto()
    LIST = auto()
    MAP = auto()
    NULL = auto()
    OPAQUE = auto()
    STRING = auto()
    STRUCT = auto()
    TIMESTAMP = auto()
    TYPE = auto()
    PARAMETER = auto()
    UINT = auto()


@dataclass(frozen=True, slots=True)
class Type:
    """A type. Equal if kind, name and parameters are.

    `size` is how much of it there can be, `nullable` that null is one of its values; neither counts.
    """

    kind: Kind
    name: str
    parameters: tuple["Type", ...] = ()
    size: int | None = field(default=None, compare=False)
    nullable: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        if self.nullable:
            return f"wrapper({self.name})"
        if self.kind is Kind.TYPE and not self.parameters:
            return self.name
        if not self.parameters:
            return self.name
        return f"{self.name}({', '.join(map(str, self.parameters))})"


DYN: Final = Type(Kind.DYN, "dyn")
ANY: Final = Type(Kind.ANY, "any")
ERROR: Final = Type(Kind.ERROR, "!error!")
BOOL: Final = Type(Kind.BOOL, "bool")
BYTES: Final = Type(Kind.BYTES, "bytes")
DOUBLE: Final = Type(Kind.DOUBLE, "double")
DURATION: Final = Type(Kind.DURATION, "google.protobuf.Duration")
INT: Final = Type(Kind.INT, "int")
NULL: Final = Type(Kind.NULL, "null_type")
STRING: Final = Type(Kind.STRING, "string")
TIMESTAMP: Final = Type(Kind.TIMESTAMP, "google.protobuf.Timestamp")
TYPE: Final = Type(Kind.TYPE, "type")
UINT: Final = Type(Kind.UINT, "uint")
QUANTITY: Final = Type(Kind.STRUCT, "kubernetes.Quantity")
SEMVER: Final = Type(Kind.STRUCT, "kubernetes.Semver")
URL: Final = Type(Kind.STRUCT, "kubernetes.URL")
FORMAT: Final = Type(Kind.STRUCT, "kubernetes.NamedFormat")
EMPTY: Final = Type(Kind.STRUCT, "google.protobuf.Empty")
ENTRY: Final = Type(Kind.STRUCT, "google.protobuf.Struct.FieldsEntry")
IP: Final = Type(Kind.OPAQUE, "net.IP")
CIDR: Final = Type(Kind.OPAQUE, "net.CIDR")


def list_of(element: Type) -> Type:
    """Make the type of a list."""
    return Type(Kind.LIST, "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    """Make the type of a map."""
    return Type(Kind.MAP, "map", (key, value))


def optional_of(value: Type) -> Type:
    """Make the type of an optional value."""
    return Type(Kind.OPAQUE, "optional_type", (value,))


def wrapper_of(value: Type) -> Type:
    """Make the type of a value that may be null."""
    return Type(value.kind, value.name, nullable=True)


def type_of(value: Type) -> Type:
    """Make the type of a type."""
    return Type(Kind.TYPE, "type", (value,))


def parameter(name: str) -> Type:
    """Make a type parameter."""
    return Type(Kind.PARAMETER, name)


def is_dyn(type_: Type) -> bool:
    """Tell whether the type is known at run time only."""
    return type_.kind <= Kind.ANY


def is_dyn_or_error(type_: Type) -> bool:
    """Tell whether nothing can be said about the type."""
    return type_.kind <= Kind.ERROR


def unwrap_optional(type_: Type) -> tuple[Type, bool]:
    """Give the type within an optional type, and whether it was one."""
    if type_.kind is Kind.OPAQUE and type_.name == "optional_type":
        return type_.parameters[0], True
    return type_, False


def is_equivalent(left: Type, right: Type) -> bool:
    """Tell whether the types are equal, whatever the names of their parameters."""
    if left.kind is not right.kind or len(left.parameters) != len(right.parameters):
        return False
    if left.kind is not Kind.PARAMETER and left.name != right.name:
        return False
    return all(map(is_equivalent, left.parameters, right.parameters))


class Mapping:
    """What type parameters stand for. Grows while an expression is checked."""

    __slots__ = ("bound",)

    def __init__(self, bound: dict[str, Type] | None = None) -> None:
        self.bound = bound or {}

    def unify(self, left: tuple[Type, ...], right: tuple[Type, ...]) -> bool:
        """Bind parameters so that all of `left` are assignable to `right`; bind none if they cannot."""
        for one, two in zip(left, right, strict=False):
            if one is not two and not _may_be_assignable(one, two):
                return False
        trial = Mapping(dict(self.bound))
        if not trial._all_assignable(left, right):
            return False
        self.bound = trial.bound
        return True

    def substitute(self, type_: Type, *, to_dyn: bool = False) -> Type:
        """Replace parameters by what they stand for, and free ones by `dyn` if asked to."""
        while type_.kind is Kind.PARAMETER:
            bound = self.bound.get(type_.name)
            if bound is None:
                return DYN if to_dyn else type_
            type_ = bound
        if not type_.parameters:
            return type_
        parameters = tuple(self.substitute(each, to_dyn=to_dyn) for each in type_.parameters)
        if all(map(is_, parameters, type_.parameters)):
            return type_
        return Type(type_.kind, type_.name, parameters)

    def _all_assignable(self, left: tuple[Type, ...], right: tuple[Type, ...]) -> bool:
        return len(left) == len(right) and all(map(self._is_assignable, left, right))

    def _is_assignable(self, left: Type, right: Type) -> bool:  # noqa: PLR0911 - a case of each kind
        if right.kind is Kind.PARAMETER:
            valid, has_substitution = self._can_substitute(left, right)
            if valid or has_substitution:
                return valid
        if left.kind is Kind.PARAMETER:
            return self._can_substitute(right, left)[0]
        if is_dyn_or_error(left) or is_dyn_or_error(right):
            return True
        if left.kind is Kind.NULL:
            return _is_nullable(right)
        if right.kind is Kind.NULL:
            return _is_nullable(left)
        if left.kind is Kind.TYPE:
            return right.kind is Kind.TYPE
        if left.kind is not right.kind or left.name != right.name:
            return False
        return self._all_assignable(left.parameters, right.parameters)

    def _can_substitute(self, type_: Type, free: Type) -> tuple[bool, bool]:
        """Tell whether `type_` can be what `free` stands for, and whether that stands for something already."""
        if type_ == free:
            return True, True
        bound = self.bound.get(free.name)
        if bound is not None:
            if type_ == bound:
                return True, True
            if not self._is_assignable(type_, bound):
                return False, True
            general = type_ if _is_less_specific(type_, bound) else bound
            if self._is_unreferenced(free, general):
                self.bound[free.name] = general
            return True, True
        if self._is_unreferenced(free, type_):
            self.bound[free.name] = type_
            return True, False
        return False, False

    def _is_unreferenced(self, free: Type, within: Type) -> bool:
        if free == within:
            return False
        if within.kind is Kind.PARAMETER:
            bound = self.bound.get(within.name)
            return bound is None or self._is_unreferenced(free, bound)
        return all(self._is_unreferenced(free, each) for each in within.parameters)


def _may_be_assignable(left: Type, right: Type) -> bool:
    """Tell quickly that two types are not assignable, for most that are not."""
    if left.kind in _WILD or right.kind in _WILD or left.kind is right.kind:
        return True
    return Kind.NULL in (left.kind, right.kind)


_WILD: Final = frozenset((Kind.DYN, Kind.ANY, Kind.ERROR, Kind.PARAMETER))


def most_general(left: Type, right: Type) -> Type:
    """Give the more general of two types that are assignable."""
    return left if _is_less_specific(left, right) else right


def _is_nullable(type_: Type) -> bool:
    return type_.nullable or type_.kind in (
        Kind.OPAQUE,
        Kind.STRUCT,
        Kind.ANY,
        Kind.DURATION,
        Kind.TIMESTAMP,
        Kind.NULL,
    )


def _is_less_specific(left: Type, right: Type) -> bool:
    if is_dyn(left) or left.kind is Kind.PARAMETER:
        return True
    if is_dyn(right) or right.kind is Kind.PARAMETER:
        return False
    if left.kind is not right.kind:
        return False
    if left.kind is Kind.TYPE:
        return True
    if left.name != right.name or len(left.parameters) != len(right.parameters):
        return False
    return all(map(_is_less_specific, left.parameters, right.parameters))
