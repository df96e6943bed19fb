"""What an evaluation does, step by step, as the reference implementation plans it.

The cost of an evaluation depends on the plan: fields and indexes are joined to the path that they continue, constant
lists and conversions are folded, `in` over a constant list becomes a look-up. Both ways to run a plan start here:
`exact` counts every step, `fast` makes closures.
"""

from collections.abc import Callable
from typing import Final

from dra_driver.cel.check import Checked
from dra_driver.cel.environment import Environment
from dra_driver.cel.equality import is_equal
from dra_driver.cel.error import Abort, CompileError, Fault, issue_at
from dra_driver.cel.function import Function, Overload, dispatched, guarded
from dra_driver.cel.library.conversion import FOLDED
from dra_driver.cel.library.standard import compile_pattern
from dra_driver.cel.message import find_message
from dra_driver.cel.path import KEYS
from dra_driver.cel.step import (
    AnyKey,
    Apply,
    Choice,
    ComputedKey,
    Const,
    Equality,
    Follow,
    Key,
    Logic,
    Loop,
    MakeList,
    MakeMap,
    MakeMessage,
    Membership,
    OrElse,
    Path,
    Relative,
    Step,
    Variable,
)
from dra_driver.cel.tree import Call, Comprehension, Ident, ListNode, Literal, MapNode, MessageNode, Node, Select
from dra_driver.cel.type import Kind
from dra_driver.cel.value import LISTS, Map, Uint, Value, distinct_list, map_key

_PRIMITIVE: Final = frozenset((bool, int, Uint, float, str))
_PATTERNS: Final = frozenset(("matches", "find", "findAll"))


def plan(checked: Checked, environment: Environment) -> Step:
    """Plan an expression. Raises CompileError where a constant cannot be converted or a pattern not be compiled."""
    return _Planner(checked, environment).plan(checked.root)


class _Planner:
    __slots__ = ("checked", "environment")

    def __init__(self, checked: Checked, environment: Environment) -> None:
        self.checked = checked
        self.environment = environment

    def refuse(self, node: Node, problem: str) -> CompileError:
        return CompileError(self.checked.expression, (issue_at(self.checked.expression, node.offset, problem),))

    def plan(self, node: Node) -> Step:  # noqa: PLR0911 - a case of each kind
        match node:
            case Literal():
                return Const(node.id, node.value)
            case Ident():
                return self.plan_ident(node)
            case Select():
                return self.plan_select(node)
            case Call():
                return self.plan_call(node)
            case ListNode():
                return self.plan_list(node)
            case MapNode():
                return self.plan_map(node)
            case MessageNode():
                return self.plan_message(node)
            case Comprehension():
                return self.plan_loop(node)
            case _:
                raise TypeError(node)

    def plan_ident(self, node: Ident) -> Step:
        if node.id in self.checked.constants:
            return Const(node.id, self.checked.constants[node.id])
        if self.checked.types[node.id].kind is Kind.TYPE:
            raise self.refuse(node, f"variable {node.name!r} holds a type, which Kubernetes does not allow")
        return Follow(node.id, Variable(node.id, node.name))

    def follow(self, step: Step) -> Follow:
        """Give the path of a step, to continue it."""
        return step if isinstance(step, Follow) else Follow(step.id, Relative(step.id, step))

    def plan_select(self, node: Select) -> Step:
        step = self.follow(self.plan(node.operand))
        _extend(step.path, Key(node.id, node.field, test=node.test))
        if node.test:
            return Follow(node.id, step.path, test=True)
        step.id = step.path.last
        return step

    def plan_call(self, node: Call) -> Step:
        arguments = [self.plan(each) for each in node.operands]
        match node.function:
            case "_&&_" | "_||_":
                return Logic(node.id, node.function == "_||_", arguments)
            case "_?_:_":
                choice = Choice(node.id, arguments[0], _branch(arguments[1]), _branch(arguments[2]))
                return Follow(choice.last, choice)
            case "_==_" | "_!=_":
                return Equality(node.id, arguments[0], arguments[1], node.function == "_!=_")
            case "_[_]" | "_[?_]" | "_?._":
                return self.plan_index(node, arguments)
            case "or" | "orValue":
                return OrElse(node.id, arguments[0], arguments[1], node.function == "orValue")
        step = self.apply(node, arguments)
        return self.optimize(node, step)

    def plan_index(self, node: Call, arguments: list[Step]) -> Step:
        step = self.follow(arguments[0])
        optional = node.function != "_[_]"
        match arguments[1]:
            case Const(value=value):
                if type(value) not in KEYS:
                    raise self.refuse(node, "a constant that is no key or index")
                key: AnyKey = Key(node.id, value, optional)
            case Follow(path=path):
                key = ComputedKey(node.id, path, optional)
            case other:
                key = ComputedKey(node.id, Relative(node.id, other), optional, step=True)
        _extend(step.path, key)
        step.id = step.path.last
        return step

    def apply(self, node: Call, arguments: list[Step]) -> Apply:
        function = self.environment.functions[node.function]
        ids = self.checked.overloads[node.id]
        overload = ids[0] if len(ids) == 1 else ""
        run, early, non_strict = implementation(function, overload)
        return Apply(node.id, function.name, overload, arguments, run, early or len(arguments) > 2, non_strict)  # noqa: PLR2004 - two sides

    def optimize(self, node: Call, step: Apply) -> Step:
        if step.overload == "in_list" and isinstance(step.arguments[1], Const):
            return _membership(step)
        if step.function in FOLDED and len(step.arguments) == 1 and isinstance(step.arguments[0], Const):
            try:
                assert step.run is not None  # noqa: S101 - conversions have implementations
                return Const(node.id, step.run(step.arguments[0].value))
            except (Fault, Abort) as error:
                raise self.refuse(node, str(error)) from None
        if step.function in _PATTERNS and isinstance(step.arguments[1], Const):
            pattern = step.arguments[1].value
            if type(pattern) is not str:
                return step
            step.early = True
            try:
                compile_pattern(pattern)
            except Fault as error:
                raise self.refuse(node, str(error)) from None
        return step

    def plan_list(self, node: ListNode) -> Step:
        elements = [self.plan(each) for each in node.elements]
        values = [each.value for each in elements if isinstance(each, Const)]
        if len(values) == len(elements) and not node.optional:
            return Const(node.id, distinct_list(tuple(values)))
        return MakeList(node.id, elements, node.optional)

    def plan_map(self, node: MapNode) -> Step:
        keys, values, optional = [], [], []
        for entry in node.entries:
            keys.append(self.plan(entry.key))
            values.append(self.plan(entry.value))
            optional.append(entry.optional)
        pairs = [
            (key.value, value.value)
            for key, value in zip(keys, values, strict=True)
            if isinstance(key, Const) and isinstance(value, Const)
        ]
        if len(pairs) == len(keys) and not any(optional):
            try:
                return Const(node.id, Map.of(pairs))
            except Abort as error:
                raise self.refuse(node, str(error)) from None
        return MakeMap(node.id, keys, values, optional)

    def plan_message(self, node: MessageNode) -> Step:
        message = find_message(node.name, self.environment)
        assert message is not None  # noqa: S101 - the checker found it
        fields = [(each.name, self.plan(each.value), each.optional) for each in node.fields]
        return MakeMessage(node.id, fields, message.build)

    def plan_loop(self, node: Comprehension) -> Step:
        return Loop(
            node.id,
            self.plan(node.range),
            node.variable,
            node.variable2,
            node.accumulator,
            self.plan(node.initial),
            self.plan(node.condition),
            self.plan(node.step),
            self.plan(node.result),
        )


