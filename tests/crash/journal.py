"""What processes did to a disk, in a file that lies elsewhere: it is what tells, after a power cut, what was synced."""

import os
from pathlib import Path

import msgspec

from tests.crash.durability import Action, Entry, Survivors


class Journal:
    """The journal of `disk`, at `path`. Several processes may write it, one after the other."""

    def __init__(self, path: Path, disk: Path) -> None:
        self.path = path
        self._disk = disk
        self._write = os.write  # as it is before anybody gets in between
        self._descriptor: int | None = None

    def begin(self) -> None:
        """Forget what was done: all that is on the disk now is durable."""
        entries: list[Entry] = []
        folders = ["."]
        for path in sorted(self._disk.rglob("*")):
            name = str(path.relative_to(self._disk))
            if path.is_dir():
                folders.append(name)
                entries.append(Entry(Action.MKDIR, name))
            elif path.is_file():
                written = Entry(Action.WRITE, name, path.read_bytes().decode("latin-1"))
                entries += (Entry(Action.CREATE, name), written, Entry(Action.SYNC, name))
        self.replace([*entries, *(Entry(Action.SYNC, name) for name in folders)])

    def replace(self, entries: list[Entry]) -> None:
        """Take this for what was done."""
        self.path.write_bytes(b"".join(map(_encode, entries)))

    def note(self, action: Action, path: str, more: str = "") -> None:
        """Take down what this process did; it outlives the process."""
        if self._descriptor is None:
            self._descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        self._write(self._descriptor, _encode(Entry(action, path, more)))

    def note_content(self, path: str, descriptor: int) -> None:
        """Take down what a file holds now that is open."""
        self.note(Action.WRITE, path, Path(f"/proc/self/fd/{descriptor}").read_bytes().decode("latin-1"))

    def read(self) -> list[Entry]:
        """Return all of it."""
        return [msgspec.json.decode(line, type=Entry) for line in self.path.read_bytes().splitlines()]


def write_survivors(disk: Path, survivors: Survivors) -> None:
    """Fill a disk that is empty."""
    for name, content in survivors.items():
        if content is None:
            (disk / name).mkdir()
        else:
            (disk / name).write_bytes(content)


def _encode(entry: Entry) -> bytes:
    return msgspec.json.encode(entry) + b"\n"
