"""Room for deep trees: Python's limit on nested calls, raised when a deep expression first needs it.

It stays raised, since lowering it while another thread is deep in calls ends the process: Python aborts where it
cannot even tell of the overflow. The readers of JSON and YAML refuse hostile nesting at the new limit as at the old
one; half of the stack that Linux gives a thread suffices for either.
"""

import sys
from collections.abc import Callable
from typing import Final, TypeVar

LIMIT: Final = 5_000
"""A thousand more than the deepest tree that the parser lets through takes, in any stage."""

_T = TypeVar("_T")


def with_room(act: Callable[[], _T]) -> _T:
    """Call `act`, and call it again with room for deep trees if it runs out of nested calls. `act` must be pure."""
    try:
        return act()
    except RecursionError:
        sys.setrecursionlimit(max(LIMIT, sys.getrecursionlimit()))
        return act()
