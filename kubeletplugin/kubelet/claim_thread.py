"""Threads for blocking work on claims: one a claim at most, so that a device that hangs costs one of them and not all.

The kubelet gives up a call after a while and comes again, for hours if need be. A call that waited in a thread for the
one before would keep that thread, and could also go on long after the kubelet had unprepared the claim.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import TypeVar

from kubeletplugin.background import NO_THREAD

_T = TypeVar("_T")


class ClaimThreads:
    """Gives each claim its turns in the threads of an executor. To be used in one event loop."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._busy: dict[str, asyncio.Future[None]] = {}

    async def run(self, uid: str, act: Callable[..., _T], *args: object) -> _T:
        """Return what `act` returns in a thread, once the claim's work before it is over.

        If this is cancelled, what has begun goes on and keeps the claim busy; what has not never begins.
        """
        loop = asyncio.get_running_loop()
        while (busy := self._busy.get(uid)) is not None:
            await asyncio.wait([busy])
        job = self._submit(act, *args)
        self._busy[uid] = loop.create_future()
        job.add_done_callback(lambda _: loop.call_soon_threadsafe(self._end, uid))
        try:
            return await asyncio.shield(asyncio.wrap_future(job))
        except asyncio.CancelledError:
            job.cancel()
            raise

    def _submit(self, act: Callable[..., _T], *args: object) -> Future[_T]:
        given_up = threading.Event()

        def work() -> _T:
            if given_up.is_set():
                raise RuntimeError(NO_THREAD)
            return act(*args)

        try:
            return self._executor.submit(work)
        except RuntimeError:
            given_up.set()  # no thread could be started, but it waits for one that is there, and nobody for it
            raise

    def _end(self, uid: str) -> None:
        self._busy.pop(uid).set_result(None)
