"""The standard functions of the language, but for conversions and times."""

from collections.abc import Hashable
from functools import lru_cache
from typing import Final

import re2  # type: ignore[import-untyped]

from dra_driver.cel.equality import compare, is_equal_quietly
from dra_driver.cel.error import Abort, Fault, no_such_overload
from dra_driver.cel.function import Library, Overload
from dra_driver.cel.type import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
    map_of,
    parameter,
    type_of,
)
from dra_driver.cel.value import (
    INT_MIN,
    LISTS,
    MAPS,
    MAX_CHARACTERS,
    Concat,
    Duration,
    MutableList,
    Timestamp,
    TypeValue,
    Uint,
    Value,
    check_int,
    check_uint,
    type_name,
)

A: Final = parameter("A")
B: Final = parameter("B")
LIST_A: Final = list_of(A)
MAP_AB: Final = map_of(A, B)
TIMESTAMP_MIN: Final = -62135596800 * 10**9
TIMESTAMP_MAX: Final = 253402300800 * 10**9 - 1

STANDARD: Final = Library()


def check_timestamp(nanos: int, zone: int = 0, place: Hashable = None) -> Timestamp:
    """Refuse times outside the years 1 to 9999."""
    if not TIMESTAMP_MIN <= nanos <= TIMESTAMP_MAX:
        raise Fault("timestamp overflow")
    return Timestamp(nanos, zone, place)


def check_length(size: int) -> None:
    """Refuse texts that would take the memory of the process."""
    if size > MAX_CHARACTERS:
        raise Abort(f"text of {size} characters, want at most {MAX_CHARACTERS}")


def add(left: Value, right: Value) -> Value:  # noqa: C901, PLR0911 - a case of each type
    """`left + right`."""
    kind, other = type(left), type(right)
    if kind is MutableList:
        if not isinstance(right, LISTS):
            raise no_such_overload("_+_")
        left.extend(tuple(right))
        return left
    if kind in _TIMES or other in _TIMES:
        return _add_times(left, right)
    if kind is not other:
        if isinstance(left, LISTS) and isinstance(right, LISTS):
            return _join(left, right)
        raise no_such_overload("_+_")
    if kind is int:
        return check_int(left + right)
    if kind is str or kind is bytes:
        check_length(len(left) + len(right))
        return left + right
    if kind is float:
        return left + right
    if kind is Uint:
        return check_uint(int(left) + int(right))
    if isinstance(left, LISTS):
        return _join(left, right)
    raise no_such_overload("_+_")


def _join(left: Value, right: Value) -> Value:
    if not len(left):
        return right
    if not len(right):
        return left
    return Concat(_frozen(left), _frozen(right))


def _frozen(value: Value) -> Value:
    return tuple(value) if type(value) is MutableList else value


_TIMES: Final = frozenset((Duration, Timestamp))


def _add_times(left: Value, right: Value) -> Value:
    match left, right:
        case Duration(), Duration():
            return Duration(check_int(left.nanos + right.nanos))
        case (Timestamp() as time, Duration() as span) | (Duration() as span, Timestamp() as time):
            return _shift(time, span.nanos)
        case _:
            raise no_such_overload("_+_")


def subtract(left: Value, right: Value) -> Value:
    """`left - right`."""
    kind = type(left)
    if kind is Timestamp and type(right) in _TIMES:
        if type(right) is Timestamp:
            return _difference(left, right)
        return _shift(left, check_int(-right.nanos))
    if kind is not type(right):
        raise no_such_overload("_-_")
    if kind is int:
        return check_int(left - right)
    if kind is float:
        return left - right
    if kind is Uint:
        return check_uint(int(left) - int(right))
    if kind is Duration:
        return Duration(check_int(left.nanos - right.nanos))
    raise no_such_overload("_-_")


def _shift(time: Timestamp, nanos: int) -> Timestamp:
    return check_timestamp(time.nanos + nanos, time.zone, time.place)


def _difference(left: Timestamp, right: Timestamp) -> Duration:
    seconds = left.nanos // 10**9 - right.nanos // 10**9
    check_int(seconds * 10**9)
    return Duration(check_int(left.nanos - right.nanos))


def multiply(left: Value, right: Value) -> Value:
    """`left * right`."""
    kind = type(left)
    if kind is type(right):
        if kind is int:
            return check_int(left * right)
        if kind is float:
            return left * right
        if kind is Uint:
            return check_uint(int(left) * int(right))
    raise no_such_overload("_*_")


