"""How much there is in lists and maps that a single call would look through, before it does.

Kubernetes' cost model counts the elements of a list, not what is in them, so that a cheap call may compare a list of
long lists for minutes. Such calls end the evaluation instead.
"""

from collections.abc import Callable
from typing import Final

from dra_driver.cel.error import OverLimit
from dra_driver.cel.value import LISTS, MAPS, Value

MAX_WEIGHT: Final = 300_000
MAX_PRINTED: Final = 100_000
_CONTAINERS: Final = LISTS + MAPS


def weight(value: Value) -> int:
    """Count the elements in a value, in all depths. Lists that are in a value many times are looked at once."""
    return _weight(value, {})


def _weight(value: Value, known: dict[int, int]) -> int:
    if not isinstance(value, _CONTAINERS):
        return 1
    found = known.get(id(value))
    if found is not None:
        return found
    elements = [part for pair in value.items() for part in pair] if isinstance(value, MAPS) else value
    total = 1 + len(value) + sum(_weight(each, known) for each in elements if isinstance(each, _CONTAINERS))
    known[id(value)] = total
    return total


def weigh_nothing(_: list[Value]) -> None:
    """Let a call through whose cost bounds what it looks at."""


def weigh_pair(values: list[Value]) -> None:
    """Refuse to compare what is too much. Raises OverLimit."""
    if isinstance(values[0], _CONTAINERS) and isinstance(values[1], _CONTAINERS):
        check_weight(min(weight(values[0]), weight(values[1])))


def _weigh_each(values: list[Value]) -> None:
    check_weight(weight(values[0]))


def _weigh_second(values: list[Value]) -> None:
    check_weight(
        min(weight(values[0]) * len(values[1]), weight(values[1])) if isinstance(values[1], _CONTAINERS) else 0
    )


def _weigh_products(values: list[Value]) -> None:
    left, right = values[0], values[-1]
    if isinstance(left, LISTS) and isinstance(right, LISTS):
        check_weight(min(weight(left) * len(right), weight(right) * len(left)))


def check_weight(elements: int, limit: int = MAX_WEIGHT) -> None:
    """Refuse to look at too many elements at once. Raises OverLimit."""
    if elements > limit:
        raise OverLimit(f"looks at {elements} elements at once, want at most {limit}")


WEIGHED: Final[dict[str, Callable[[list[Value]], None]]] = {
    "@in": _weigh_second,
    **dict.fromkeys(("indexOf", "lastIndexOf", "includes", "flatten"), _weigh_each),
    "format": lambda values: check_weight(weight(values[-1]), MAX_PRINTED),
    **dict.fromkeys(("sets.contains", "sets.intersects", "sets.equivalent", "distinct"), _weigh_products),
}
