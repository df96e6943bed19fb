"""Macros: calls that become other trees while they are parsed.

`has`, `all`, `exists`, `exists_one`, `map`, `filter` and their forms with two variables, `transformList`,
`transformMap`, `transformMapEntry`, `sortBy`, `optMap`, `optFlatMap` and `cel.bind`.
"""

from collections.abc import Callable
from typing import Final

from dra_driver.cel.tree import (
    ACCUMULATOR,
    UNUSED,
    Call,
    Comprehension,
    Entry,
    Field,
    Ident,
    ListNode,
    Literal,
    MapNode,
    MessageNode,
    Node,
    Select,
)

_SORTED: Final = "@__sortBy_input__"
_FORBIDDEN: Final = (ACCUMULATOR, "__result__")


class MacroError(Exception):
    """A macro got what it cannot use. Arguments: offset, what is wrong."""


class Nodes:
    """Makes nodes with numbers of their own."""

    __slots__ = ("_last", "offset")

    def __init__(self) -> None:
        self._last = 0
        self.offset = 0

    def number(self) -> int:
        """Give the next number."""
        self._last += 1
        return self._last

    def literal(self, value: object) -> Literal:
        """Make a constant."""
        return Literal(self.number(), self.offset, value)

    def ident(self, name: str) -> Ident:
        """Make a name."""
        return Ident(self.number(), self.offset, name)

    def call(self, function: str, *arguments: Node, target: Node | None = None) -> Call:
        """Make a call."""
        return Call(self.number(), self.offset, function, target, list(arguments))

    def list_of(self, *elements: Node) -> ListNode:
        """Make a list."""
        return ListNode(self.number(), self.offset, list(elements))

    def loop(  # noqa: PLR0913, PLR0917 - the parts of a loop
        self,
        range_: Node,
        variables: tuple[str, str],
        initial: Node,
        condition: Node,
        step: Node,
        result: Node,
    ) -> Comprehension:
        """Make a loop."""
        number = self.number()
        one, two = variables
        return Comprehension(number, self.offset, range_, one, two, ACCUMULATOR, initial, condition, step, result)

    def bind(self, name: str, value: Node, result: Node) -> Comprehension:
        """Make a name for a value."""
        return Comprehension(
            self.number(),
            self.offset,
            self.list_of(),
            UNUSED,
            "",
            name,
            value,
            self.literal(False),  # noqa: FBT003 - the value of the condition
            self.ident(name),
            result,
        )

    def copy(self, node: Node) -> Node:  # noqa: PLR0911 - a case of each kind
        """Copy a tree, with new numbers."""
        number, offset = self.number(), node.offset
        match node:
            case Literal():
                return Literal(number, offset, node.value)
            case Ident():
                return Ident(number, offset, node.name)
            case Select():
                return Select(number, offset, self.copy(node.operand), node.field, node.test)
            case Call():
                target = None if node.target is None else self.copy(node.target)
                return Call(number, offset, node.function, target, [self.copy(each) for each in node.arguments])
            case ListNode():
                return ListNode(number, offset, [self.copy(each) for each in node.elements], node.optional)
            case MapNode():
                entries = [
                    Entry(self.number(), self.copy(entry.key), self.copy(entry.value), entry.optional)
                    for entry in node.entries
                ]
                return MapNode(number, offset, entries)
            case MessageNode():
                fields = [Field(each.offset, each.name, self.copy(each.value), each.optional) for each in node.fields]
                return MessageNode(number, offset, node.name, fields)
            case Comprehension():
                parts = [self.copy(each) for each in (node.range, node.initial, node.condition, node.step, node.result)]
                names = (node.variable, node.variable2, node.accumulator)
                return Comprehension(number, offset, parts[0], *names, *parts[1:])
            case _:
                raise TypeError(node)


def expand(nodes: Nodes, offset: int, function: str, target: Node | None, arguments: list[Node]) -> Node | None:
    """Expand a call if it is that of a macro, else give None. Raises MacroError."""
    macro = _MACROS.get((function, len(arguments), target is not None))
    if macro is None:
        return None
    nodes.offset = offset
    return macro(nodes, target, arguments)


def _variable(argument: Node) -> str:
    if not isinstance(argument, Ident):
        raise MacroError(argument.offset, "a macro's variable must be a simple name")
    if argument.name in _FORBIDDEN:
        raise MacroError(argument.offset, "the variable hides the accumulator")
    return argument.name


