"""The tree of an expression, after macros are expanded.

Nodes have a number each: types, overloads and sizes are kept by it, and the cost of an evaluation is counted by it.
"""

from dataclasses import dataclass

from dra_driver.cel.value import Value

ACCUMULATOR = "@result"
UNUSED = "#unused"


@dataclass(slots=True, eq=False)
class Node:
    """A node. `offset` is where it stands in the expression, in code points."""

    id: int
    offset: int


@dataclass(slots=True, eq=False)
class Literal(Node):
    """A constant."""

    value: Value


@dataclass(slots=True, eq=False)
class Ident(Node):
    """A name; a leading dot looks past local variables."""

    name: str


@dataclass(slots=True, eq=False)
class Select(Node):
    """`operand.field`, or with `test` `has(operand.field)`."""

    operand: Node
    field: str
    test: bool = False


@dataclass(slots=True, eq=False)
class Call(Node):
    """`function(arguments)`, `target.function(arguments)` or an operator such as `_+_`."""

    function: str
    target: Node | None
    arguments: list[Node]

    @property
    def operands(self) -> list[Node]:
        """The target, if there is one, and the arguments."""
        return self.arguments if self.target is None else [self.target, *self.arguments]


@dataclass(slots=True, eq=False)
class ListNode(Node):
    """`[a, ?b]`; `optional` are the places of elements that may be left out."""

    elements: list[Node]
    optional: frozenset[int] = frozenset()


@dataclass(slots=True, eq=False)
class Entry:
    """An entry of a map."""

    id: int
    key: Node
    value: Node
    optional: bool


@dataclass(slots=True, eq=False)
class MapNode(Node):
    """`{key: value, ?key: optional}`."""

    entries: list[Entry]


@dataclass(slots=True, eq=False)
class Field:
    """A field of a message, and where its name stands."""

    offset: int
    name: str
    value: Node
    optional: bool


@dataclass(slots=True, eq=False)
class MessageNode(Node):
    """`Name{field: value, ?field: optional}`."""

    name: str
    fields: list[Field]


@dataclass(slots=True, eq=False)
class Comprehension(Node):
    """A loop over `range`: while `condition`, the accumulator becomes `step`; then `result`. `cel.bind` is one too."""

    range: Node
    variable: str
    variable2: str
    accumulator: str
    initial: Node
    condition: Node
    step: Node
    result: Node

    @property
    def is_bind(self) -> bool:
        """Whether it only gives a name to a value."""
        return (
            isinstance(self.range, ListNode)
            and not self.range.elements
            and isinstance(self.condition, Literal)
            and self.condition.value is False
        )


def children(node: Node) -> list[Node]:  # noqa: PLR0911 - a case of each kind
    """Give the nodes below, in the order of the text."""
    match node:
        case Select():
            return [node.operand]
        case Call():
            return node.operands
        case ListNode():
            return node.elements
        case MapNode():
            return [part for entry in node.entries for part in (entry.key, entry.value)]
        case MessageNode():
            return [each.value for each in node.fields]
        case Comprehension():
            return [node.range, node.initial, node.condition, node.step, node.result]
        case _:
            return []


def walk(root: Node) -> list[Node]:
    """Give all nodes, parents before their children."""
    nodes = [root]
    for node in nodes:
        nodes.extend(children(node))
    return nodes
