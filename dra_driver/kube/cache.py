"""A view of a kind in memory that follows the API server, and shows our own writes at once."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, contextmanager
from typing import Generic, assert_never

from dra_driver.kube.resource import ObjectKey, T
from dra_driver.kube.view import Keys, View
from dra_driver.kube.watch import Applied, Change, Deleted, Replaced, Watch


class Subscription:
    """Which objects changed. Changes between two steps come together, so a slow reader costs no memory."""

    def __init__(self) -> None:
        self._changed: set[ObjectKey] = set()
        self._wake = asyncio.Event()

    def notify(self, keys: Keys) -> None:
        """Tell the reader."""
        self._changed |= keys
        self._wake.set()

    async def next(self) -> Keys:
        """Wait for changes and return the keys of all objects that changed since the last call."""
        await self._wake.wait()
        self._wake.clear()
        changed, self._changed = frozenset(self._changed), set()
        return changed

    async def __aiter__(self) -> AsyncIterator[Keys]:
        while True:
            yield await self.next()


class Cache(Generic[T]):
    """The objects of a watch. Someone runs `run`; what is known stays while the API server is away."""

    def __init__(self, watch: Watch[T], *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._watch = watch
        self._monotonic = monotonic
        self._view: View[T] = View()
        self._synced = asyncio.Event()
        self._subscriptions: set[Subscription] = set()
        self._listeners: list[Callable[[Keys], None]] = []
        self._progress = asyncio.Event()

    async def run(self) -> None:
        """Follow the API server until cancelled. An API server that is away, now or later, is waited for."""
        async with aclosing(self._watch.changes()) as changes:
            async for change in changes:
                self._notify(self._absorb(change))
                self._synced.set()
                self._progress.set()
                self._progress = asyncio.Event()

    async def synced(self) -> None:
        """Wait until everything was listed once."""
        await self._synced.wait()

    @property
    def is_synced(self) -> bool:
        """Whether everything was listed once."""
        return self._synced.is_set()

    def get(self, name: str, namespace: str = "") -> T | None:
        """Return an object, or None if there is none."""
        return self._view.objects.get(ObjectKey(namespace, name))

    def list(self) -> tuple[T, ...]:
        """Return all objects, by namespace and name."""
        return tuple(value for _, value in sorted(self._view.objects.items(), key=lambda item: item[0]))

    @contextmanager
    def subscribe(self) -> Iterator[Subscription]:
        """Hear of every object that changes from now on, by the API server or by ourselves."""
        subscription = Subscription()
        self._subscriptions.add(subscription)
        try:
            yield subscription
        finally:
            self._subscriptions.discard(subscription)

    def listen(self, notify: Callable[[Keys], None]) -> None:
        """Have `notify` called for every object that changes from now on, before anything else sees the change."""
        self._listeners.append(notify)

    async def reached(self, version: str) -> None:
        """Wait until the watch has told everything up to a resource version of this kind, own writes not counted.

        A version that is no number is not waited for.
        """
        while not self._view.has_seen(version):
            await self._progress.wait()

    def record_write(self, value: T) -> None:
        """Show what an own write returned, until the watch tells something newer. Not for what a dry run returned."""
        self._notify(self._view.record_write(value, self._monotonic()))

    def record_delete(self, value: T) -> None:
        """Hide an object that we deleted."""
        self._notify(self._view.record_delete(value, self._monotonic()))

    def _absorb(self, change: Change[T]) -> Keys:
        now = self._monotonic()
        match change:
            case Replaced(objects, version):
                return self._view.replace(objects, version, now)
            case Applied(value):
                return self._view.apply(value, now)
            case Deleted(value):
                return self._view.delete(value, now)
            case _:
                assert_never(change)

    def _notify(self, keys: Keys) -> None:
        if keys:
            for listener in self._listeners:
                listener(keys)
            for subscription in self._subscriptions:
                subscription.notify(keys)
