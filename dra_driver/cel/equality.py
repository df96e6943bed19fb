"""When two values are equal, and which comes first."""

import ipaddress
import math
from collections.abc import Callable
from itertools import islice
from typing import Final

from dra_driver.api.quantity import Quantity
from dra_driver.api.semver import Semver, compare_semver
from dra_driver.cel.error import Fault, no_such_overload
from dra_driver.cel.library.amount import ParsedQuantity, QuantityResult
from dra_driver.cel.value import (
    INT_MAX,
    LISTS,
    Cidr,
    Concat,
    DeviceMap,
    Duration,
    EmptyList,
    Format,
    Map,
    MutableList,
    MutableMap,
    Optional,
    Timestamp,
    TypeValue,
    Uint,
    Value,
)

NUMBERS: Final = frozenset((int, Uint, float))


def is_equal(left: Value, right: Value) -> bool:
    """Tell whether two values are equal. Raises a fault where the type on the left compares with itself only."""
    if left is None or right is None:
        return left is right
    return _EQUALITY[type(left)](left, right)


def is_equal_quietly(left: Value, right: Value) -> bool:
    """Tell whether two values are equal; what cannot be compared is not."""
    try:
        return _EQUALITY[type(left)](left, right)
    except Fault:
        return False


def _number(left: Value, right: Value) -> bool:
    if type(right) not in NUMBERS:
        return False
    if left != left or right != right:  # noqa: PLR0124 - NaN
        return False
    return compare_numbers(left, right) == 0


def compare_numbers(left: Value, right: Value) -> int:
    """Compare numbers as the reference does: whole numbers with doubles as doubles."""
    if type(left) is float and type(right) is not float:
        return _compare_double(left, right)
    if type(right) is float and type(left) is not float:
        return -_compare_double(right, left)
    return int(left > right) - int(left < right)


def _compare_double(double: float, whole: int) -> int:
    low, high = (0.0, 2.0**64) if type(whole) is Uint else (-(2.0**63), 2.0**63)
    if double < low:
        return -1
    if double > high:
        return 1
    other = float(whole)
    return (double > other) - (double < other)


def _plain(left: Value, right: Value) -> bool:
    return type(left) is type(right) and left == right


def _timestamp(left: Timestamp, right: Value) -> bool:
    return type(right) is Timestamp and left.nanos == right.nanos


def _list(left: Value, right: Value) -> bool:
    """Compare element by element; elements that cannot be compared count as equal."""
    if not isinstance(right, LISTS) or len(left) != len(right):
        return False
    fault = None
    for one, other in zip(left, right, strict=True):
        try:
            if not is_equal(one, other):
                return False
        except Fault as error:
            fault = fault or error
    if fault is not None and type(left) is Concat:
        raise fault
    return True


def _map(left: Map, right: Value) -> bool:
    if not isinstance(right, Map) or len(left) != len(right):
        return False
    for key in left:
        other, found = right.find(key)
        if not found:
            return False
        try:
            if not is_equal(left.find(key)[0], other):
                return False
        except Fault:
            continue
    return True


def _optional(left: Optional, right: Value) -> bool:
    if type(right) is not Optional or left.present is not right.present:
        return False
    if not left.present:
        return True
    if left.value is None:
        return right.value is None
    return _EQUALITY[type(left.value)](left.value, right.value)


def _quantity(left: Quantity, right: Value) -> bool:
    if type(right) is not Quantity and type(right) is not ParsedQuantity:
        raise no_such_overload("_==_")
    return left.nanos == right.nanos


def _semver(left: Semver, right: Value) -> bool:
    if type(right) is not Semver:
        raise no_such_overload("_==_")
    return compare_semver(left, right) == 0


def _ip(left: Value, right: Value) -> bool:
    if not isinstance(right, ipaddress.IPv4Address | ipaddress.IPv6Address):
        raise no_such_overload("_==_")
    return bool(left == right)


def _cidr(left: Cidr, right: Value) -> bool:
    if type(right) is not Cidr:
        raise no_such_overload("_==_")
    return left == right


def _format(left: Format, right: Value) -> bool:
    if type(right) is not Format:
        raise no_such_overload("_==_")
    return left.name == right.name


_EQUALITY: Final[dict[type, Callable[[Value, Value], bool]]] = {
    type(None): lambda _, right: right is None,
    bool: _plain,
    int: _number,
    Uint: _number,
    float: _number,
    str: _plain,
    bytes: _plain,
    tuple: _list,
    EmptyList: _list,
    Concat: _list,
    MutableList: _list,
    Map: _map,
    MutableMap: _map,
    DeviceMap: _map,
    Timestamp: _timestamp,
    Duration: _plain,
    TypeValue: _plain,
    Optional: _optional,
    Quantity: _quantity,
    ParsedQuantity: _quantity,
    QuantityResult: _quantity,
    Semver: _semver,
    ipaddress.IPv4Address: _ip,
    ipaddress.IPv6Address: _ip,
    Cidr: _cidr,
    Format: _format,
}


def register_equality(kind: type, compare: Callable[[Value, Value], bool]) -> None:
    """Tell how a library's values compare."""
    _EQUALITY[kind] = compare


_ORDERED: Final = frozenset((bool, bytes))


def compare(left: Value, right: Value) -> int:
    """Give -1, 0 or 1. Raises a fault for what has no order."""
    kind, other = type(left), type(right)
    if kind is str:
        if other is str:
            return _compare_strings(left, right)
    elif kind in NUMBERS:
        if kind is float and math.isnan(left):
            raise Fault("NaN values cannot be ordered")
        if other in NUMBERS:
            if other is float and math.isnan(right):
                raise Fault("NaN values cannot be ordered")
            return compare_numbers(left, right)
    elif kind is other:
        if kind is Timestamp or kind is Duration:
            return int(left.nanos > right.nanos) - int(left.nanos < right.nanos)
        if kind in _ORDERED:
            return int(left > right) - int(left < right)
    raise no_such_overload()


def is_comparable(value: Value) -> bool:
    """Tell whether values of this type have an order."""
    kind = type(value)
    return kind is str or kind in NUMBERS or kind in _ORDERED or kind is Timestamp or kind is Duration


def _compare_strings(left: str, right: str) -> int:
    """Compare by code points, which is the order of UTF-8."""
    return (left > right) - (left < right)


def index_of(index: Value) -> int:
    """Give the place in a list that a number means. Raises a fault for what is no whole number."""
    kind = type(index)
    if kind is int:
        return int(index)
    if kind is Uint and index <= INT_MAX:
        return int(index)
    if kind is float and index.is_integer() and -(2.0**63) < index < 2.0**63:
        return int(index)
    raise Fault(f"unsupported index {index!r} in list")


def first(values: Value) -> Value:
    """Give the first element of a list or the first key of a map that is not empty."""
    return next(islice(iter(values), 1))
