"""What a call costs, from its real arguments and result: the run-time half of Kubernetes' cost model.

Strings cost a tenth of a unit a code point, regular expressions a quarter of a unit a code point of the pattern
times the text; methods of Kubernetes' types one unit; functions on whole lists go by the size of the list.
"""

import math
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address
from typing import Final

from dra_driver.api.quantity import Quantity
from dra_driver.api.semver import Semver
from dra_driver.cel.error import Abort
from dra_driver.cel.library.amount import ParsedQuantity, QuantityResult
from dra_driver.cel.library.sequence import COMPARABLE
from dra_driver.cel.library.uri import Url
from dra_driver.cel.value import LISTS, MAPS, Cidr, Format, Optional, Value

Arguments = list[Value]
Charge = Callable[[Arguments, Value], int]

TEXT: Final = 0.1
PATTERN: Final = 0.25
LIST: Final = 10
MAP: Final = 30
MESSAGE: Final = 40
MAX_COST: Final = 2**64 - 1
NO_LIST: Final = "internal error: the cost of sorting what is no list"
NO_DEPTH: Final = "internal error: the cost of flattening to what is no depth"

_UNIT_EQUALITY: Final = (Quantity, ParsedQuantity, QuantityResult, IPv4Address, IPv6Address, Cidr, Format, Url, Semver)
_SIZED: Final = (str, bytes, *LISTS, *MAPS)


def size_of(value: Value) -> int:
    """Give the size of what has one, else 1."""
    if isinstance(value, _SIZED):
        return len(value)
    if isinstance(value, IPv4Address | IPv6Address):
        return value.max_prefixlen // 8
    if type(value) is Cidr:
        return -(-value.bits // 8)
    return 1


def _core_size(value: Value) -> int:
    """Give the size as cel-go's own functions see it: that of an optional is that of its value."""
    while type(value) is Optional and value.present:
        value = value.value
    return size_of(value)


def _scaled(size: float, factor: float = TEXT) -> int:
    return math.ceil(size * factor)


def _one(_: Arguments, __: Value) -> int:
    return 1


_UNITS: Final = frozenset((int, float, bool))


def _traversal(value: Value) -> int:
    """Give the cost of looking at all of a value."""
    if type(value) is str:
        return int(len(value.encode()) * TEXT)
    if type(value) is bytes:
        return int(len(value) * TEXT)
    if isinstance(value, LISTS):
        return sum([1 if type(each) in _UNITS else _traversal(each) for each in value])
    if isinstance(value, MAPS):
        return sum(_traversal(key) + _traversal(each) for key, each in value.items())
    return 1


def _regex(arguments: Arguments, size: Callable[[Value], int]) -> int:
    return _scaled(1.0 + size(arguments[0])) * _scaled(size(arguments[1]), PATTERN)


def _first_text(arguments: Arguments, _: Value) -> int:
    return _scaled(size_of(arguments[0]))


def _first_twice(arguments: Arguments, _: Value) -> int:
    return math.ceil(size_of(arguments[0]) * 2 * TEXT)


def _join(_: Arguments, result: Value) -> int:
    return math.ceil(size_of(result) * 2 * TEXT)


def _contains_ip(arguments: Arguments, *, text: bool) -> int:
    cost = _scaled(2 * size_of(arguments[0]))
    return cost + _scaled(size_of(arguments[1])) if text else cost


def _contains_cidr(arguments: Arguments, *, text: bool) -> int:
    cost = _scaled(2 * size_of(arguments[0])) + _scaled(size_of(arguments[0])) + 1
    return cost + _scaled(size_of(arguments[1])) if text else cost


def _validate(arguments: Arguments, _: Value) -> int:
    format_ = arguments[0]
    if type(format_) is not Format:
        return 1
    return _scaled(1.0 + size_of(arguments[1])) * _scaled(format_.regex_size, PATTERN)


def _ip(overload: str) -> Charge:
    return _one if overload == "cidr_ip" else _first_text


UNIT_METHODS: Final = (
    *("masked", "prefixLength", "family", "isUnspecified", "isLoopback", "isLinkLocalMulticast"),
    *("isLinkLocalUnicast", "isGlobalUnicast", "format.named", "sign", "asInteger", "isInteger", "asApproximateFloat"),
    *("isGreaterThan", "isLessThan", "compareTo", "add", "sub", "major", "minor", "patch"),
    *("getScheme", "getHostname", "getHost", "getPort", "getEscapedPath", "getQuery"),
)

# Kubernetes' functions, by name.
_BY_FUNCTION: Final[dict[str, Charge]] = {
    **dict.fromkeys(
        ("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"),
        lambda arguments, _: _traversal(arguments[0]),
    ),
    **dict.fromkeys(
        [
            "url",
            "lowerAscii",
            "upperAscii",
            "substring",
            "trim",
            "cidr",
            "isIP",
            "isCIDR",
            "quantity",
            "isQuantity",
            "semver",
            "isSemver",
        ],
        _first_text,
    ),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _first_twice),
    "join": _join,
    **dict.fromkeys(("find", "findAll"), lambda arguments, _: _regex(arguments, size_of)),
    **dict.fromkeys(UNIT_METHODS, _one),
    "validate": _validate,
}


