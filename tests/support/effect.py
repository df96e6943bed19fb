"""Stops a piece of code at any of its effects, to see what is left: on files, or on whatever counts its own.

For files, an audit hook sees every call before it happens, whichever module makes it, so that nothing is replaced.
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


def go_on(_number: int) -> None:
    """Stop at no effect."""


@dataclass(eq=False)
class Effects:
    """What a piece of code has done to the outside so far, or was about to do when it was stopped."""

    stop: Stop = go_on
    seen: list[str] = field(default_factory=list)

    def reach(self, effect: str) -> None:
        """Count an effect before it happens, and stop it if it shall be."""
        self.seen.append(effect)
        self.stop(len(self.seen) - 1)


class _Hook:
    """The one audit hook of the process: there is no way to take it out again."""

    def __init__(self) -> None:
        self.watching: list[tuple[Path, Effects]] = []
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
            for folder, effects in self.watching:
                _notice(effects, folder, event, arguments[0])


def _notice(effects: Effects, folder: Path, event: str, path: Any) -> None:
    if not isinstance(path, int) and os.fsdecode(path).startswith(f"{folder}/"):
        effects.reach(f"{event} {os.path.relpath(os.fsdecode(path), folder)}")


_HOOK: Final = _Hook()


@contextlib.contextmanager
def watched(folder: Path, stop: Stop = go_on) -> Iterator[Effects]:
    """Watch the effects on files below a folder while the block runs: call and path of each."""
    _HOOK.install()
    effects = Effects(stop)
    _HOOK.watching.append((folder, effects))
    try:
        yield effects
    finally:
        _HOOK.watching.remove((folder, effects))


def killed_at(number: int) -> Stop:
    """Kill at an effect: it and all that follow do not happen."""

    def stop(index: int) -> None:
        if index >= number:
            raise Killed

    return stop


def failed_at(number: int, error: Exception) -> Stop:
    """Let one effect fail."""

    def stop(index: int) -> None:
        if index == number:
            raise error

    return stop


def refused_at(number: int, code: int) -> Stop:
    """Let the operating system refuse one effect."""
    return failed_at(number, OSError(code, os.strerror(code)))
