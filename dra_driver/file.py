"""Files that survive a crash: written whole or not at all, and on disk before the caller goes on.

Every failure is a StateError that names the path and what the operating system said.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from dra_driver.errors import StateError


def write_file(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Replace a file atomically and syncs it and its directory.

    A crash leaves the old content or the new one, and at most a file with a leading dot and the suffix `.partial`,
    which the next write replaces. When this raises StateError, the old content stands.
    """
    partial = path.with_name(f".{path.name}.partial")
    with _named(path):
        try:
            _write_synced(partial, data, mode)
            partial.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                partial.unlink(missing_ok=True)
            raise
        _sync_directory(path.parent)


def remove_file(path: Path) -> None:
    """Remove a file and syncs its directory. A file that is gone already is success."""
    with _named(path):
        try:
            path.unlink()
        except FileNotFoundError:
            return
        _sync_directory(path.parent)


def ensure_directory(path: Path, *, mode: int = 0o755) -> None:
    """Make a directory and those above it. One that exists must be writable."""
    with _named(path):
        path.mkdir(parents=True, exist_ok=True, mode=mode)
    if not os.access(path, os.W_OK | os.X_OK):
        raise StateError(f"{path}: not writable")


def remove_directory(path: Path) -> None:
    """Remove a directory and the files in it. One that is gone already is success."""
    with _named(path):
        try:
            files = list(path.iterdir())
        except FileNotFoundError:
            return
        for file in files:
            file.unlink(missing_ok=True)
        path.rmdir()
        _sync_directory(path.parent)


def _write_synced(path: Path, data: bytes, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StateError(f"{error.filename or path}: {error.strerror}") from error
