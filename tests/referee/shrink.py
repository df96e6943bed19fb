"""Cut a problem down to what its disagreement needs."""

import time
from collections.abc import Callable, Iterator
from typing import Any

from tests.referee.expression import Tree, reductions, render
from tests.referee.process import Question

# Problems that take seconds to answer are cut down as far as this goes.
_PATIENCE_S = 60.0

Disagrees = Callable[[Question], bool]

# Without these an object is none, and what disagrees about it is another thing.
_QUESTION = {"op", "expr", "text", "timeoutMs"}
_OBJECT = {"metadata", "name", "namespace", "spec", "node", "driver", "pool", "generation", "resourceSliceCount"}
_KEPT = frozenset(_QUESTION | _OBJECT)


def shrink_expression(question: Question, tree: Tree, disagrees: Disagrees, *, tries: int = 400) -> Question:
    """Shrink a selector and then the rest of its question. `disagrees` asks whether one still does, `tries` times."""
    asked = _Budget(disagrees, tries)
    best: Question = question
    while True:
        smaller = next(
            (tree for tree in reductions(tree) if asked({**best, "expr": render(tree)})),
            None,
        )
        if smaller is None:
            return _shrink_object(best, asked)
        tree, best = smaller, {**best, "expr": render(smaller)}


def shrink_question(question: Question, disagrees: Disagrees, *, tries: int = 2000) -> Question:
    """Shrink a question by leaving out list items and fields."""
    return _shrink_object(question, _Budget(disagrees, tries))


class _Budget:
    """Counts how often it was asked and for how long, and says no when that is too much."""

    def __init__(self, disagrees: Disagrees, tries: int) -> None:
        self._disagrees = disagrees
        self._left = tries
        self._deadline = time.monotonic() + _PATIENCE_S

    def __call__(self, question: Question) -> bool:
        self._left -= 1
        return self._left >= 0 and time.monotonic() < self._deadline and self._disagrees(question)


def _shrink_object(question: Question, disagrees: Disagrees) -> Question:
    best = dict(question)
    while True:
        smaller = next((candidate for candidate in _smaller(best) if disagrees(candidate)), None)
        if smaller is None:
            return best
        best = smaller


def _smaller(value: Any) -> Iterator[Any]:
    """Give copies with something left out, the largest parts first."""
    if isinstance(value, dict):
        yield from _smaller_dict(value)
    elif isinstance(value, list):
        yield from _smaller_list(value)


def _smaller_dict(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for key in value:
        if key not in _KEPT:
            yield {other: item for other, item in value.items() if other != key}
    for key, item in value.items():
        for smaller in _smaller(item):
            yield {**value, key: smaller}


def _smaller_list(value: list[Any]) -> Iterator[list[Any]]:
    half = len(value) // 2
    if half > 1:
        yield value[half:]
        yield value[:half]
    for index in range(len(value)):
        yield value[:index] + value[index + 1 :]
    for index, item in enumerate(value):
        for smaller in _smaller(item):
            yield [*value[:index], smaller, *value[index + 1 :]]
