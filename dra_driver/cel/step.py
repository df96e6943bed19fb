"""The steps of a plan: what an evaluation does, and the paths that it follows."""

from collections.abc import Callable
from dataclasses import dataclass, field

from dra_driver.cel.value import Value


@dataclass(slots=True, eq=False)
class Step:
    """A step. Its number is that of the node that it is for."""

    id: int


@dataclass(slots=True, eq=False)
class Const(Step):
    """A value that is known."""

    value: Value


@dataclass(slots=True, eq=False)
class Key(Step):
    """A field or an index that is known. `test` only looks whether it is there."""

    value: Value
    optional: bool = False
    test: bool = False


@dataclass(slots=True, eq=False)
class ComputedKey(Step):
    """A field or an index that another path gives. `step` says that this path is a step of its own."""

    path: "Path"
    optional: bool = False
    step: bool = False


AnyKey = Key | ComputedKey


@dataclass(slots=True, eq=False)
class Variable:
    """A path that begins at a variable."""

    id: int
    name: str
    keys: list[AnyKey] = field(default_factory=list)

    @property
    def last(self) -> int:
        """The number of the last step."""
        return self.keys[-1].id if self.keys else self.id


@dataclass(slots=True, eq=False)
class Relative:
    """A path that begins at a computed value."""

    id: int
    operand: Step
    keys: list[AnyKey] = field(default_factory=list)

    @property
    def last(self) -> int:
        """The number of the last step."""
        return self.keys[-1].id if self.keys else self.id


@dataclass(slots=True, eq=False)
class Choice:
    """`condition ? chosen : other`; what follows is joined to both."""

    id: int
    condition: Step
    chosen: "Path"
    other: "Path"

    @property
    def last(self) -> int:
        """The number of the last step."""
        return self.chosen.last if self.chosen.last == self.other.last else self.id


Path = Variable | Relative | Choice


@dataclass(slots=True, eq=False)
class Follow(Step):
    """Follows a path. Its number is that of the path's last step; with `test`, gives whether there is something."""

    path: Path
    test: bool = False


@dataclass(slots=True, eq=False)
class Apply(Step):
    """Calls a function. `overload` is empty if several fit; `early` stops at the first argument that fails."""

    function: str
    overload: str
    arguments: list[Step]
    run: Callable[..., Value] | None
    early: bool = False
    non_strict: bool = False


@dataclass(slots=True, eq=False)
class Logic(Step):
    """`&&` or `||`: `decisive` is the value that decides."""

    decisive: bool
    terms: list[Step]


@dataclass(slots=True, eq=False)
class Equality(Step):
    """`==`, or `!=` if negated."""

    left: Step
    right: Step
    negated: bool


@dataclass(slots=True, eq=False)
class Membership(Step):
    """`in` over a constant list of plain values."""

    operand: Step
    keys: frozenset[Value]


@dataclass(slots=True, eq=False)
class MakeList(Step):
    """Makes a list."""

    elements: list[Step]
    optional: frozenset[int]


@dataclass(slots=True, eq=False)
class MakeMap(Step):
    """Makes a map: keys, values, and which may be left out."""

    keys: list[Step]
    values: list[Step]
    optional: list[bool]


@dataclass(slots=True, eq=False)
class MakeMessage(Step):
    """Makes a message of fields: name, value, and whether it may be left out."""

    fields: list[tuple[str, Step, bool]]
    build: Callable[[dict[str, Value]], Value]


@dataclass(slots=True, eq=False)
class Loop(Step):
    """A comprehension."""

    range: Step
    variable: str
    variable2: str
    accumulator: str
    initial: Step
    condition: Step
    step: Step
    result: Step


@dataclass(slots=True, eq=False)
class OrElse(Step):
    """`a.or(b)`, or `a.orValue(b)` if unwrapped."""

    left: Step
    right: Step
    unwrap: bool
