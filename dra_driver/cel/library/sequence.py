"""Lists, sets and two-variable comprehensions: cel-go's libraries and those of Kubernetes."""

from collections.abc import Callable, Iterable
from typing import Final

from dra_driver.cel.equality import compare, is_comparable, is_equal_quietly
from dra_driver.cel.error import Fault, no_such_overload
from dra_driver.cel.function import Library, Overload
from dra_driver.cel.library.pdq import sort_places
from dra_driver.cel.library.standard import LIST_A, MAP_AB, A, B, add, list_contains
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
)
from dra_driver.cel.value import LISTS, Duration, Map, MutableMap, Uint, Value

LISTS_LIBRARY: Final = Library()
INCLUDES: Final = Library()
MAX_RANGE: Final = 1_000_000
COMPARABLE: Final[dict[str, Type]] = {
    "int": INT,
    "uint": UINT,
    "double": DOUBLE,
    "bool": BOOL,
    "duration": DURATION,
    "timestamp": TIMESTAMP,
    "string": STRING,
    "bytes": BYTES,
}
_ZEROS: Final[dict[str, Value]] = {"int": 0, "uint": Uint(0), "double": 0.0, "duration": Duration(0)}


def slice_list(value: Value, start: int, end: int) -> Value:
    """`list.slice(start, end)`."""
    if start < 0 or end < 0:
        raise Fault(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise Fault(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if len(value) < end:
        raise Fault(f"cannot slice({start}, {end}), list is length {len(value)}")
    return tuple([*value][start:end])


def flatten(value: Value, depth: int = 1) -> Value:
    """`list.flatten(depth)`."""
    if type(depth) is not int or not isinstance(value, LISTS):
        raise no_such_overload("flatten")
    if depth < 0:
        raise Fault("level must be non-negative")
    flat: list[Value] = []
    pending: list[tuple[Iterable[Value], int]] = [(value, depth)]
    while pending:
        elements, left = pending.pop()
        iterator = iter(elements)
        for element in iterator:
            if left > 0 and isinstance(element, LISTS):
                pending += [(iterator, left), (element, left - 1)]
                break
            flat.append(element)
    return tuple(flat)


def sort_list(value: Value) -> Value:
    """`list.sort()`."""
    if not isinstance(value, LISTS):
        raise no_such_overload("sort")
    return sort_by(value, value)


def sort_by(value: Value, keys: Value) -> Value:
    """Sort a list by keys. Not stable; the order of equal keys is that of Go's sort."""
    if not isinstance(value, LISTS) or not isinstance(keys, LISTS):
        raise no_such_overload("sortBy")
    if len(value) != len(keys):
        raise Fault("sortBy: as many keys as elements wanted")
    if not len(keys):
        return value
    elements, ordered = tuple(value), tuple(keys)
    if not is_comparable(ordered[0]):
        raise Fault("list elements must be comparable")
    kind = type(ordered[0])
    if len(ordered) > 1 and any(type(key) is not kind for key in ordered):
        raise Fault("list elements must have the same type")
    return tuple(elements[place] for place in sort_places(len(ordered), _before(ordered)))


def _before(keys: tuple[Value, ...]) -> Callable[[int, int], bool]:
    def before(left: int, right: int) -> bool:
        try:
            return compare(keys[left], keys[right]) < 0
        except Fault:
            return False

    return before


def make_range(count: int) -> Value:
    """`lists.range(count)`."""
    if count < 0:
        raise Fault(f"lists.range: size must be non-negative, got {count}")
    if count > MAX_RANGE:
        raise Fault(f"lists.range: size {count} exceeds maximum allowed ({MAX_RANGE})")
    return tuple(range(count))


def reverse(value: Value) -> Value:
    """`list.reverse()`."""
    return tuple(value)[::-1]


def distinct(value: Value) -> Value:
    """`list.distinct()`."""
    unique: list[Value] = []
    for element in value:
        if not any(is_equal_quietly(element, other) for other in unique):
            unique.append(element)
    return tuple(unique)


def is_sorted(value: Value) -> bool:
    """`list.isSorted()`."""
    previous: Value = None
    for place, element in enumerate(value):
        if not is_comparable(element):
            raise no_such_overload("isSorted")
        if place and _compare_or_none(previous, element) == 1:
            return False
        previous = element
    return True


def _compare_or_none(left: Value, right: Value) -> int | None:
    try:
        return compare(left, right)
    except Fault:
        return None


def _sum(zero: Value) -> Callable[[Value], Value]:
    def run(value: Value) -> Value:
        total = zero
        for element in value:
            total = add(total, element)
        return total

    return run


def _extreme(name: str, worse: int) -> Callable[[Value], Value]:
    def run(value: Value) -> Value:
        best: Value = None
        for place, element in enumerate(value):
            if not is_comparable(element):
                raise no_such_overload(name)
            if not place or _compare_or_none(best, element) == worse:
                best = element
        if not len(value):
            raise Fault(f"{name} called on empty list")
        return best

    return run


def index_of(value: Value, wanted: Value) -> int:
    """`list.indexOf(wanted)`."""
    return next((place for place, element in enumerate(value) if is_equal_quietly(element, wanted)), -1)


def last_index_of(value: Value, wanted: Value) -> int:
    """`list.lastIndexOf(wanted)`."""
    found = index_of(tuple(value)[::-1], wanted)
    return found if found < 0 else len(value) - 1 - found


def includes(value: Value, wanted: Value) -> bool:
    """`attribute.includes(wanted)`: of a list, one of its elements; of another value, itself."""
    if isinstance(value, LISTS):
        return any(is_equal_quietly(element, wanted) for element in value)
    return is_equal_quietly(value, wanted)


def sets_contain(value: Value, part: Value) -> bool:
    """`sets.contains(value, part)`."""
    return all(list_contains(value, element) for element in part)


def sets_equivalent(left: Value, right: Value) -> bool:
    """`sets.equivalent(left, right)`."""
    return sets_contain(left, right) and sets_contain(right, left)


def sets_intersect(left: Value, right: Value) -> bool:
    """`sets.intersects(left, right)`."""
    return any(list_contains(right, element) for element in left)


def insert_all(target: Value, source: Value) -> Value:
    """Add entries to the map that a macro builds."""
    for key, value in source.items():
        target = insert(target, key, value)
    return target


def insert(target: Value, key: Value, value: Value) -> Value:
    """Add an entry to the map that a macro builds."""
    if target.contains(key):
        raise Fault(f"insert failed: key {key!r} already exists")
    if isinstance(target, MutableMap):
        target.insert(key, value)
        return target
    return Map.of([(key, value), *target.items()])


def _member(name: str, id_: str, parameters: tuple[Type, ...], result: Type, run: Callable[..., Value]) -> None:
    LISTS_LIBRARY.add(
        name,
        Overload(id_, parameters, result, member=True, run=run, varargs=len(parameters) > 2),  # noqa: PLR2004 - two sides
    )


def _per_type() -> None:
    for name, type_ in COMPARABLE.items():
        _member("isSorted", f"list_{name}_is_sorted_bool", (list_of(type_),), BOOL, is_sorted)
        _member("max", f"list_{name}_max_{name}", (list_of(type_),), type_, _extreme("max", -1))
        _member("min", f"list_{name}_min_{name}", (list_of(type_),), type_, _extreme("min", 1))
        LISTS_LIBRARY.add(
            "sort",
            Overload(f"list_{type_.name}_sort", (list_of(type_),), list_of(type_), member=True),
            singleton=sort_list,
        )
        LISTS_LIBRARY.add(
            "@sortByAssociatedKeys",
            Overload(f"list_{type_.name}_sortByAssociatedKeys", (LIST_A, list_of(type_)), LIST_A, member=True),
            singleton=sort_by,
        )
    for name, zero in _ZEROS.items():
        type_ = COMPARABLE[name]
        _member("sum", f"list_{name}_sum_{name}", (list_of(type_),), type_, _sum(zero))


_per_type()
_member("slice", "list_slice", (LIST_A, INT, INT), LIST_A, slice_list)
LISTS_LIBRARY.add(
    "flatten",
    Overload("list_flatten", (list_of(LIST_A),), LIST_A, member=True, run=flatten, guard=False),
    Overload("list_flatten_int", (list_of(DYN), INT), list_of(DYN), member=True, run=flatten, guard=False),
)
LISTS_LIBRARY.add("lists.range", Overload("lists_range", (INT,), list_of(INT), run=make_range))
_member("reverse", "list_reverse", (LIST_A,), LIST_A, reverse)
_member("distinct", "list_distinct", (LIST_A,), LIST_A, distinct)
_member("indexOf", "list_a_index_of_int", (LIST_A, A), INT, index_of)
_member("lastIndexOf", "list_a_last_index_of_int", (LIST_A, A), INT, last_index_of)
INCLUDES.add("includes", Overload("list_includes_dyn_dyn", (DYN, DYN), BOOL, member=True, run=includes))
for _name, _run in (("contains", sets_contain), ("equivalent", sets_equivalent), ("intersects", sets_intersect)):
    LISTS_LIBRARY.add(f"sets.{_name}", Overload(f"list_sets_{_name}_list", (LIST_A, LIST_A), BOOL, run=_run))
LISTS_LIBRARY.add(
    "cel.@mapInsert",
    Overload("@mapInsert_map_key_value", (MAP_AB, A, B), MAP_AB, run=insert, varargs=True),
    Overload("@mapInsert_map_map", (MAP_AB, MAP_AB), MAP_AB, run=insert_all),
)