def _list_output(_: Arguments, result: Value) -> int:
    return size_of(result) + 1 + LIST


def _self_compare(place: int) -> Charge:
    def charge(arguments: Arguments, _: Value) -> int:
        values = arguments[place]
        if not isinstance(values, LISTS):
            raise Abort(NO_LIST)
        size = len(values)
        factor = 2.0
        if size and type(values[0]) in (str, bytes):
            factor += TEXT
        return int(float(size * size) * factor) + 1 + LIST

    return charge


def _flatten(arguments: Arguments, _: Value) -> int:
    depth = 1.0
    if len(arguments) > 1:
        if type(arguments[1]) is not int:
            raise Abort(NO_DEPTH)
        depth = float(arguments[1])
    depth = 1.0 if depth < 0 else depth
    product = float(size_of(arguments[0])) * depth
    # What is beyond 64 bits becomes this where the reference converts it.
    return min((int(product) if product < 2.0**64 else 2**63) + 1 + LIST, MAX_COST)


def _sets(factor: int) -> Charge:
    return lambda arguments, _: 1 + size_of(arguments[0]) * size_of(arguments[1]) * factor


def _affix(arguments: Arguments, _: Value) -> int:
    return _scaled(_core_size(arguments[1]))


def _convert(arguments: Arguments, _: Value) -> int:
    return _scaled(_core_size(arguments[0]))


def _equality(arguments: Arguments, _: Value) -> int:
    return _scaled(min(_core_size(arguments[0]), _core_size(arguments[1])))


def _add(arguments: Arguments, _: Value) -> int:
    return _scaled(_core_size(arguments[0]) + _core_size(arguments[1]))


def _matches(arguments: Arguments, _: Value) -> int:
    return _regex(arguments, _core_size)


def _contains(arguments: Arguments, _: Value) -> int:
    return _scaled(_core_size(arguments[0])) * _scaled(_core_size(arguments[1]))


def _in_list(arguments: Arguments, _: Value) -> int:
    return _core_size(arguments[1])


# cel-go's list and set libraries, by overload; they come before those by name.
_BY_LIBRARY: Final[dict[str, Charge]] = {
    **dict.fromkeys(("list_slice", "lists_range", "list_reverse"), _list_output),
    **dict.fromkeys(("list_flatten", "list_flatten_int"), _flatten),
    "list_distinct": _self_compare(0),
    **{f"list_{type_.name}_sort": _self_compare(0) for type_ in COMPARABLE.values()},
    **{f"list_{type_.name}_sortByAssociatedKeys": _self_compare(1) for type_ in COMPARABLE.values()},
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
}

# cel-go's own functions, by overload; they come last.
_BY_OVERLOAD: Final[dict[str, Charge]] = {
    **dict.fromkeys(("starts_with_string", "ends_with_string"), _affix),
    **dict.fromkeys(("string_to_bytes", "bytes_to_string", "strings_quote", "string_format"), _convert),
    "in_list": _in_list,
    **dict.fromkeys(
        (
            f"{order}_{kind}"
            for order in ("less", "less_equals", "greater", "greater_equals")
            for kind in ("string", "bytes")
        ),
        _equality,
    ),
    **dict.fromkeys(("add_string", "add_bytes"), _add),
    **dict.fromkeys(("matches", "matches_string"), _matches),
    "contains_string": _contains,
}


_BY_RESULT: Final = frozenset((_join, _list_output))


def is_known_before(charge: Charge) -> bool:
    """Tell whether the cost of a call depends on its arguments alone, so that it can be charged before the call."""
    return charge not in _BY_RESULT


def charge_for(function: str, overload: str) -> Charge:
    """Give what computes the cost of a call. `overload` is empty if several fit."""
    if overload in _BY_LIBRARY:
        return _BY_LIBRARY[overload]
    if function == "ip":
        return _ip(overload)
    if function == "containsIP":
        return lambda arguments, _: _contains_ip(arguments, text=overload == "cidr_contains_ip_string")
    if function == "containsCIDR":
        return lambda arguments, _: _contains_cidr(arguments, text=overload == "cidr_contains_cidr_string")
    return _BY_FUNCTION.get(function) or _BY_OVERLOAD.get(overload, _one)


def charge_equality(arguments: Arguments, *, negated: bool) -> int:
    """Give the cost of `==` or `!=`."""
    if not negated and isinstance(arguments[0], _UNIT_EQUALITY):
        return 1
    return _equality(arguments, None)


# The argument without which the reference implementation cannot compute the cost, and gives up.
NEEDS_LIST: Final[dict[str, int]] = {
    "list_distinct": 0,
    **{f"list_{type_.name}_sort": 0 for type_ in COMPARABLE.values()},
    **{f"list_{type_.name}_sortByAssociatedKeys": 1 for type_ in COMPARABLE.values()},
}
