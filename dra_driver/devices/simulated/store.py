"""What exists on a simulated node, such as partitions: one small file each that outlives the process, and the lock.

The name of the file is the truth; its content is for people who look.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dra_driver.file import hold_directory, remove_file, write_file

_SUFFIX = ".json"


class NameStore:
    """Names in a directory: of partitions that exist, or of devices in a mode.

    Raises StateError or OSError if that cannot be read or written.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold other threads and other processes off."""
        with hold_directory(self._directory):
            yield

    def read_names(self) -> frozenset[str]:
        """The names of all partitions that exist."""
        try:
            names = [file.name for file in self._directory.iterdir()]
        except FileNotFoundError:
            return frozenset()
        return frozenset(name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX) and name[0] != ".")

    def write(self, name: str, content: bytes) -> None:
        """Make a partition exist; once this returns it outlives a power cut."""
        write_file(self._directory / f"{name}{_SUFFIX}", content)

    def undo(self, name: str) -> None:
        """Remove a partition. Gone already is success."""
        remove_file(self._directory / f"{name}{_SUFFIX}")
