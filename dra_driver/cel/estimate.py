"""What an expression can cost at most, from its text and the sizes that the API allows: Kubernetes' static model.

`estimate` walks the tree as the reference does. Sizes are kept by the numbers of nodes; what is not known may be of
any size, which makes most estimates beyond comparison with the limit the largest number there is.
"""

from dataclasses import dataclass
from typing import Final

from dra_driver.cel.charge import LIST, MAP, MESSAGE
from dra_driver.cel.check import Checked
from dra_driver.cel.environment import Environment
from dra_driver.cel.price import Operand, price_call
from dra_driver.cel.size import EMPTY, NOTHING, ONE, UNKNOWN, Range, fixed
from dra_driver.cel.tree import (
    Call,
    Comprehension,
    Ident,
    ListNode,
    Literal,
    MapNode,
    MessageNode,
    Node,
    Select,
)
from dra_driver.cel.type import Kind, Type, unwrap_optional
from dra_driver.cel.value import Uint

_SCALARS: Final = frozenset((Kind.BOOL, Kind.DOUBLE, Kind.DURATION, Kind.INT, Kind.TIMESTAMP, Kind.UINT))
_ACCUMULATORS: Final = ("@result", "__result__")


@dataclass(frozen=True, slots=True)
class Entries:
    """The sizes of what is in a list or a map."""

    kind: Kind
    key: Range
    value: Range

    def union(self, other: "Entries") -> "Entries":
        """Give what holds both."""
        return Entries(self.kind, self.key.union(other.key), self.value.union(other.value))


class Trail:
    """The path of a value in a device, as a slice of Go: paths that begin alike may share what comes after.

    The reference appends to such slices, so that in `m.all(k, v, …)` the path of `v` overwrites that of `k`.
    """

    __slots__ = ("_parts", "_size")

    def __init__(self, parts: list[str], size: int) -> None:
        self._parts = parts
        self._size = size

    def extended(self, part: str) -> "Trail":
        """Append, in place while there is room."""
        if self._size < len(self._parts):
            self._parts[self._size] = part
            return Trail(self._parts, self._size + 1)
        room = max(1, 2 * self._size) - self._size - 1
        return Trail([*self._parts[: self._size], part, *[""] * room], self._size + 1)

    @property
    def parts(self) -> tuple[str, ...]:
        """The path as it is now."""
        return tuple(self._parts[: self._size])


_NOWHERE: Final = Trail([], 0)


@dataclass(frozen=True, slots=True)
class _Local:
    path: Trail
    size: Range | None
    entries: Entries | None


def estimate(checked: Checked, environment: Environment) -> Range:
    """Give the range of costs."""
    return _Estimator(checked, environment).cost(checked.root)


