"""A part of a node: a task that is started, and ended later in order or as by a crash."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import structlog

log = structlog.get_logger(__name__)


class Part:
    """Something that runs beside: started, and ended or cancelled later. What it raises comes out once, at its end."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()

    async def start(
        self, work: Coroutine[Any, Any, None], started: asyncio.Event | None, stop: asyncio.Event | None = None
    ) -> None:
        """Start it, and return when it is `started`. Raises what it raises before."""
        self._stop = stop or asyncio.Event()
        self._task = asyncio.create_task(work)
        self._task.add_done_callback(_tell_end)
        if started is None:
            return
        waiting = asyncio.create_task(started.wait())
        try:
            await asyncio.wait([self._task, waiting], return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        if self._task.done():
            task, self._task = self._task, None
            await task

    async def end(self) -> None:
        """Ask it to end, and wait for that."""
        self._stop.set()
        task, self._task = self._task, None
        if task is not None:
            await task

    async def cancel(self) -> None:
        """Cancel it, and wait for that."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])  # unlike `await task`, it does not take a cancellation of ours for its own
            if not task.cancelled():
                await task


def _tell_end(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("part of a node ended", error=str(error), exc_info=error)