def _variables(one: Node, two: Node) -> tuple[str, str]:
    names = (_variable(one), _variable(two))
    if names[0] == names[1]:
        raise MacroError(two.offset, f"variable {names[0]!r} stands twice")
    return names


def _target(target: Node | None) -> Node:
    assert target is not None  # noqa: S101 - the table of macros says so
    return target


def _has(nodes: Nodes, _: Node | None, arguments: list[Node]) -> Node:
    argument = arguments[0]
    if not isinstance(argument, Select) or argument.test:
        raise MacroError(argument.offset, "has() takes the selection of a field, as in has(a.b)")
    return Select(nodes.number(), nodes.offset, argument.operand, argument.field, test=True)


def _all(nodes: Nodes, range_: Node, variables: tuple[str, str], predicate: Node) -> Node:
    initial = nodes.literal(True)  # noqa: FBT003 - the value of the accumulator
    condition = nodes.call("@not_strictly_false", nodes.ident(ACCUMULATOR))
    step = nodes.call("_&&_", nodes.ident(ACCUMULATOR), predicate)
    return nodes.loop(range_, variables, initial, condition, step, nodes.ident(ACCUMULATOR))


def _exists(nodes: Nodes, range_: Node, variables: tuple[str, str], predicate: Node) -> Node:
    initial = nodes.literal(False)  # noqa: FBT003 - the value of the accumulator
    condition = nodes.call("@not_strictly_false", nodes.call("!_", nodes.ident(ACCUMULATOR)))
    step = nodes.call("_||_", nodes.ident(ACCUMULATOR), predicate)
    return nodes.loop(range_, variables, initial, condition, step, nodes.ident(ACCUMULATOR))


def _exists_one(nodes: Nodes, range_: Node, variables: tuple[str, str], predicate: Node) -> Node:
    initial = nodes.literal(0)
    condition = nodes.literal(True)  # noqa: FBT003 - the condition
    more = nodes.call("_+_", nodes.ident(ACCUMULATOR), nodes.literal(1))
    step = nodes.call("_?_:_", predicate, more, nodes.ident(ACCUMULATOR))
    result = nodes.call("_==_", nodes.ident(ACCUMULATOR), nodes.literal(1))
    return nodes.loop(range_, variables, initial, condition, step, result)


_Quantifier = Callable[[Nodes, Node, tuple[str, str], Node], Node]
_Macro = Callable[[Nodes, "Node | None", list[Node]], "Node | None"]


def _one(quantifier: _Quantifier) -> _Macro:
    def macro(nodes: Nodes, target: Node | None, arguments: list[Node]) -> Node:
        return quantifier(nodes, _target(target), (_variable(arguments[0]), ""), arguments[1])

    return macro


def _two(quantifier: _Quantifier) -> _Macro:
    def macro(nodes: Nodes, target: Node | None, arguments: list[Node]) -> Node:
        variables = _variables(arguments[0], arguments[1])
        return quantifier(nodes, _target(target), variables, arguments[2])

    return macro


def _collect(nodes: Nodes, range_: Node, variables: tuple[str, str], value: Node, keep: Node | None) -> Node:
    initial = nodes.list_of()
    condition = nodes.literal(True)  # noqa: FBT003 - the condition
    step: Node = nodes.call("_+_", nodes.ident(ACCUMULATOR), nodes.list_of(value))
    if keep is not None:
        step = nodes.call("_?_:_", keep, step, nodes.ident(ACCUMULATOR))
    return nodes.loop(range_, variables, initial, condition, step, nodes.ident(ACCUMULATOR))


def _map(nodes: Nodes, target: Node | None, arguments: list[Node]) -> Node:
    variable = _variable(arguments[0])
    keep = arguments[1] if len(arguments) == 3 else None  # noqa: PLR2004 - with a filter
    return _collect(nodes, _target(target), (variable, ""), arguments[-1], keep)


def _filter(nodes: Nodes, target: Node | None, arguments: list[Node]) -> Node:
    return _collect(nodes, _target(target), (_variable(arguments[0]), ""), arguments[0], arguments[1])