class _Estimator:
    __slots__ = ("checked", "entries", "environment", "locals", "paths", "sizes")

    def __init__(self, checked: Checked, environment: Environment) -> None:
        self.checked = checked
        self.environment = environment
        self.paths: dict[int, Trail] = {}
        self.sizes: dict[int, Range] = {}
        self.entries: dict[int, Entries] = {}
        self.locals: dict[str, list[_Local]] = {}

    def cost(self, node: Node) -> Range:  # noqa: PLR0911 - a case of each kind
        match node:
            case Ident():
                return self.cost_ident(node)
            case Select():
                return self.cost_select(node)
            case Call():
                return self.cost_call(node)
            case ListNode():
                return self.cost_list(node)
            case MapNode():
                return self.cost_map(node)
            case Comprehension():
                return (
                    self.cost_bind(node) if node.is_bind and node.accumulator != "__result__" else self.cost_loop(node)
                )
            case MessageNode():
                return sum((self.cost(each.value) for each in node.fields), fixed(MESSAGE))
            case _:
                return NOTHING

    def cost_ident(self, node: Ident) -> Range:
        local = self.local(node.name)
        self.paths[node.id] = Trail([node.name], 1) if local is None else local.path
        return ONE

    def cost_select(self, node: Select) -> Range:
        cost = self.cost(node.operand)
        if node.test:
            return cost
        if self.type_of(node.operand).kind in (Kind.MAP, Kind.STRUCT, Kind.PARAMETER):
            cost += ONE
        self.paths[node.id] = self.path(node.operand).extended(node.field)
        return cost

    def cost_call(self, node: Call) -> Range:
        if node.function == "dyn":
            cost = self.cost(node.arguments[0]) + ONE
            self.copy_sizes(node, node.arguments[0])
            return cost
        costs = []
        operands = []
        for argument in node.arguments:
            costs.append(self.cost(argument))
            operands.append(self.operand(argument))
        total = NOTHING
        target = None
        if node.target is not None:
            total = self.cost(node.target)
            target = self.operand(node.target)
        call = EMPTY
        size: Range | None = None
        for overload in self.checked.overloads.get(node.id, ()):
            one, one_size = self.cost_overload(node, overload, target, operands, costs)
            call = call.union(one)
            if one_size is not None:
                size = one_size if size is None else size.union(one_size)
            if overload in ("index_list", "index_map"):
                entries = self.entries_of(node.arguments[0])
                size = None if entries is None else entries.value
                part = "@items" if overload == "index_list" else "@values"
                self.paths[node.id] = self.path(node.arguments[0]).extended(part)
            if size is None:
                size = self.size(node)
        if size is not None:
            self.sizes[node.id] = size
        return total + call

    def cost_overload(
        self, node: Call, overload: str, target: Operand | None, operands: list[Operand], costs: list[Range]
    ) -> tuple[Range, Range | None]:
        """Give the cost of one overload with its arguments, and the size of the result."""
        if overload in ("logical_and", "logical_or"):
            return Range(costs[0].low, (costs[0] + costs[1]).high), None
        if overload == "conditional":
            self.join_entries(node, node.arguments[1], node.arguments[2])
            size = operands[1].known.union(operands[2].known)
            return costs[0] + costs[1].union(costs[2]), size
        if overload in ("add_string", "add_bytes", "add_list"):
            self.join_entries(node, node.arguments[0], node.arguments[1])
        cost, size_or_none = price_call(node.function, overload, target, operands)
        for each in costs:
            cost += each
        return cost, size_or_none

    def join_entries(self, node: Node, left: Node, right: Node) -> None:
        one, two = self.entries_of(left), self.entries_of(right)
        if one is not None and two is not None:
            self.entries[node.id] = one.union(two)

    def cost_list(self, node: ListNode) -> Range:
        cost = fixed(LIST)
        item = EMPTY if node.elements else Range(0, 0)
        for element in node.elements:
            cost += self.cost(element)
            item = item.union(self.size(element) or UNKNOWN)
        self.entries[node.id] = Entries(Kind.LIST, ONE, item)
        return cost

    def cost_map(self, node: MapNode) -> Range:
        cost = fixed(MAP)
        key = value = EMPTY if node.entries else Range(0, 0)
        for entry in node.entries:
            cost += self.cost(entry.key) + self.cost(entry.value)
            key = key.union(self.size(entry.key) or UNKNOWN)
            value = value.union(self.size(entry.value) or UNKNOWN)
        self.entries[node.id] = Entries(Kind.MAP, key, value)
        return cost

    def cost_bind(self, node: Comprehension) -> Range:
        cost = self.cost(node.range) + self.cost(node.initial)
        self.push(
            node.accumulator, _Local(self.path(node.initial), self.size(node.initial), self.entries_of(node.initial))
        )
        cost += self.cost(node.result)
        self.pop(node.accumulator)
        self.copy_sizes(node, node.result)
        return cost

    def cost_loop(self, node: Comprehension) -> Range:
        cost = self.cost(node.range) + self.cost(node.initial)
        self.push(
            node.accumulator, _Local(self.path(node.initial), self.size(node.initial), self.entries_of(node.initial))
        )
        self.push_variables(node)
        turn = self.cost(node.condition) + self.cost(node.step)
        self.pop(node.variable)
        if node.variable2:
            self.pop(node.variable2)
        cost += self.cost(node.result)
        self.pop(node.accumulator)
        turns = self.size(node.range) or UNKNOWN
        match node.initial:
            case Literal():
                size = self.size(node.initial)
                if size is not None:
                    self.sizes[node.id] = size
            case ListNode() | MapNode():
                self.sizes[node.id] = turns
                entries = self.entries_of(node.step)
                if entries is not None:
                    self.entries[node.id] = entries
        return cost + turns * turn

    def push_variables(self, node: Comprehension) -> None:
        entries = self.entries_of(node.range)
        path = self.path(node.range)
        kind = self.type_of(node.range).kind if entries is None else entries.kind
        is_list = kind is Kind.LIST
        key = None if entries is None else entries.key
        value = None if entries is None else entries.value
        if node.variable2:
            self.push(node.variable, _Local(path.extended("@indices" if is_list else "@keys"), key, None))
            self.push(node.variable2, _Local(path.extended("@items" if is_list else "@values"), value, None))
        elif is_list:
            self.push(node.variable, _Local(path.extended("@items"), value, None))
        else:
            self.push(node.variable, _Local(path.extended("@keys"), key, None))

    def push(self, name: str, local: _Local) -> None:
        self.locals.setdefault(name, []).append(local)

    def pop(self, name: str) -> None:
        self.locals[name].pop()

    def local(self, name: str) -> _Local | None:
        found = self.locals.get(name)
        return found[-1] if found else None

    def type_of(self, node: Node) -> Type:
        return self.checked.types[node.id]

    def path(self, node: Node) -> Trail:
        if isinstance(node, Ident) and (local := self.local(node.name)) is not None:
            return local.path
        return self.paths.get(node.id, _NOWHERE)

    def operand(self, node: Node) -> Operand:
        path = self.path(node).parts
        if path and path[0] in _ACCUMULATORS:
            path = ()
        literal = node.value if isinstance(node, Literal) else None
        return Operand(path, self.type_of(node), self.size(node), literal, self.environment)

    def copy_sizes(self, node: Node, source: Node) -> None:
        self.note_sizes(node, self.size(source), self.entries_of(source))

    def note_sizes(self, node: Node, size: Range | None, entries: Entries | None) -> None:
        if size is not None:
            self.sizes[node.id] = size
        if entries is not None:
            self.entries[node.id] = entries

    def size(self, node: Node) -> Range | None:
        """Give the size of what a node gives, if anything is known of it."""
        known = self.sizes.get(node.id) or _literal_size(node)
        if known is not None:
            return known
        size = self.environment.size_of(self.path(node).parts)
        if size is not None:
            self.sizes[node.id] = Range(0, size)
            return self.sizes[node.id]
        if _is_scalar(self.type_of(node)):
            return ONE
        if isinstance(node, Ident) and (local := self.local(node.name)) is not None:
            return local.size
        return None

    def entries_of(self, node: Node) -> Entries | None:
        found = self.entries.get(node.id)
        if found is None and isinstance(node, Ident) and (local := self.local(node.name)) is not None:
            return local.entries
        return found


def _literal_size(node: Node) -> Range | None:
    match node:
        case Literal(value=str() | bytes() as value):
            return fixed(len(value))
        case Literal(value=None | bool() | int() | float() | Uint()):
            return ONE
        case ListNode():
            return fixed(len(node.elements))
        case MapNode():
            return fixed(len(node.entries))
        case _:
            return None


def _is_scalar(type_: Type) -> bool:
    while True:
        inner, is_optional = unwrap_optional(type_)
        if not is_optional:
            return type_.kind in _SCALARS
        type_ = inner
