"""Files that survive a crash: written whole or not at all, and on disk before the caller goes on.

Every failure is a StateError that names the path and what the operating system said.
"""

import contextlib
import errno
import fcntl
import itertools
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from cdi import OsFileSystem, replace_file, sync_directory
from dra_driver.errors import StateError, explain_os_error

_FILES: Final = OsFileSystem()


def write_file(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Replace a file atomically, and sync it and its directory. Its permissions are `mode`, whatever the umask.

    A crash leaves the old content or the new one, and at most a file with a leading dot and the suffix `.partial`,
    which the next write replaces. When this raises StateError, the old content stands, or, if only the last sync of the
    directory went wrong, the new one. One writer a file: calls for the same path must not overlap.
    """
    partial = _partial(path)
    with _named(path):
        partial.unlink(missing_ok=True)
        replace_file(_FILES, path, data, temporary=partial, mode=mode)
        sync_directory(_FILES, path.parent)


def remove_file(path: Path) -> None:
    """Remove a file, and what a killed writer left of it, and sync its directory. Gone already is success."""
    with _named(path):
        for each in (path, _partial(path)):
            each.unlink(missing_ok=True)
        with contextlib.suppress(FileNotFoundError):
            sync_directory(_FILES, path.parent)


def ensure_directory(path: Path, *, mode: int = 0o755) -> None:
    """Make a directory and those above it, and sync what names those that were missing. It must be writable."""
    with _named(path, ", want a directory that can be written to"):
        missing = list(itertools.takewhile(lambda each: not each.exists(), (path, *path.parents)))
        path.mkdir(parents=True, exist_ok=True, mode=mode)
        for each in missing:
            sync_directory(_FILES, each.parent)
        if not os.access(path, os.W_OK | os.X_OK):
            read_only = os.statvfs(path).f_flag & os.ST_RDONLY
            raise OSError(errno.EROFS if read_only else errno.EACCES, "not writable", str(path))


def sync_names(path: Path) -> None:
    """Return once the names in a directory are on the disk, whoever put them there and did not come to sync them."""
    with _named(path):
        sync_directory(_FILES, path)


def sync_way(path: Path) -> None:
    """Return once a directory is found again after a power cut, whoever made it and those above it.

    That goes as far up as its file system: what is mounted, others keep. So do those whose directories nobody may read.
    """
    with _named(path):
        device = path.stat().st_dev
        for each in path.resolve().parents:
            if each.stat().st_dev != device:
                return
            with contextlib.suppress(PermissionError):
                sync_directory(_FILES, each)


def clear_place(path: Path) -> None:
    """Remove an empty directory that stands where a file belongs; whatever else is there stays.

    Container runtimes make one where they are to mount a file that is not there yet. Raises StateError if it has to
    stay, since there is something in it, say.
    """
    try:
        if stat.S_ISDIR(path.lstat().st_mode):
            path.rmdir()
    except FileNotFoundError:
        return
    except OSError as error:
        problem = explain_os_error(error)
        raise StateError(f"{path}: {problem}, want this directory moved away, since a file belongs there") from error


def remove_directory(path: Path) -> None:
    """Remove a directory with all that is in it, or whatever stands in its place. Gone already is success.

    A link is removed and never followed: what it leads to is somebody else's.
    """
    with _named(path):
        try:
            _remove_tree(path)
        except FileNotFoundError:
            return
        sync_directory(_FILES, path.parent)


@contextlib.contextmanager
def hold_directory(path: Path, part: str = "") -> Iterator[None]:
    """Make a directory, and hold other threads and processes that do the same off until the block ends.

    With `part`, only those that hold that part of it. A file `.lock`, or `.<part>.lock`, stays in it.
    What the block raises is left as it is.
    """
    ensure_directory(path)
    lock = path / (f".{part}.lock" if part else ".lock")
    with _named(lock):
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        with _named(lock):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def read_names(path: Path) -> frozenset[str]:
    """Return the names of what a directory holds; nothing if it is gone."""
    with _named(path):
        try:
            return frozenset(each.name for each in path.iterdir())
        except FileNotFoundError:
            return frozenset()


def _remove_tree(path: Path) -> None:
    if not stat.S_ISDIR(path.lstat().st_mode):
        path.unlink()
        return
    for each in list(path.iterdir()):
        _remove_tree(each)
    path.rmdir()


def _partial(path: Path) -> Path:
    return path.with_name(f".{path.name}.partial")


@contextlib.contextmanager
def _named(path: Path, wanted: str = "") -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StateError(f"{error.filename or path}: {explain_os_error(error)}{wanted}") from error
