"""Room for deep trees: Python's limit on nested calls, raised only while a deep expression needs it.

It is put back afterwards, because others rely on it: the readers of JSON and YAML refuse hostile nesting by it, and
nesting in C takes stack, which pure Python calls do not.
"""

import sys
import threading
from collections.abc import Callable
from typing import Final, TypeVar

LIMIT: Final = 8_000
"""More than the deepest tree that the parser lets through takes, in any stage."""

_T = TypeVar("_T")

_lock = threading.Lock()
_users: list[int] = []


def with_room(act: Callable[[], _T]) -> _T:
    """Call `act`, and call it again with room for deep trees if it runs out of nested calls. `act` must be pure."""
    try:
        return act()
    except RecursionError:
        _enter()
        try:
            return act()
        finally:
            _leave()


def _enter() -> None:
    """Raise the limit. Threads that are deep at once share it, and the last one puts it back."""
    with _lock:
        _users.append(sys.getrecursionlimit())
        sys.setrecursionlimit(max(LIMIT, _users[0]))


def _leave() -> None:
    with _lock:
        first = _users[0]
        _users.pop()
        if not _users:
            sys.setrecursionlimit(first)
