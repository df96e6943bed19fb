"""What loops need, counted or not: what their variables become, and what macros build."""

from collections.abc import Iterator

from dra_driver.cel.value import LISTS, MAPS, Map, MutableList, MutableMap, Value, distinct_list


def pairs_of(range_: Value, *, two: bool) -> Iterator[tuple[Value, Value]] | None:
    """Give what the variables of a loop become; None if that is nothing to loop over."""
    if isinstance(range_, LISTS):
        elements = tuple(range_)
        return enumerate(elements) if two else ((element, None) for element in elements)
    if isinstance(range_, MAPS):
        return iter(range_.items())
    return None


def thawed(value: Value) -> Value:
    """Give what an accumulator begins with: an empty list or map is one that a macro may add to."""
    if isinstance(value, LISTS) and not len(value):
        return MutableList()
    if isinstance(value, MAPS) and not len(value):
        return MutableMap({})
    return value


def is_mutable(value: Value) -> bool:
    """Tell whether a macro may add to it."""
    return type(value) is MutableList or type(value) is MutableMap


def frozen(value: Value) -> Value:
    """Give a list or a map that a macro built as one that does not change."""
    if type(value) is MutableList:
        return distinct_list(tuple(value))
    if type(value) is MutableMap:
        return Map.of(value.items())
    return value
