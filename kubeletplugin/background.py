"""Runs what goes on beside the calls of the kubelet, and decides what an error there means.

What the machine or the API server brings about (no descriptors, memory or threads left, a disk that is full or
read-only, a refusal) passes, or a person mends it while the plugin runs on: the task begins anew after growing pauses,
one line tells of it, and readiness does if it lasts. Anything else is a bug, and who knows what it left behind: the
process ends in order, and the next one begins with what is on the disk.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import structlog

from dra_driver.errors import DraError, explain_os_error
from dra_driver.kube.backoff import Backoff

log = structlog.get_logger(__name__)

NO_THREAD: Final = "can't start new thread"
"""What Python says, in a RuntimeError, where the system has no more threads to give."""


class Task(StrEnum):
    """What goes on in the background."""

    PUBLISHER = "publisher"
    DISCOVERY = "discovery"
    EVENTS = "events"
    CLAIM_STATUS = "claim-status"
    CLAIM_FOLLOWER = "claim-follower"
    UPKEEP = "upkeep"


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How errors are borne, in seconds.

    - `retry`: the pauses before a task begins anew
    - `well_s`: a task that has run for so long is well again
    - `lasting_s`: what lasts for so long is told to whoever asks whether the plugin is ready
    """

    retry: Backoff = field(default_factory=lambda: Backoff(initial_s=0.2, max_s=10.0))
    well_s: float = 5.0
    lasting_s: float = 30.0


@dataclass(slots=True)
class _Trouble:
    since_s: float
    problem: str
    failures: int = 0


class BugError(Exception):
    """A background task met something that nobody foresaw, which is the cause of this."""


class Background:
    """The tasks, and which of them are in trouble. To be used in one event loop.

    `count_failure` is told each time that a task fails.
    """

    def __init__(
        self,
        count_failure: Callable[[Task], None] = lambda _: None,
        patience: Patience | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._count_failure = count_failure
        self._patience = patience or Patience()
        self._clock = clock
        self._troubles: dict[Task, _Trouble] = {}
        self._bug: BugError | None = None

    async def run(self, task: Task, work: Callable[[], Awaitable[None]], stop: asyncio.Event) -> None:
        """Do the work, and begin anew what fails, until this is cancelled. A bug ends it, and sets `stop`."""
        while self._bug is None:
            well = asyncio.get_running_loop().call_later(self._patience.well_s, self._note_well, task)
            try:
                await work()
            except Exception as error:  # noqa: BLE001 - the supervisor: it knows what passes, and the rest ends us
                self._count_failure(task)
                if (problem := explain_passing(error)) is None:
                    self._end(task, error, stop)
                    return
                delay_s = self._note_trouble(task, problem)
            else:
                return
            finally:
                well.cancel()
            await asyncio.sleep(delay_s)

    def raise_bug(self) -> None:
        """Raise BugError if a task met a bug."""
        if self._bug is not None:
            raise self._bug

    async def check(self) -> str | None:
        """Say in one line which tasks have been in trouble for long, and why; None if none is."""
        now_s = self._clock()
        lasting = {
            task: trouble.problem
            for task, trouble in sorted(self._troubles.items())
            if now_s - trouble.since_s >= self._patience.lasting_s
        }
        return "; ".join(f"{task}: {problem}" for task, problem in lasting.items()) or None

    def _note_trouble(self, task: Task, problem: str) -> float:
        """Take note of it, and return how many seconds to wait."""
        known = self._troubles.get(task)
        trouble = self._troubles.setdefault(task, _Trouble(self._clock(), problem))
        trouble.problem = problem
        delay_s = self._patience.retry.delay_s(trouble.failures, random.random())  # noqa: S311 - spreads load
        trouble.failures += 1
        if known is None:
            log.warning("background task interrupted", task=task, error=problem)
        return delay_s

    def _note_well(self, task: Task) -> None:
        if (trouble := self._troubles.pop(task, None)) is not None:
            log.info("background task goes on", task=task, failures=trouble.failures)

    def _end(self, task: Task, error: Exception, stop: asyncio.Event) -> None:
        log.error("background task met a bug, plugin is to end", task=task, error=repr(error))
        self._bug = BugError(f"background task {task}: unforeseen {type(error).__name__}")
        self._bug.__cause__ = error
        stop.set()


def explain_passing(error: Exception) -> str | None:
    """Say in one line what the machine or the API server refused; None if this error is no such thing, but a bug."""
    match error:
        case ExceptionGroup():
            problems = [explain_passing(each) for each in error.exceptions]
            known = [problem for problem in problems if problem is not None]
            return "; ".join(dict.fromkeys(known)) if len(known) == len(problems) else None
        case DraError():
            return str(error)
        case OSError():
            problem = explain_os_error(error)
            return f"{error.filename}: {problem}" if error.filename else problem
        case MemoryError():
            return "cannot allocate memory"
        case RuntimeError() if str(error) == NO_THREAD:
            return "no thread left"
        case _:
            return None