def _transform_list(nodes: Nodes, target: Node | None, arguments: list[Node]) -> Node:
    variables = _variables(arguments[0], arguments[1])
    keep = arguments[2] if len(arguments) == 4 else None  # noqa: PLR2004 - with a filter
    return _collect(nodes, _target(target), variables, arguments[-1], keep)


def _transform_map(nodes: Nodes, target: Node | None, arguments: list[Node]) -> Node:
    variables = _variables(arguments[0], arguments[1])
    step = nodes.call("cel.@mapInsert", nodes.ident(ACCUMULATOR), nodes.ident(variables[0]), arguments[-1])
    return _insert(nodes, _target(target), variables, step, arguments)


def _transform_map_entry(nodes: Nodes, target: Node | None, arguments: list[Node]) -> Node:
    variables = _variables(arguments[0], arguments[1])
    step = nodes.call("cel.@mapInsert", nodes.ident(ACCUMULATOR), arguments[-1])
    return _insert(nodes, _target(target), variables, step, arguments)


def _insert(nodes: Nodes, range_: Node, variables: tuple[str, str], step: Node, arguments: list[Node]) -> Node:
    if len(arguments) == 4:  # noqa: PLR2004 - with a filter
        step = nodes.call("_?_:_", arguments[2], step, nodes.ident(ACCUMULATOR))
    initial = MapNode(nodes.number(), nodes.offset, [])
    condition = nodes.literal(True)  # noqa: FBT003 - the condition
    return nodes.loop(range_, variables, initial, condition, step, nodes.ident(ACCUMULATOR))


def _opt_map(nodes: Nodes, target: Node | None, arguments: list[Node]) -> Node:
    return _optional(nodes, _target(target), arguments, wrap=True)


def _opt_flat_map(nodes: Nodes, target: Node | None, arguments: list[Node]) -> Node:
    return _optional(nodes, _target(target), arguments, wrap=False)


def _optional(nodes: Nodes, target: Node, arguments: list[Node], *, wrap: bool) -> Node:
    if not isinstance(arguments[0], Ident):
        raise MacroError(arguments[0].offset, "the variable must be a simple name")
    value = nodes.call("value", target=nodes.copy(target))
    result: Node = nodes.bind(arguments[0].name, value, arguments[1])
    if wrap:
        result = nodes.call("optional.of", result)
    return nodes.call("_?_:_", nodes.call("hasValue", target=target), result, nodes.call("optional.none"))


def _sort_by(nodes: Nodes, target: Node | None, arguments: list[Node]) -> Node:
    range_ = _target(target)
    if isinstance(range_, Literal | MapNode | MessageNode):
        raise MacroError(range_.offset, "sortBy() takes a list")
    keys = _map(nodes, nodes.ident(_SORTED), arguments)
    result = nodes.call("@sortByAssociatedKeys", keys, target=nodes.ident(_SORTED))
    return nodes.bind(_SORTED, range_, result)


def _bind(nodes: Nodes, target: Node | None, arguments: list[Node]) -> Node | None:
    if not isinstance(target, Ident) or target.name != "cel":
        return None
    if not isinstance(arguments[0], Ident):
        raise MacroError(arguments[0].offset, "cel.bind() takes a simple name first")
    return nodes.bind(arguments[0].name, arguments[1], arguments[2])


_MACROS: Final[dict[tuple[str, int, bool], _Macro]] = {
    ("has", 1, False): _has,
    ("all", 2, True): _one(_all),
    ("all", 3, True): _two(_all),
    ("exists", 2, True): _one(_exists),
    ("exists", 3, True): _two(_exists),
    ("exists_one", 2, True): _one(_exists_one),
    ("exists_one", 3, True): _two(_exists_one),
    ("existsOne", 3, True): _two(_exists_one),
    ("map", 2, True): _map,
    ("map", 3, True): _map,
    ("filter", 2, True): _filter,
    ("transformList", 3, True): _transform_list,
    ("transformList", 4, True): _transform_list,
    ("transformMap", 3, True): _transform_map,
    ("transformMap", 4, True): _transform_map,
    ("transformMapEntry", 3, True): _transform_map_entry,
    ("transformMapEntry", 4, True): _transform_map_entry,
    ("sortBy", 2, True): _sort_by,
    ("optMap", 2, True): _opt_map,
    ("optFlatMap", 2, True): _opt_flat_map,
    ("bind", 3, True): _bind,
}
