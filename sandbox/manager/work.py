"""Work by key: what is to be looked at again, once each however often it is asked for, and later again if it fails."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, Generic, TypeVar

import structlog

from dra_driver.errors import ApiError
from dra_driver.kube.backoff import Backoff

log = structlog.get_logger(__name__)

_RETRY: Final = Backoff(initial_s=0.02, max_s=5.0)
_WORKERS: Final = 8

K = TypeVar("K", bound=Hashable)


class Work(Generic[K]):
    """A queue whose keys several tasks handle, each key one at a time. ApiError means that it is tried again later."""

    def __init__(self, name: str, handle: Callable[[K], Awaitable[None]]) -> None:
        self._name = name
        self._handle = handle
        self._queue: asyncio.Queue[K] = asyncio.Queue()
        self._queued: set[K] = set()
        self._busy: set[K] = set()
        self._again: set[K] = set()
        self._failures: dict[K, int] = {}

    def add(self, key: K) -> None:
        """Have a key handled, after now. Call it in the event loop's thread."""
        if key in self._busy:
            self._again.add(key)
        elif key not in self._queued:
            self._queued.add(key)
            self._queue.put_nowait(key)

    async def run(self) -> None:
        """Handle keys until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(_WORKERS):
                tasks.create_task(self._run())

    async def _run(self) -> None:
        while True:
            key = await self._queue.get()
            self._queued.discard(key)
            self._busy.add(key)
            try:
                await self._handle(key)
            except ApiError as error:
                self._retry(key, error)
            else:
                self._failures.pop(key, None)
            finally:
                self._busy.discard(key)
            if key in self._again:
                self._again.discard(key)
                self.add(key)

    def _retry(self, key: K, error: ApiError) -> None:
        attempt = self._failures.get(key, 0)
        self._failures[key] = attempt + 1
        delay_s = _RETRY.delay_s(attempt, random.random())  # noqa: S311 - jitter
        log.info("work put off", work=self._name, key=str(key), error=str(error), retry_in_s=round(delay_s, 3))
        asyncio.get_running_loop().call_later(delay_s, self.add, key)
