"""What a function is: overloads with types for the checker and implementations for run time."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from dra_driver.cel.equality import first
from dra_driver.cel.error import no_such_overload
from dra_driver.cel.type import Kind, Type
from dra_driver.cel.value import Value, classes_of, type_name

Implementation = Callable[..., Value]


@dataclass(frozen=True, slots=True)
class Overload:
    """A function for some types; `free` are the names of its type parameters.

    `varargs` says that arguments after one that fails are not evaluated, which the cost shows; `guard` that the
    values' types are checked before the call.
    """

    id: str
    parameters: tuple[Type, ...]
    result: Type
    member: bool = False
    run: Implementation | None = None
    varargs: bool = False
    guard: bool = True
    non_strict: bool = False
    free: tuple[str, ...] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        names = {name for each in (*self.parameters, self.result) for name in parameter_names(each)}
        object.__setattr__(self, "free", tuple(sorted(names)))


def parameter_names(type_: Type) -> Iterator[str]:
    """Give the names of the type parameters within a type."""
    if type_.kind is Kind.PARAMETER:
        yield type_.name
    for each in type_.parameters:
        yield from parameter_names(each)


@dataclass(slots=True)
class Function:
    """All overloads of a name. `singleton` stands for all of them at run time and looks at the types itself."""

    name: str
    overloads: list[Overload] = field(default_factory=list)
    singleton: Implementation | None = None


class Library:
    """Functions by name, collected."""

    __slots__ = ("functions",)

    def __init__(self) -> None:
        self.functions: dict[str, Function] = {}

    def add(self, name: str, *overloads: Overload, singleton: Implementation | None = None) -> None:
        """Add overloads to a function."""
        function = self.functions.setdefault(name, Function(name))
        function.overloads.extend(overloads)
        function.singleton = singleton or function.singleton

    def merge(self, other: "Library") -> None:
        """Add all of another library."""
        for function in other.functions.values():
            self.add(function.name, *function.overloads, singleton=function.singleton)


def accepts(type_: Type, value: Value) -> bool:
    """Tell whether a value is of a type, looking no further than the first element."""
    if type_.kind is Kind.DYN or type_.kind is Kind.ANY or type_.kind is Kind.PARAMETER:
        return True
    if type_.name != type_name(value):
        return False
    if type_.kind is Kind.LIST:
        return len(value) == 0 or accepts(type_.parameters[0], first(value))
    if type_.kind is Kind.MAP and len(value):
        key = first(value)
        return accepts(type_.parameters[0], key) and accepts(type_.parameters[1], value.find(key)[0])
    return True


def accepts_all(overload: Overload, values: tuple[Value, ...]) -> bool:
    """Tell whether an overload takes these values."""
    return len(values) == len(overload.parameters) and (
        not overload.guard or all(map(accepts, overload.parameters, values))
    )


def guarded(name: str, overload: Overload) -> Implementation:
    """Give an overload's implementation, behind a check of the types."""
    run = overload.run
    assert run is not None  # noqa: S101 - callers pass overloads that have one
    if not overload.guard or overload.non_strict or all(map(_takes_all, overload.parameters)):
        return run
    tests = [_test(each) for each in overload.parameters]
    if len(tests) == 1:
        return _guard_one(name, run, tests[0])
    if len(tests) == 2:  # noqa: PLR2004 - of two arguments
        return _guard_two(name, run, tests[0], tests[1])

    def many(*values: Value) -> Value:
        if all(test(value) for test, value in zip(tests, values, strict=True)):
            return run(*values)
        raise no_such_overload(name)

    return many


def _guard_one(name: str, run: Implementation, test: Callable[[Value], bool]) -> Implementation:
    def one(value: Value) -> Value:
        if test(value):
            return run(value)
        raise no_such_overload(name)

    return one


def _guard_two(
    name: str, run: Implementation, test: Callable[[Value], bool], other_test: Callable[[Value], bool]
) -> Implementation:
    def two(value: Value, other: Value) -> Value:
        if test(value) and other_test(other):
            return run(value, other)
        raise no_such_overload(name)

    return two


def _takes_all(type_: Type) -> bool:
    return type_.kind in (Kind.DYN, Kind.ANY, Kind.PARAMETER)


def _test(type_: Type) -> Callable[[Value], bool]:
    """Give a quick test of a type."""
    if _takes_all(type_):
        return lambda _: True
    if type_.kind in (Kind.LIST, Kind.MAP):
        return lambda value: accepts(type_, value)
    kinds = classes_of(type_.name)
    return lambda value: type(value) in kinds


def dispatched(function: Function) -> Implementation:
    """Give an implementation that looks for the first overload that takes the values."""
    overloads = [each for each in function.overloads if each.run is not None]

    def run(*values: Value) -> Value:
        for overload in overloads:
            if accepts_all(overload, values):
                assert overload.run is not None  # noqa: S101 - filtered above
                return overload.run(*values)
        raise no_such_overload(function.name)

    return run
