"""An event loop in which waiting takes no time: the clock jumps to the next thing that is due."""

import asyncio
import selectors
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

T = TypeVar("T")


class _NeverWaiting(selectors.BaseSelector):
    """Finds nothing ready, and tells the loop's clock how long it would have waited."""

    def __init__(self) -> None:
        self.now = 0.0
        self._inner = selectors.DefaultSelector()

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._inner.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._inner.unregister(fileobj)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = self._inner.select(0)
        if ready:
            return ready
        if timeout is None:
            raise RuntimeError("everything waits for something that will never happen")
        self.now += timeout
        return []

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._inner.get_map()

    def close(self) -> None:
        self._inner.close()


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop whose `time` starts at 0 and only moves while everything waits."""

    def __init__(self) -> None:
        self._virtual = _NeverWaiting()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now


def run_virtually(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(coroutine)


def now() -> float:
    """Return the virtual time."""
    return asyncio.get_running_loop().time()