def divide(left: Value, right: Value) -> Value:
    """`left / right`; whole numbers are rounded towards zero."""
    kind = type(left)
    if kind is type(right):
        if kind is float:
            return _divide_doubles(left, right)
        if kind is int or kind is Uint:
            if right == 0:
                raise Fault("division by zero")
            quotient = abs(int(left)) // abs(int(right))
            return (
                check_uint(quotient)
                if kind is Uint
                else check_int(quotient if (left < 0) == (right < 0) else -quotient)
            )
    raise no_such_overload("_/_")


def _divide_doubles(left: float, right: float) -> float:
    if right != 0:
        return left / right
    if left == 0 or left != left:  # noqa: PLR0124 - NaN
        return float("nan")
    return float("inf") if (str(left)[0] == "-") == (str(right)[0] == "-") else float("-inf")


def modulo(left: Value, right: Value) -> Value:
    """`left % right`, with the sign of `left`."""
    kind = type(left)
    if kind is type(right) and (kind is int or kind is Uint):
        if right == 0:
            raise Fault("modulus by zero")
        if left == INT_MIN and right == -1 and kind is int:
            raise Fault("integer overflow")
        rest = abs(int(left)) % abs(int(right))
        return Uint(rest) if kind is Uint else (-rest if left < 0 else rest)
    raise no_such_overload("_%_")


def negate(value: Value) -> Value:
    """`-value`."""
    kind = type(value)
    if kind is int:
        return check_int(-value)
    if kind is float:
        return -value
    if kind is Duration:
        return Duration(check_int(-value.nanos))
    raise no_such_overload("-_")


def logical_not(value: Value) -> bool:
    """`!value`."""
    if type(value) is not bool:
        raise no_such_overload("!_")
    return not value


def contains(element: Value, container: Value) -> bool:
    """`element in container`."""
    if isinstance(container, MAPS):
        return container.contains(element)
    if isinstance(container, LISTS):
        return list_contains(container, element)
    raise no_such_overload("@in")


def list_contains(container: Value, element: Value) -> bool:
    """Tell whether a list has an element. The element stands on the left of the comparison."""
    return any(is_equal_quietly(element, each) for each in container)


def size(value: Value) -> int:
    """`size(value)`."""
    kind = type(value)
    if kind is str or kind is bytes or kind in LISTS or kind in MAPS:
        return len(value)
    raise no_such_overload("size")


@lru_cache(64)
def compile_pattern(pattern: str) -> "re2._Regexp":
    """Compile a regular expression of RE2. Raises a fault."""
    try:
        return re2.compile(pattern, _RE2)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise Fault(f"invalid regular expression {pattern!r}: {text}") from None


_RE2: Final = re2.Options()
_RE2.log_errors = False
_RE2.max_mem = 64 << 20


def matches(text: Value, pattern: Value) -> bool:
    """`text.matches(pattern)`."""
    if type(text) is not str or type(pattern) is not str:
        raise no_such_overload("matches")
    return compile_pattern(pattern).search(text) is not None


def _text_function(name: str, test: "object") -> None:
    def run(text: Value, part: Value) -> bool:
        if type(text) is not str or type(part) is not str:
            raise no_such_overload(name)
        return bool(test(text, part))  # type: ignore[operator]

    ids = {"contains": "contains_string", "startsWith": "starts_with_string", "endsWith": "ends_with_string"}
    STANDARD.add(name, Overload(ids[name], (STRING, STRING), BOOL, member=True, run=run, guard=False))


_text_function("contains", str.__contains__)
_text_function("startsWith", str.startswith)
_text_function("endsWith", str.endswith)


def _operator(name: str, run: "object", *overloads: tuple[str, tuple[Type, ...], Type]) -> None:
    STANDARD.add(
        name,
        *(Overload(id_, parameters, result) for id_, parameters, result in overloads),
        singleton=run,  # type: ignore[arg-type]
    )


def _refuse(*_: Value) -> Value:
    raise no_such_overload()


