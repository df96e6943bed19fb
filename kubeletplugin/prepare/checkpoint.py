"""The claim records on disk: one file a claim, written whole, synced, and kept in memory beside.

Several processes may use the directory. At each moment one of them owns it, which the lock file notes: only the owner
reads its memory or changes a record, and who becomes the owner reads everything anew. A process that is alone stays the
owner, so neither a read nor a write costs more for the claims that there are.
"""

import contextlib
import errno
import itertools
import os
import secrets
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from dra_driver.errors import StateError, explain_os_error
from dra_driver.file import ensure_directory, remove_directory, remove_file, sync_names, sync_way, write_file
from kubeletplugin.prepare.index import RecordIndex
from kubeletplugin.prepare.lock import PATIENCE_S, StateLocks, claim_key
from kubeletplugin.prepare.record import (
    ClaimRecord,
    ClaimRef,
    ClaimState,
    NewerRecordError,
    decode_record,
    encode_record,
    is_claim_uid,
    read_ref,
)

LOCK_FILE = ".lock"

_OWNER: Final = "owner"
_PASSING: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR, errno.EAGAIN})
"""What goes by itself: no reason to call a record corrupt."""


@dataclass(frozen=True, slots=True)
class CorruptRecord:
    """A record that could not be read: it is `kept_as`. The claim can still be unprepared by its UID.

    `ref` is what the file seems to say of the claim's name, if that much can be read. It is not to be trusted.
    """

    uid: str
    kept_as: Path
    problem: str
    ref: ClaimRef | None = None


