"""What of a device an expression looks at."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

from dra_driver.cel.device import DeviceInput, View
from dra_driver.cel.tree import Call, Comprehension, Ident, Literal, Node, Select, children
from dra_driver.cel.value import Value

_MAPS: Final = ("attributes", "capacity")


@dataclass(frozen=True, slots=True, order=True)
class Read:
    """A part of a device: `driver`, `allowMultipleAllocations`, or a value of `attributes` or `capacity`.

    Without `name` it is all of a domain, without `domain` all of the map.
    """

    field: str
    domain: str = ""
    name: str = ""


EVERYTHING: Final = frozenset((Read("driver"), Read("allowMultipleAllocations"), Read("attributes"), Read("capacity")))


def find_reads(root: Node) -> frozenset[Read]:
    """Give what the expression reads; everything, if `device` is used as a whole."""
    found: set[Read] = set()
    pending: list[tuple[Node, frozenset[str]]] = [(root, frozenset())]
    while pending:
        node, hidden = pending.pop()
        read, rest = _read(node, hidden)
        if read is not None:
            found |= read
            pending += [(each, hidden) for each in rest]
            continue
        pending += _below(node, hidden)
    return frozenset(found)


def _below(node: Node, hidden: frozenset[str]) -> list[tuple[Node, frozenset[str]]]:
    if not isinstance(node, Comprehension):
        return [(each, hidden) for each in children(node)]
    after = hidden | {node.accumulator}
    inside = after | {node.variable, node.variable2}
    return [
        (node.range, hidden),
        (node.initial, hidden),
        (node.condition, inside),
        (node.step, inside),
        (node.result, after),
    ]


def _read(node: Node, hidden: frozenset[str]) -> tuple[frozenset[Read] | None, list[Node]]:
    """Give what a path that begins at `device` reads, and the nodes of its indexes; None if it is no such path."""
    keys: list[Node | str] = []
    current = node
    while True:
        match current:
            case Select():
                keys.append(current.field)
                current = current.operand
            case Call(function="_[_]" | "_[?_]" | "_?._", target=None):
                keys.append(current.arguments[1])
                current = current.arguments[0]
            case Ident(name="device") if "device" not in hidden:
                break
            case Ident(name=".device"):
                break
            case _:
                return None, []
    keys.reverse()
    rest = [key for key in keys if not isinstance(key, str | Literal)]
    return _reads_of([_constant(key) for key in keys]), rest


def _constant(key: Node | str) -> str | None:
    if isinstance(key, str):
        return key
    return key.value if isinstance(key, Literal) and type(key.value) is str else None


def _reads_of(keys: list[str | None]) -> frozenset[Read]:
    if not keys or keys[0] is None:
        return EVERYTHING
    field = keys[0]
    if field not in _MAPS:
        return frozenset((Read(field),))
    domain = keys[1] if len(keys) > 1 else None
    if not domain:
        return frozenset((Read(field),))
    name = keys[2] if len(keys) > 2 else None  # noqa: PLR2004 - domain and name
    return frozenset((Read(field, domain, name or ""),))


def project(reads: tuple[Read, ...], device: DeviceInput) -> Hashable:
    """Give what an expression sees of a device: for devices that give the same, it gives the same."""
    view = device.view
    if view.problem:
        return view.problem
    return tuple(_part(read, device, view) for read in reads)


def _part(read: Read, device: DeviceInput, view: View) -> Hashable:
    if read.field == "driver":
        return device.driver
    if read.field == "allowMultipleAllocations":
        return bool(device.allow_multiple_allocations)
    domains = view.attributes if read.field == "attributes" else view.capacity
    if not read.domain:
        return tuple(sorted((domain, _all(values)) for domain, values in domains.items()))
    values = domains.get(read.domain)
    if values is None:
        return None
    if not read.name:
        return _all(values)
    return (_typed(values[read.name]),) if read.name in values else ()


def _all(values: dict[str, Value]) -> tuple[tuple[str, str, str], ...]:
    return tuple(sorted((name, type(value).__name__, repr(value)) for name, value in values.items()))


def _typed(value: Value) -> Hashable:
    """Tell True from 1, and quantities by amount."""
    return (type(value), tuple((type(each), each) for each in value)) if type(value) is tuple else (type(value), value)
