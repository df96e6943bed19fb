"""What happens to a plugin's machine while it runs: no descriptors left, a disk that is full or read-only.

Disks are mounted for the one process alone, in a namespace of its own, and nobody else sees them.
"""

import contextlib
import errno
import os
import resource
import subprocess
from collections.abc import Iterator
from functools import cache
from itertools import count
from pathlib import Path
from typing import Final

_OWN_DISK: Final = 'mount -t tmpfs -o size=256k,mode=755 disk "$1" && shift && exec "$@"'
_READ_ONLY: Final = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1"'
_USER: Final = os.geteuid() != 0
_NAMESPACE: Final = ("unshare", "--mount", *(("--user", "--map-root-user") if _USER else ()))


@cache
def may_mount() -> bool:
    """Whether a process here may have disks of its own."""
    return subprocess.run((*_NAMESPACE, "true"), check=False, capture_output=True).returncode == 0


def on_own_disk(folder: Path) -> tuple[str, ...]:
    """Return the command that runs the one that follows it with an empty, small disk in place of a folder."""
    return (*_NAMESPACE, "sh", "-c", _OWN_DISK, "sh", str(folder))


def beside(pid: int) -> tuple[str, ...]:
    """Return the command that runs the one that follows it on the disks of that process."""
    return ("nsenter", "--target", str(pid), "--mount", *(("--user", "--preserve-credentials") if _USER else ()))


def seen_by(pid: int, folder: Path) -> Path:
    """Return the folder as that process sees it."""
    return Path(f"/proc/{pid}/root{folder}")


def fill(folder: Path) -> Path:
    """Fill the disk of a folder to the last byte, and return the file to remove when there shall be room again."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (4096, 1):
            with contextlib.suppress(OSError):
                while file.write(b"\0" * size):
                    pass
    return ballast


@contextlib.contextmanager
def read_only(pid: int, folder: Path) -> Iterator[None]:
    """Let a process that was started by `on_own_disk` find a folder read-only until the block ends."""
    subprocess.run((*beside(pid), "sh", "-c", _READ_ONLY, "sh", str(folder)), check=True)
    try:
        yield
    finally:
        subprocess.run((*beside(pid), "umount", str(folder)), check=True)


@contextlib.contextmanager
def without_descriptors(pid: int) -> Iterator[None]:
    """Let a process open nothing until the block ends; what is open stays so."""
    taken = {int(path.name) for path in Path(f"/proc/{pid}/fd").iterdir()}
    soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (next(n for n in count() if n not in taken), hard))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))


def explain(number: int) -> str:
    """Return what the system says of an error, as the driver writes it."""
    return os.strerror(number).lower()


EMFILE, ENOSPC, EROFS = explain(errno.EMFILE), explain(errno.ENOSPC), explain(errno.EROFS)
