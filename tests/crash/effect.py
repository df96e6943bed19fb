"""Ends this very process at one of its effects on the world: files, hardware, API server.

Which effects there are is found out by running, not listed: the functions of `os` that change something, files that are
opened to be written, calls of the backend that change hardware, and requests to the API server, as they come.
To be installed in a process that is made to die, and never in one that runs tests.
"""

import errno
import os
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import aiohttp

from dra_driver.devices.simulated import SimulatedBackend
from tests.crash.durability import Action
from tests.crash.journal import Journal

_CALLS: Final = (
    *("write", "pwrite", "fsync", "fdatasync", "fchmod", "chmod", "truncate", "ftruncate"),
    *("replace", "rename", "unlink", "remove", "mkdir", "rmdir", "link", "symlink", "mknod"),
)
_SYNCS: Final = ("fsync", "fdatasync")
_ACTIONS: Final = {
    **dict.fromkeys(("unlink", "remove", "rmdir"), Action.REMOVE),
    **dict.fromkeys(("replace", "rename"), Action.RENAME),
    **dict.fromkeys(_SYNCS, Action.SYNC),
    **dict.fromkeys(("write", "pwrite", "ftruncate"), Action.WRITE),
    "mkdir": Action.MKDIR,
}
_WRITES: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


class Moment(StrEnum):
    """When the process ends: before an effect, which is after the one before it, or in the middle of a write.

    It does not end where syncs are refused from an effect on: then the disk reports errors.
    """

    BEFORE = "before"
    TORN = "in the middle of"
    REFUSED = "syncs refused from"


@dataclass(frozen=True, slots=True)
class Point:
    """An effect by its number, counted from 0; one more than there are is the moment after the last."""

    number: int
    moment: Moment = Moment.BEFORE
    signal: int = signal.SIGKILL


class Effects:
    """The effects of this process below `folder`, on hardware and on the API server, while `watch` says so.

    `counts` says of each whether it is counted at all. A journal takes down those on files, watched or not.
    """

    def __init__(
        self, folder: Path, *, counts: Callable[[str], bool] = lambda _: True, journal: Journal | None = None
    ) -> None:
        self.seen: list[str] = []
        self._journal = journal
        self._counts = counts
        self._folder = folder
        self._point: Point | None = None
        self._watching = False
        self._lock = threading.Lock()

    def watch(self, point: Point | None = None) -> None:
        """Count from now on, from 0, and end at a point."""
        self.seen.clear()
        self._point = point
        self._watching = True

    def over(self) -> None:
        """Say that what was to be watched is done: a point that lies beyond it has come."""
        self._watching = False
        if self._point is not None and self._point.number >= len(self.seen):
            end(self._point.signal)

    def install(self) -> None:
        """Get in between. There is no way back."""
        for name in _CALLS:
            setattr(os, name, self._wrapped(name, getattr(os, name)))
        for name in dir(SimulatedBackend):
            if name.startswith(("apply_", "undo_")):
                setattr(SimulatedBackend, name, self._called(name, getattr(SimulatedBackend, name)))
        self._install_requests()
        sys.addaudithook(self._audit)

    def _install_requests(self) -> None:
        request = aiohttp.ClientSession._request

        async def ask(session: aiohttp.ClientSession, method: str, url: Any, **options: Any) -> Any:
            what = f"{method} {str(url).partition('//')[2].partition('/')[2]}"
            if query := options.get("params"):
                what += "?" + "&".join(f"{name}={value}" for name, value in dict(query).items())
            self._notice(f"ask {what}")
            answer = await request(session, method, url, **options)
            self._notice(f"hear {what}")
            return answer

        setattr(aiohttp.ClientSession, "_request", ask)  # noqa: B010 - a method of another class

    def _wrapped(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **options: Any) -> Any:
            if (path := self._inside(arguments[1 if name == "symlink" else 0])) is None:
                return call(*arguments, **options)
            number = self._notice(f"{name} {path}")
            if self._point == Point(number, Moment.TORN, self._signal) and name in ("write", "pwrite"):
                call(arguments[0], arguments[1][: len(arguments[1]) // 2], *arguments[2:])
                end(self._signal)
            if name in _SYNCS and self._refuses(number):
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            answer = call(*arguments, **options)
            if self._journal is not None:
                self._take_down(self._journal, name, path, arguments)
            return answer

        return wrapped

    def _refuses(self, number: int) -> bool:
        return self._point is not None and self._point.moment is Moment.REFUSED and 0 <= self._point.number <= number

    def _take_down(self, journal: Journal, name: str, path: str, arguments: tuple[Any, ...]) -> None:
        action = _ACTIONS.get(name)
        if action is Action.WRITE:
            journal.note_content(path, arguments[0])
        elif action is not None:
            journal.note(action, path, (self._inside(arguments[1]) or "") if action is Action.RENAME else "")

    def _called(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any, **options: Any) -> Any:
            self._notice(f"backend {name}")
            return call(*arguments, **options)

        return called

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open" or not isinstance(arguments[2], int) or not arguments[2] & _WRITES:
            return
        if (path := self._inside(arguments[0])) is not None:
            self._notice(f"open {path}")
            if self._journal is not None and arguments[2] & os.O_CREAT:
                self._journal.note(Action.CREATE, path)

    def _inside(self, path: Any) -> str | None:
        """Return the path below the folder; None if it is elsewhere, or nobody wants to know."""
        if not self._watching and self._journal is None:
            return None
        try:
            found = Path(f"/proc/self/fd/{path}").readlink() if isinstance(path, int) else Path(os.fsdecode(path))
        except OSError:
            return None
        return str(found.relative_to(self._folder)) if found.is_relative_to(self._folder) else None

    def _notice(self, effect: str) -> int:
        if not self._watching or not self._counts(effect):
            return -1
        with self._lock:
            self.seen.append(effect)
            number = len(self.seen) - 1
        if self._point is not None and self._point.moment is Moment.BEFORE and self._point.number == number:
            end(self._point.signal)
        return number

    @property
    def _signal(self) -> int:
        return self._point.signal if self._point is not None else signal.SIGKILL


def end(number: int) -> None:
    """Die or stop in this thread, at this very instruction."""
    signal.pthread_kill(threading.get_ident(), number)


def points(effects: list[str], sent: int = signal.SIGKILL) -> list[Point]:
    """Return every point of a run that had these effects. No write is torn where the process goes on afterwards."""
    before = [Point(number, Moment.BEFORE, sent) for number in range(len(effects) + 1)]
    if sent != signal.SIGKILL:
        return before
    torn = [
        Point(number, Moment.TORN, sent)
        for number, each in enumerate(effects)
        if each.startswith(("write ", "pwrite "))
    ]
    return [*before, *torn]