def implementation(function: Function, overload_id: str) -> tuple[Callable[..., Value] | None, bool, bool]:
    """Give what runs, whether it stops at the first argument that fails, and whether it takes errors."""
    bound = [overload for overload in function.overloads if overload.run is not None]
    chosen: Overload | None = next((each for each in bound if each.id == overload_id), None)
    if chosen is None and function.singleton is not None:
        return function.singleton, False, False
    if chosen is None and len(bound) == 1:
        chosen = bound[0]
    if chosen is not None:
        return guarded(function.name, chosen), chosen.varargs, chosen.non_strict
    if not bound:
        return None, False, False
    return dispatched(function), True, False


def _branch(step: Step) -> Path:
    return step.path if isinstance(step, Follow) else Relative(step.id, step)


def _extend(path: Path, key: AnyKey) -> None:
    if isinstance(path, Choice):
        _extend(path.chosen, key)
        _extend(path.other, key)
    else:
        path.keys.append(key)


def _membership(step: Apply) -> Step:
    """Make `in` over a constant list a look-up, if all its elements are plain."""
    constant = step.arguments[1]
    assert isinstance(constant, Const)  # noqa: S101 - the caller looked
    elements = constant.value
    if not len(elements):
        return Const(step.id, False)  # noqa: FBT003 - the value
    if not isinstance(elements, LISTS) or any(type(element) not in _PRIMITIVE for element in elements):
        return step
    keys = {key for element in elements for key in _keys(element)}
    return Membership(step.id, step.arguments[0], frozenset(keys))


def _keys(element: Value) -> list[Value]:
    """Give the keys by which an element is found: numbers that are equal are found as each other."""
    kind = type(element)
    others: list[Value] = [element]
    if kind is float:
        if element == element and element.is_integer():  # noqa: PLR0124 - NaN
            others += [int(element)] if -(2.0**63) < element < 2.0**63 else []
            others += [Uint(int(element))] if 0 <= element < 2.0**64 else []
    elif kind is int:
        others += [float(element), *([Uint(element)] if element >= 0 else [])]
    elif kind is Uint:
        others += [float(element), *([int(element)] if element < 2**63 else [])]
    return [map_key(other) for other in others if is_equal(element, other) or kind is not float]
