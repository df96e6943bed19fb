"""The system calls that write and read spec files, one method each, so that a test can let any of them fail."""

import os
from pathlib import Path
from typing import Protocol


class FileSystem(Protocol):
    """What the spec store does to a disk. Every method raises OSError."""

    def create(self, path: Path) -> int:
        """Create a file that does not exist yet and return its descriptor, open for writing."""
        ...

    def write(self, descriptor: int, data: bytes) -> int:
        """Write some of the data and return how many bytes."""
        ...

    def chmod(self, descriptor: int, mode: int) -> None:
        """Set the permissions, whatever the umask."""
        ...

    def sync(self, descriptor: int) -> None:
        """Return once a file or the entries of a directory are on the disk."""
        ...

    def close(self, descriptor: int) -> None:
        """Give the descriptor back."""
        ...

    def replace(self, source: Path, target: Path) -> None:
        """Rename, over an existing target too, so that everybody sees either the old file or the new."""
        ...

    def remove(self, path: Path) -> None:
        """Remove a file."""
        ...

    def open_directory(self, path: Path) -> int:
        """Return the descriptor of a directory, to sync it."""
        ...

    def read(self, path: Path) -> bytes:
        """Return the content of a file."""
        ...

    def list_names(self, path: Path) -> list[str]:
        """Return the names in a directory, in any order."""
        ...


def _open_without_waiting(path: str, flags: int) -> int:
    """Open a file; a FIFO in its place reads as empty, instead of waiting for somebody to write to it."""
    return os.open(path, flags | os.O_NONBLOCK)


class OsFileSystem:
    """The real one."""

    def create(self, path: Path) -> int:
        """See FileSystem."""
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)

    def write(self, descriptor: int, data: bytes) -> int:
        """See FileSystem."""
        return os.write(descriptor, data)

    def chmod(self, descriptor: int, mode: int) -> None:
        """See FileSystem."""
        os.fchmod(descriptor, mode)

    def sync(self, descriptor: int) -> None:
        """See FileSystem."""
        os.fsync(descriptor)

    def close(self, descriptor: int) -> None:
        """See FileSystem."""
        os.close(descriptor)

    def replace(self, source: Path, target: Path) -> None:
        """See FileSystem."""
        source.replace(target)

    def remove(self, path: Path) -> None:
        """See FileSystem."""
        path.unlink()

    def open_directory(self, path: Path) -> int:
        """See FileSystem."""
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def read(self, path: Path) -> bytes:
        """See FileSystem."""
        with open(path, "rb", opener=_open_without_waiting) as file:
            return file.read()

    def list_names(self, path: Path) -> list[str]:
        """See FileSystem."""
        return [entry.name for entry in path.iterdir()]
