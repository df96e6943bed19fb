"""The claim records on disk: one file a claim, written whole, synced, and read once at start.

The process that holds the plugin directory's lock is the only one that writes them, so what is in memory is what is on
disk. The cost of a write does not grow with the number of claims.
"""

import contextlib
import itertools
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dra_driver.errors import StateError, explain_os_error
from dra_driver.file import ensure_directory, remove_file, write_file
from kubeletplugin.prepare.record import ClaimRecord, decode_record, encode_record


@dataclass(frozen=True, slots=True)
class CorruptRecord:
    """A record that could not be read: it was moved to `kept_as`. The claim can still be unprepared by its UID."""

    uid: str
    kept_as: Path
    problem: str


class Checkpoint:
    """All claim records of this node, safe to use from several threads."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock = threading.Lock()
        self._records: dict[str, ClaimRecord] = {}

    def read_all(self) -> tuple[CorruptRecord, ...]:
        """Read what is on disk, once, at start. What cannot be read is moved aside and returned; the rest counts.

        Raises StateError if the directory cannot be used at all.
        """
        ensure_directory(self._directory)
        corrupt: list[CorruptRecord] = []
        for path in sorted(self._directory.glob("*.json")):
            try:
                record = _read_record(path)
            except StateError as error:
                corrupt.append(CorruptRecord(path.stem, _set_aside(path), f"{path}: {error}"))
            else:
                self._records[record.uid] = record
        return tuple(corrupt)

    def find(self, uid: str) -> ClaimRecord | None:
        """Return the record of a claim."""
        with self._lock:
            return self._records.get(uid)

    def list(self) -> tuple[ClaimRecord, ...]:
        """Return all records, oldest first."""
        with self._lock:
            return tuple(self._records.values())

    def write(self, record: ClaimRecord) -> None:
        """Record a claim: on disk, synced, before this returns.

        Raises StateError; then the claim's record is the one before, or, if only the last sync went wrong, the new one.
        """
        with self._read_back_on_error(record.uid):
            write_file(self._path(record.uid), encode_record(record))
        self._remember(record.uid, record)

    def remove(self, uid: str) -> None:
        """Forget a claim. No such record is success.

        Raises StateError; then the record is still there, or, if only the last sync went wrong, gone.
        """
        with self._read_back_on_error(uid):
            remove_file(self._path(uid))
        self._remember(uid, None)

    @contextlib.contextmanager
    def _read_back_on_error(self, uid: str) -> Iterator[None]:
        """Keep what is in memory equal to what is on disk when a change went half way."""
        try:
            yield
        except StateError:
            path = self._path(uid)
            with contextlib.suppress(StateError):
                self._remember(uid, _read_record(path) if os.path.lexists(path) else None)
            raise

    def _remember(self, uid: str, record: ClaimRecord | None) -> None:
        with self._lock:
            if record is not None:
                self._records[uid] = record
            else:
                self._records.pop(uid, None)

    def _path(self, uid: str) -> Path:
        return self._directory / f"{uid}.json"


def _read_record(path: Path) -> ClaimRecord:
    try:
        if not path.is_file():
            raise StateError("not a file, want a claim record")
        data = path.read_bytes()
    except OSError as error:
        raise StateError(f"{explain_os_error(error)}, want a readable claim record") from error
    record = decode_record(data)
    if record.uid != path.stem:
        raise StateError(f"record of claim UID {record.uid!r}, want {path.stem!r}")
    return record


def _set_aside(path: Path) -> Path:
    targets = (path.with_name(f"{path.name}.corrupt-{number}") for number in itertools.count(1))
    target = next(target for target in targets if not os.path.lexists(target))
    try:
        path.rename(target)
    except OSError as error:
        raise StateError(f"{path}: {explain_os_error(error)}, want to move it to {target.name}") from error
    return target
