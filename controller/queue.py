"""Which Pods are to be decided next, and which wait for something to change."""

import asyncio
from collections.abc import Iterable

from controller.metric import PodState
from dra_driver.kube.resource import ObjectKey


class Queue:
    """Pods by key. Those that were refused wait until `retry_refused`, others come in order.

    Nothing is added twice: a Pod that changes while it is being decided or written is decided once more afterwards.
    """

    def __init__(self) -> None:
        self._ready: dict[ObjectKey, None] = {}
        self._refused: set[ObjectKey] = set()
        self._busy: set[ObjectKey] = set()
        self._again: set[ObjectKey] = set()
        self._timers: dict[ObjectKey, asyncio.TimerHandle] = {}
        self._deciding: ObjectKey | None = None
        self._wake = asyncio.Event()

    def add(self, key: ObjectKey) -> None:
        """Have a Pod decided soon."""
        if key in self._busy:
            self._again.add(key)
            return
        self._refused.discard(key)
        self._ready[key] = None
        self._wake.set()

    def add_all(self, keys: Iterable[ObjectKey]) -> None:
        """Have Pods decided soon."""
        for key in keys:
            self.add(key)

    def retry_refused(self) -> None:
        """Have everybody decided again who was refused, or is about to be, since something has changed."""
        if self._deciding is not None:
            self._again.add(self._deciding)
        if self._refused:
            self.add_all(sorted(self._refused))

    def add_later(self, key: ObjectKey, delay_s: float) -> None:
        """Have a Pod decided after a while, if it is not before."""
        handle = self._timers.pop(key, None)
        if handle is not None:
            handle.cancel()
        self._timers[key] = asyncio.get_running_loop().call_later(delay_s, self._ring, key)

    async def next(self) -> ObjectKey:
        """Wait for the next Pod. It is busy until `done`, and being decided until `write` or `done`."""
        while not self._ready:
            self._wake.clear()
            await self._wake.wait()
        key = next(iter(self._ready))
        del self._ready[key]
        self._busy.add(key)
        self._deciding = key
        return key

    def write(self, key: ObjectKey) -> None:
        """Say that a Pod was decided, and what was decided is being written."""
        if self._deciding == key:
            self._deciding = None

    def done(self, key: ObjectKey, *, refused: bool = False) -> None:
        """Say that a Pod was decided, and what was decided is written; `refused` ones wait for a change."""
        self.write(key)
        self._busy.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)
        elif refused:
            self._refused.add(key)

    def forget(self, key: ObjectKey) -> None:
        """Decide a Pod no more, unless it is busy."""
        self._ready.pop(key, None)
        self._refused.discard(key)
        self._again.discard(key)
        handle = self._timers.pop(key, None)
        if handle is not None:
            handle.cancel()

    def clear(self) -> None:
        """Forget everything."""
        for handle in self._timers.values():
            handle.cancel()
        self._deciding = None
        for each in (self._ready, self._refused, self._busy, self._again, self._timers):
            each.clear()

    def sizes(self) -> dict[PodState, int]:
        """Count the Pods by what they wait for."""
        return {
            PodState.QUEUED: len(self._ready),
            PodState.WRITING: len(self._busy),
            PodState.REFUSED: len(self._refused),
        }

    def _ring(self, key: ObjectKey) -> None:
        self._timers.pop(key, None)
        self.add(key)