class Checkpoint:
    """All claim records of this node, safe to use from several threads and processes.

    `find`, `find_holders` and `in` tell what is in memory: within `owned` that is what is on disk.
    """

    def __init__(self, directory: Path) -> None:
        self.locks = StateLocks(directory / LOCK_FILE)
        self._directory = directory
        self._nonce = secrets.token_hex(16)
        self._index = RecordIndex()
        self._newer: set[str] = set()
        self._corrupt: list[CorruptRecord] = []
        self._reservation = threading.Lock()
        self._generation = 0

    def read_all(self) -> tuple[CorruptRecord, ...]:
        """Read what is on disk, at start. What cannot be read is moved aside and returned; the rest counts.

        A record of a newer version stays where it is, for the newer driver to come back to, and is returned, too.
        Raises StateError if the directory cannot be used at all.
        """
        ensure_directory(self._directory)
        sync_way(self._directory)
        with self.locks.hold(_OWNER) as hold:
            self._read_directory()
            hold.write_note(self._note)
        return self.take_corrupt()

    def take_corrupt(self) -> tuple[CorruptRecord, ...]:
        """Return the corrupt records that were found since this was called last."""
        found, self._corrupt = tuple(self._corrupt), []
        return found

    @property
    def generation(self) -> int:
        """How often everything was read: changes whenever another process may have changed something."""
        return self._generation

    @contextlib.contextmanager
    def owned(self) -> Iterator[None]:
        """Have the memory be what is on disk, and nobody else change a record, until the block ends. To be kept short.

        Raises StateError.
        """
        with contextlib.ExitStack() as held:
            with self.locks.hold(_OWNER, shared=True) as hold:
                if hold.read_note() == self._note:
                    yield
                    return
            hold = held.enter_context(self.locks.hold(_OWNER))
            if hold.read_note() != self._note:
                self._read_directory()
                hold.write_note(self._note)
            hold.share()
            yield

    @contextlib.contextmanager
    def reserving(self) -> Iterator[None]:
        """As `owned`, and no other thread or process reserves devices meanwhile. Raises StateError."""
        if not self._reservation.acquire(timeout=PATIENCE_S):
            raise StateError(f"{self._directory}: another call reserves devices for {PATIENCE_S:g} s, want it to end")
        try:
            with self.owned():
                yield
        finally:
            self._reservation.release()

    def __contains__(self, uid: object) -> bool:
        """Whether there is a record of that claim."""
        return uid in self._index

    def __len__(self) -> int:
        """How many records there are."""
        return len(self._index)

    def find(self, uid: str) -> ClaimRecord | None:
        """Return the record of a claim."""
        return self._index.find(uid)

    def find_holders(self, wholes: Iterable[str]) -> tuple[ClaimRecord, ...]:
        """Return the records of the claims that have one of these whole devices, or a share or partition of it."""
        return self._index.find_holders(wholes)

    def list(self) -> tuple[ClaimRecord, ...]:
        """Return all records."""
        return self._index.list()

    def write(self, record: ClaimRecord) -> None:
        """Record a claim: on disk, synced, before this returns.

        Raises StateError; then the claim's record is the one before, or, if only the last sync went wrong, the new one,
        which counts as started: a power cut may take it, so nobody is to be told that it is completed.
        """
        with self.owned(), self._read_back_on_error(record.uid, record):
            if record.uid in self._newer:
                _set_aside(self._path(record.uid))
                self._newer.discard(record.uid)
            write_file(self._path(record.uid), encode_record(record))
            self._index.put(record)

    def remove(self, uid: str) -> None:
        """Forget a claim. No such record is success.

        Raises StateError; then the record is still there, or, if only the last sync went wrong, gone.
        """
        with self.owned(), self._read_back_on_error(uid):
            remove_file(self._path(uid))
            self._newer.discard(uid)
            self._index.remove(uid)

    def remove_leftovers(self) -> None:
        """Remove what killed writers left of records that are nobody's.

        Raises StateError, also if no record could be written, so that this is known before one has to be.
        """
        ensure_directory(self._directory)
        for path in sorted(self._directory.glob(".*.json.partial")):
            uid = path.name.removeprefix(".").removesuffix(".json.partial")
            if not is_claim_uid(uid):
                continue
            with self.locks.try_hold(claim_key(uid)) as held:
                if held:
                    remove_directory(path)

    @contextlib.contextmanager
    def _read_back_on_error(self, uid: str, written: ClaimRecord | None = None) -> Iterator[None]:
        """Keep what is in memory equal to what is on disk when a change went half way."""
        try:
            yield
        except StateError:
            path = self._path(uid)
            with contextlib.suppress(StateError, OSError):
                if not os.path.lexists(path):
                    self._index.remove(uid)
                elif uid not in self._newer:
                    found = _read_record(path)
                    is_unsynced = found == written
                    self._index.put(msgspec.structs.replace(found, state=ClaimState.STARTED) if is_unsynced else found)
            raise

    def _read_directory(self) -> None:
        """Read every record. If that raises StateError, nothing has changed but that corrupt ones were moved.

        What is read is on the disk: who wrote it may have been killed before it was, and now others are told of it.
        """
        records: list[ClaimRecord] = []
        newer: set[str] = set()
        sync_names(self._directory)
        try:
            for path in sorted(self._directory.glob("*.json")):
                try:
                    records.append(_read_record(path))
                except NewerRecordError as error:
                    newer.add(path.stem)
                    if path.stem not in self._newer:
                        self._corrupt.append(CorruptRecord(path.stem, path, f"{path}: {error}"))
                except StateError as error:
                    ref = _read_hint(path)
                    self._corrupt.append(CorruptRecord(path.stem, _set_aside(path), f"{path}: {error}", ref))
        except OSError as error:
            raise StateError(f"{error.filename or self._directory}: {explain_os_error(error)}") from error
        self._index.replace(records)
        self._newer = newer
        self._generation += 1

    @property
    def _note(self) -> str:
        return f"{self._nonce} {os.getpid()}"

    def _path(self, uid: str) -> Path:
        return self._directory / f"{uid}.json"


def _read_record(path: Path) -> ClaimRecord:
    try:
        if not path.is_file():
            raise StateError("not a file, want a claim record")
        data = path.read_bytes()
    except OSError as error:
        if error.errno in _PASSING:
            raise
        raise StateError(f"{explain_os_error(error)}, want a readable claim record") from error
    record = decode_record(data)
    if record.uid != path.stem:
        raise StateError(f"record of claim UID {record.uid!r}, want {path.stem!r}")
    if not is_claim_uid(record.uid):
        raise StateError(f"record of {record.uid!r}, want the UID of a claim")
    return record


def _read_hint(path: Path) -> ClaimRef | None:
    try:
        return read_ref(path.read_bytes(), path.stem) if path.is_file() else None
    except OSError:
        return None


def _set_aside(path: Path) -> Path:
    targets = (path.with_name(f"{path.name}.corrupt-{number}") for number in itertools.count(1))
    target = next(target for target in targets if not os.path.lexists(target))
    try:
        path.rename(target)
    except OSError as error:
        raise StateError(f"{path}: {explain_os_error(error)}, want to move it to {target.name}") from error
    return target
