"""File systems that stop a spec store at any of its system calls."""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from cdi import OsFileSystem, SpecStore
from tests.support.cdi_spec import a_full_spec


class StoppingFileSystem(OsFileSystem):
    """The real file system; call number `at`, counted from 0, runs `stop` instead. Writes are three bytes at most.

    `calls` are the names of the calls so far, and what they were about.
    """

    def __init__(self, at: int, stop: Callable[[], None]) -> None:
        self.calls: list[str] = []
        self._at = at
        self._stop = stop

    def _count(self, call: str) -> None:
        self.calls.append(call)
        if len(self.calls) == self._at + 1:
            self._stop()

    def create(self, path: Path) -> int:
        self._count("create")
        return super().create(path)

    def write(self, descriptor: int, data: bytes) -> int:
        self._count("write")
        return super().write(descriptor, data[: max(3, len(data) // 2)])

    def chmod(self, descriptor: int, mode: int) -> None:
        self._count("chmod")
        super().chmod(descriptor, mode)

    def sync(self, descriptor: int) -> None:
        self._count("sync")
        super().sync(descriptor)

    def close(self, descriptor: int) -> None:
        super().close(descriptor)  # a failed close gives the descriptor back as well
        self._count("close")

    def replace(self, source: Path, target: Path) -> None:
        self._count("replace")
        super().replace(source, target)

    def remove(self, path: Path) -> None:
        self._count("remove")
        super().remove(path)

    def open_directory(self, path: Path) -> int:
        self._count("open_directory")
        return super().open_directory(path)

    def read(self, path: Path) -> bytes:
        self._count("read")
        return super().read(path)


def kill_self() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    """Write the full spec as `claim` into the first argument, a directory, and die at the call of the second."""
    SpecStore(Path(sys.argv[1]), StoppingFileSystem(int(sys.argv[2]), kill_self)).write_spec("claim", a_full_spec())


if __name__ == "__main__":
    main()
