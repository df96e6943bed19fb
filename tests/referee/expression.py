"""Expressions as trees of text, so that a disagreement can be cut down to its core."""

from collections.abc import Iterator
from typing import TypeAlias

Tree: TypeAlias = "tuple[str | Tree, ...]"

# What may stand for a part whose own parts do not explain the disagreement.
_SMALL: tuple[Tree, ...] = (("1",), ('"a"',), ("true",), ("[]",), ("dyn(1)",))


def render(tree: Tree) -> str:
    """Write the expression."""
    return "".join(part if isinstance(part, str) else render(part) for part in tree)


def reductions(tree: Tree) -> Iterator[Tree]:
    """Give smaller trees, the smallest first: each part replaced by a part of itself or by a small expression."""
    seen: set[str] = {render(tree)}
    for candidate in sorted(_reductions(tree), key=lambda candidate: len(render(candidate))):
        if (text := render(candidate)) not in seen:
            seen.add(text)
            yield candidate


def _reductions(tree: Tree) -> Iterator[Tree]:
    yield from _descendants(tree)
    yield from (small for small in _SMALL if len(render(small)) < len(render(tree)))
    for index, part in enumerate(tree):
        if not isinstance(part, str):
            for smaller in _reductions(part):
                yield (*tree[:index], smaller, *tree[index + 1 :])


def _descendants(tree: Tree) -> Iterator[Tree]:
    for part in tree:
        if not isinstance(part, str):
            yield part
            yield from _descendants(part)
