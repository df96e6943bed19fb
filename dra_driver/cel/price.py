"""What a call can cost at most, from the sizes of its arguments: the static half of Kubernetes' cost model."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from dra_driver.cel import type as t
from dra_driver.cel.charge import LIST, PATTERN, TEXT, UNIT_METHODS
from dra_driver.cel.environment import Environment
from dra_driver.cel.library.sequence import COMPARABLE
from dra_driver.cel.size import MAX, NOTHING, ONE, UNKNOWN, Range, add, fixed
from dra_driver.cel.type import Kind, Type
from dra_driver.cel.value import Value

Price = tuple[Range, Range | None]
_FORMAT_SIZE: Final = 64
_FORMAT_PATTERN: Final = 128


@dataclass(frozen=True, slots=True)
class Operand:
    """An argument: where it is in a device, its type, what is known of its size, and its value if it is a literal."""

    path: tuple[str, ...]
    type: Type
    size: Range | None
    literal: Value
    environment: Environment

    @property
    def known(self) -> Range:
        """The size that was computed; anything if none was."""
        return self.size or UNKNOWN

    @property
    def sized(self) -> Range:
        """The size that was computed, or that the API allows."""
        if self.size is not None:
            return self.size
        size = self.environment.size_of(self.path)
        return UNKNOWN if size is None else Range(0, size)

    def element(self) -> "Operand | None":
        """What is in a list; of a map, its keys."""
        if not self.type.parameters:
            return None
        path = (*self.path, "@items") if self.path else ()
        return Operand(path, self.type.parameters[0], None, None, self.environment)

    def as_count(self, default: int) -> int:
        """The value, if it is a literal int; none is below 0."""
        return max(self.literal, 0) if type(self.literal) is int else default


Operands = list[Operand]
Pricing = Callable[["Operand | None", Operands], "Price | None"]


def price_call(function: str, overload: str, target: Operand | None, operands: Operands) -> Price:
    """Give the cost of a call without its arguments, and the size of the result."""
    pricing = _BY_LIBRARY.get(overload)
    price = None if pricing is None else pricing(target, operands)
    if price is None:
        price = _price_kubernetes(function, overload, target, operands)
    if price is None:
        pricing = _BY_OVERLOAD.get(overload)
        price = None if pricing is None else pricing(target, operands)
    return price or (ONE, None)


def _text(size: Range) -> Range:
    return size.scaled(TEXT)


def _allocate(factor: float, size: Range) -> Price:
    return size.scaled(factor) + ONE + fixed(LIST), size


def _slice(target: Operand | None, operands: Operands) -> Price | None:
    if target is None:
        return None
    start, end = operands[0].as_count(0), operands[1].as_count(target.sized.high)
    return _allocate(1, fixed((end - start) % (MAX + 1)))


def _flatten(target: Operand | None, operands: Operands) -> Price | None:
    if target is None:
        return None
    depth = operands[0].as_count(MAX) if operands else 1
    return _allocate(float(depth), target.sized)


def _range(target: Operand | None, operands: Operands) -> Price | None:
    return None if target is not None else _allocate(1, fixed(operands[0].as_count(MAX)))


def _reverse(target: Operand | None, _: Operands) -> Price | None:
    return None if target is None else _allocate(1, target.sized)


def _distinct(target: Operand | None, _: Operands) -> Price | None:
    return None if target is None else _allocate(2.0, target.sized * target.sized)


def _sort(type_: Type) -> Pricing:
    factor = 2.0 + (TEXT if type_ in (t.STRING, t.BYTES) else 0.0)

    def price(target: Operand | None, operands: Operands) -> Price | None:
        if target is None:
            return None
        keys = operands[0] if operands else target
        return _allocate(factor, keys.sized * keys.sized)

    return price


def _sets(factor: float) -> Pricing:
    return lambda _, operands: ((operands[0].sized * operands[1].sized).scaled(factor) + ONE, None)


_BY_LIBRARY: Final[dict[str, Pricing]] = {
    "list_slice": _slice,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "lists_range": _range,
    "list_reverse": _reverse,
    "list_distinct": _distinct,
    **{f"list_{type_.name}_sort": _sort(type_) for type_ in COMPARABLE.values()},
    **{f"list_{type_.name}_sortByAssociatedKeys": _sort(type_) for type_ in COMPARABLE.values()},
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
}


def _whole_list(function: str, target: Operand | None) -> Price | None:
    if target is None:
        return None
    element = target.element()
    if element is not None:
        cost = ONE
        if element.type.kind in (Kind.STRING, Kind.BYTES):
            cost += _text(element.sized)
        return target.sized * cost, None
    return (target.sized if function == "includes" else _text(target.sized)), None


def _replace(target: Operand | None, operands: Operands) -> Price | None:
    if target is None or len(operands) < 2:  # noqa: PLR2004 - what to replace, and by what
        return None
    size, old, new = target.sized, operands[0].sized, operands[1].sized
    if old.low == 0:
        most, kept_most = add(size.high, 1), size.high
    elif new.high <= old.low:
        most, kept_most = 0, size.high
    else:
        most, kept_most = math.ceil(float(size.high) / float(old.low)), 0
    if old.high == 0:
        least, kept_least = add(size.low, 1), size.low
    elif old.high <= new.low:
        least, kept_least = 0, size.low
    else:
        least, kept_least = math.ceil(float(size.low) / float(old.high)), 0
    result = Range(min(least, MAX), min(most, MAX)) * new + Range(kept_least, kept_most)
    return size.scaled(2 * TEXT), result


def _split(target: Operand | None, operands: Operands) -> Price | None:
    if target is None:
        return None
    most = target.sized.high
    if len(operands) > 1 and type(operands[1].literal) is int:
        most = operands[1].literal % (MAX + 1)
    return target.sized.scaled(2 * TEXT), Range(0, most)


def _join(target: Operand | None, operands: Operands) -> Price | None:
    if target is None:
        return None
    count = target.sized
    element = target.element()
    size = NOTHING if element is None else count * element.sized
    if operands:
        separators = Range(max(count.low - 1, 0), max(count.high - 1, 0))
        size += operands[0].sized * separators
    return _text(size), size


def _find(target: Operand | None, operands: Operands) -> Price | None:
    if target is None or not operands:
        return None
    cost = _text(target.sized + ONE) * operands[0].sized.scaled(PATTERN)
    return cost, Range(0, target.sized.high)


def _same_size(operand: Operand) -> Price:
    return _text(operand.sized), operand.sized


def _contains_address(operands: Operands, *, text: bool, extra: bool) -> Price:
    size = Range(4, 16)
    cost = _text(size + size)
    if extra:
        cost += _text(size) + ONE
    return (cost + _text(operands[0].sized) if text else cost), None


_WHOLE: Final = frozenset(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"))
_FIRST: Final = frozenset(("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"))
_TARGET: Final = frozenset(("lowerAscii", "upperAscii", "substring", "trim"))
_UNIT: Final = frozenset(UNIT_METHODS)


def _price_kubernetes(  # noqa: C901, PLR0911, PLR0912 - a table of functions
    function: str, overload: str, target: Operand | None, operands: Operands
) -> Price | None:
    if function in _UNIT or overload == "cidr_ip":
        return ONE, None
    if function in _WHOLE:
        return _whole_list(function, target)
    if function in _TARGET:
        return None if target is None else _same_size(target)
    if function in _FIRST or function == "ip":
        return (_text(operands[0].sized), None) if operands else None
    match function:
        case "url":
            return _same_size(operands[0]) if len(operands) == 1 else None
        case "replace":
            return _replace(target, operands)
        case "split":
            return _split(target, operands)
        case "join":
            return _join(target, operands)
        case "find" | "findAll":
            return _find(target, operands)
        case "ip.isCanonical":
            return operands[0].sized.scaled(2 * TEXT), None
        case "containsIP":
            return _contains_address(operands, text=overload == "cidr_contains_ip_string", extra=False)
        case "containsCIDR":
            return _contains_address(operands, text=overload == "cidr_contains_cidr_string", extra=True)
        case "validate":
            return _text(operands[0].sized).scaled(_FORMAT_PATTERN * PATTERN), None
        case "_==_":
            return _kubernetes_equality(operands)
        case _:
            return None


def _kubernetes_equality(operands: Operands) -> Price | None:
    left, right = operands
    if left.type != right.type:
        return None
    if left.type in (t.IP, t.CIDR, t.QUANTITY, t.SEMVER):
        return ONE, None
    if left.type == t.FORMAT:
        return Range(1, _FORMAT_SIZE).scaled(TEXT), None
    if left.type == t.URL:
        size = ONE if right.size is None else right.size
        return Range(1, size.high).scaled(TEXT), None
    return None


def _convert(low: Callable[[Range], Range]) -> Pricing:
    def price(_: Operand | None, operands: Operands) -> Price:
        size = operands[0].known
        return _text(size), low(size)

    return price


def _affix(_: Operand | None, operands: Operands) -> Price:
    return _text(operands[0].known), None


def _format(target: Operand | None, _: Operands) -> Price | None:
    return None if target is None else (_text(target.known), None)


def _in_list(_: Operand | None, operands: Operands) -> Price:
    return operands[1].known.scaled(1.0), None


def _matches(target: Operand | None, operands: Operands) -> Price:
    text, pattern = (operands[0], operands[1]) if target is None else (target, operands[0])
    return _text(text.known + ONE) * pattern.known.scaled(PATTERN), None


def _contains(target: Operand | None, operands: Operands) -> Price | None:
    return None if target is None else (_text(target.known) * _text(operands[0].known), None)


def _add_text(_: Operand | None, operands: Operands) -> Price:
    size = operands[0].known + operands[1].known
    return _text(size), size


def _add_list(_: Operand | None, operands: Operands) -> Price:
    return ONE, operands[0].known + operands[1].known


def _compare(_: Operand | None, operands: Operands) -> Price:
    most = min(operands[0].known.high, operands[1].known.high)
    return Range(min(most, 1), most).scaled(TEXT), None


def _wrap(value: int) -> int:
    return value % (MAX + 1)


_BY_OVERLOAD: Final[dict[str, Pricing]] = {
    "string_format": _format,
    "string_to_bytes": _convert(lambda size: Range(size.low, _wrap(size.high * 4))),
    "bytes_to_string": _convert(lambda size: Range(size.low // 4, size.high)),
    "strings_quote": _convert(lambda size: Range(_wrap(size.low + 2), _wrap(size.high * 2 + 2))),
    "starts_with_string": _affix,
    "ends_with_string": _affix,
    "in_list": _in_list,
    "matches": _matches,
    "matches_string": _matches,
    "contains_string": _contains,
    "add_string": _add_text,
    "add_bytes": _add_text,
    "add_list": _add_list,
    "equals": _compare,
    "not_equals": _compare,
    **{
        f"{order}_{kind}": _compare
        for order in ("less", "less_equals", "greater", "greater_equals")
        for kind in ("string", "bytes")
    },
}
