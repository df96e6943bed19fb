"""Files that are written whole or not at all, and are on the disk before their writer goes on."""

from contextlib import suppress
from pathlib import Path

from cdi.filesystem import FileSystem


def replace_file(files: FileSystem, path: Path, data: bytes, *, temporary: Path, mode: int) -> None:
    """Put `data` in the place of a file, or of none, by way of `temporary`, which lies beside it and is not there yet.

    The permissions are `mode`, whatever the umask. Raises OSError; then the old content stands and `temporary` is gone.
    A writer that is killed leaves the old content or the new one, and at most `temporary`.
    The rename is on the disk once the directory is synced, too.
    """
    descriptor = files.create(temporary)
    try:
        _write_synced(files, descriptor, data, mode)
        files.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            files.remove(temporary)
        raise


def sync_directory(files: FileSystem, directory: Path) -> None:
    """Return once the entries of a directory are on the disk. Raises OSError."""
    descriptor = files.open_directory(directory)
    try:
        files.sync(descriptor)
    finally:
        files.close(descriptor)


def _write_synced(files: FileSystem, descriptor: int, data: bytes, mode: int) -> None:
    try:
        rest = data
        while rest:
            rest = rest[files.write(descriptor, rest) :]
        files.chmod(descriptor, mode)
        files.sync(descriptor)
    finally:
        files.close(descriptor)
