"""Stops a piece of code at any of its effects on the files of a folder, to see what is left.

An audit hook sees every call before it happens, whichever module makes it, so that nothing has to be replaced.
Reading is no effect; opening a directory is one, since that is how it is synced.
"""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

_CHANGES: Final = ("os.chmod", "os.mkdir", "os.remove", "os.rename", "os.rmdir")
_WRITES: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_DIRECTORY

Stop = Callable[[int], None]
"""Asked before each effect, with its number from 0 on; raises what stops it."""


class Killed(BaseException):
    """The process is dead: nothing that it would have done afterwards happens."""


@dataclass(eq=False)
class Effects:
    """The effects below `folder` so far: call and path of each."""

    folder: Path
    stop: Stop
    seen: list[str] = field(default_factory=list)

    def notice(self, event: str, path: Any) -> None:
        """Count a call if it is about the folder, and stop it if it shall be."""
        if isinstance(path, int) or not os.fsdecode(path).startswith(f"{self.folder}/"):
            return
        self.seen.append(f"{event} {os.path.relpath(os.fsdecode(path), self.folder)}")
        self.stop(len(self.seen) - 1)


class _Hook:
    """The one audit hook of the process: there is no way to take it out again."""

    def __init__(self) -> None:
        self.watching: list[Effects] = []
        self._installed = False

    def install(self) -> None:
        if not self._installed:
            self._installed = True
            sys.addaudithook(self._audit)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.watching:
            return
        opens = event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITES
        if opens or event in _CHANGES:
            for effects in self.watching:
                effects.notice(event, arguments[0])


_HOOK: Final = _Hook()


@contextlib.contextmanager
def watched(folder: Path, stop: Stop = lambda _: None) -> Iterator[Effects]:
    """Watch the effects below a folder while the block runs."""
    _HOOK.install()
    effects = Effects(folder, stop)
    _HOOK.watching.append(effects)
    try:
        yield effects
    finally:
        _HOOK.watching.remove(effects)


def killed_at(number: int) -> Stop:
    """Kill at an effect: it and all that follow do not happen."""

    def stop(index: int) -> None:
        if index >= number:
            raise Killed

    return stop


def refused_at(number: int, code: int) -> Stop:
    """Let the operating system refuse one effect."""

    def stop(index: int) -> None:
        if index == number:
            raise OSError(code, os.strerror(code))

    return stop