_operator("_?_:_", _refuse, ("conditional", (BOOL, A, A), A))
_operator("_&&_", _refuse, ("logical_and", (BOOL, BOOL), BOOL))
_operator("_||_", _refuse, ("logical_or", (BOOL, BOOL), BOOL))
_operator("!_", logical_not, ("logical_not", (BOOL,), BOOL))
_operator("_==_", _refuse, ("equals", (A, A), BOOL))
_operator("_!=_", _refuse, ("not_equals", (A, A), BOOL))
_operator(
    "_+_",
    add,
    ("add_bytes", (BYTES, BYTES), BYTES),
    ("add_double", (DOUBLE, DOUBLE), DOUBLE),
    ("add_duration_duration", (DURATION, DURATION), DURATION),
    ("add_duration_timestamp", (DURATION, TIMESTAMP), TIMESTAMP),
    ("add_timestamp_duration", (TIMESTAMP, DURATION), TIMESTAMP),
    ("add_int64", (INT, INT), INT),
    ("add_list", (LIST_A, LIST_A), LIST_A),
    ("add_string", (STRING, STRING), STRING),
    ("add_uint64", (UINT, UINT), UINT),
)
_operator(
    "_-_",
    subtract,
    ("subtract_double", (DOUBLE, DOUBLE), DOUBLE),
    ("subtract_duration_duration", (DURATION, DURATION), DURATION),
    ("subtract_int64", (INT, INT), INT),
    ("subtract_timestamp_duration", (TIMESTAMP, DURATION), TIMESTAMP),
    ("subtract_timestamp_timestamp", (TIMESTAMP, TIMESTAMP), DURATION),
    ("subtract_uint64", (UINT, UINT), UINT),
)
_operator(
    "_*_",
    multiply,
    ("multiply_double", (DOUBLE, DOUBLE), DOUBLE),
    ("multiply_int64", (INT, INT), INT),
    ("multiply_uint64", (UINT, UINT), UINT),
)
_operator(
    "_/_",
    divide,
    ("divide_double", (DOUBLE, DOUBLE), DOUBLE),
    ("divide_int64", (INT, INT), INT),
    ("divide_uint64", (UINT, UINT), UINT),
)
_operator("_%_", modulo, ("modulo_int64", (INT, INT), INT), ("modulo_uint64", (UINT, UINT), UINT))
_operator("-_", negate, ("negate_double", (DOUBLE,), DOUBLE), ("negate_int64", (INT,), INT))
_operator("_[_]", _refuse, ("index_list", (LIST_A, INT), A), ("index_map", (MAP_AB, A), B))
_operator("@in", contains, ("in_list", (A, LIST_A), BOOL), ("in_map", (A, MAP_AB), BOOL))
_operator("matches", matches, ("matches", (STRING, STRING), BOOL))
STANDARD.add("matches", Overload("matches_string", (STRING, STRING), BOOL, member=True))
STANDARD.add(
    "@not_strictly_false",
    Overload("not_strictly_false", (BOOL,), BOOL, run=lambda value: value is not False, non_strict=True),
)
for _id, _type in (("bytes", BYTES), ("list", LIST_A), ("map", MAP_AB), ("string", STRING)):
    STANDARD.add(
        "size",
        Overload(f"size_{_id}", (_type,), INT),
        Overload(f"{_id}_size", (_type,), INT, member=True),
        singleton=size,
    )
STANDARD.add("type", Overload("type", (A,), type_of(A)), singleton=lambda value: TypeValue(type_name(value)))
STANDARD.add("dyn", Overload("to_dyn", (A,), DYN), singleton=lambda value: value)

_ORDERS: Final = {
    "_<_": ("less", lambda order: order < 0),
    "_<=_": ("less_equals", lambda order: order <= 0),
    "_>_": ("greater", lambda order: order > 0),
    "_>=_": ("greater_equals", lambda order: order >= 0),
}
_ORDERED: Final = (
    ("bool", BOOL, BOOL),
    ("int64", INT, INT),
    ("int64_double", INT, DOUBLE),
    ("int64_uint64", INT, UINT),
    ("uint64", UINT, UINT),
    ("uint64_double", UINT, DOUBLE),
    ("uint64_int64", UINT, INT),
    ("double", DOUBLE, DOUBLE),
    ("double_int64", DOUBLE, INT),
    ("double_uint64", DOUBLE, UINT),
    ("string", STRING, STRING),
    ("bytes", BYTES, BYTES),
    ("timestamp", TIMESTAMP, TIMESTAMP),
    ("duration", DURATION, DURATION),
)


def _ordering(name: str, prefix: str, test: "object") -> None:
    def run(left: Value, right: Value) -> bool:
        return bool(test(compare(left, right)))  # type: ignore[operator]

    overloads = (Overload(f"{prefix}_{id_}", (left, right), BOOL) for id_, left, right in _ORDERED)
    STANDARD.add(name, *overloads, singleton=run)


for _name, (_prefix, _test) in _ORDERS.items():
    _ordering(_name, _prefix, _test)
