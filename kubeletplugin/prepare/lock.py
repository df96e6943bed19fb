"""Locks between all threads of all plugin processes that share a state directory.

They are bytes of one file; each hold has an open file description of its own.
The file's content is a note, which says who may trust what it remembers of the directory, see `Checkpoint.owned`.
"""

import contextlib
import hashlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dra_driver.errors import StateError, explain_os_error
from dra_driver.file import clear_place
from kubeletplugin.byte_lock import lock_byte, unlock_byte

_FIRST_BYTE: Final = 1 << 32
"""The bytes that are locked begin far behind the note."""

NOTE_BYTES: Final = 64

PATIENCE_S: Final = 30.0
"""How long a lock is waited for. Whoever has it may hang, and the kubelet wants an answer within 45 s."""

_FIRST_PAUSE_S: Final = 0.0005
_LONGEST_PAUSE_S: Final = 0.02


@dataclass(frozen=True, slots=True)
class Hold:
    """A lock while it is held."""

    descriptor: int
    byte: int

    def share(self) -> None:
        """Let others hold it as shared, without a moment in which nobody does. Raises StateError."""
        with _named("lock"):
            lock_byte(self.descriptor, self.byte, shared=True)

    def read_note(self) -> str:
        """Return the note in the file; empty if there is none. Raises StateError."""
        with _named("lock"):
            return os.pread(self.descriptor, NOTE_BYTES, 0).decode("ascii", "replace").strip()

    def write_note(self, text: str) -> None:
        """Replace the note, which needs no room on the disk that is not taken already. Raises StateError."""
        with _named("lock"):
            os.pwrite(self.descriptor, text.encode("ascii").ljust(NOTE_BYTES), 0)


class StateLocks:
    """The locks in one file, by a key each; two keys share a lock with a chance of 1 in 2**61.

    Not to be used on both sides of a fork, since the descriptors would be shared.
    A lock is waited for no longer than `patience_s`: a process that is stopped keeps its locks for ever.
    """

    def __init__(self, path: Path, *, patience_s: float = PATIENCE_S) -> None:
        self._path = path
        self._patience_s = patience_s
        self._idle: list[int] = []

    @contextlib.contextmanager
    def hold(self, key: str, *, shared: bool = False) -> Iterator[Hold]:
        """Wait for a lock and hold it, alone or with others that share it.

        Raises StateError, also if others do not let go of it in time.
        """
        held = self._wait(key, shared=shared)
        try:
            yield held
        finally:
            self._release(held)

    @contextlib.contextmanager
    def try_hold(self, key: str) -> Iterator[bool]:
        """Hold a lock alone unless somebody has it, without waiting; say whether it is held. Raises StateError."""
        held = self._acquire(key, shared=False)
        try:
            yield held is not None
        finally:
            if held is not None:
                self._release(held)

    def close(self) -> None:
        """Give back the descriptors that are not in use."""
        while self._idle:
            os.close(self._idle.pop())

    def _wait(self, key: str, *, shared: bool) -> Hold:
        """Try again and again: the kernel's own wait for a lock has no end."""
        deadline = time.monotonic() + self._patience_s
        pause_s = _FIRST_PAUSE_S
        while (held := self._acquire(key, shared=shared)) is None:
            if time.monotonic() >= deadline:
                raise StateError(
                    f"{self._path}: {key!r} locked by others for {self._patience_s:g} s,"
                    " want the plugin process or call that hangs to end"
                )
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        return held

    def _acquire(self, key: str, *, shared: bool) -> Hold | None:
        byte = _find_byte(key)
        while True:
            with _named(str(self._path)):
                descriptor = self._take()
                try:
                    locked = lock_byte(descriptor, byte, shared=shared)
                    current = self._is_current(descriptor)
                except BaseException:
                    os.close(descriptor)
                    raise
            if not current:  # somebody removed the file: others lock another one
                os.close(descriptor)
                continue
            if locked:
                return Hold(descriptor, byte)
            self._idle.append(descriptor)
            return None

    def _release(self, held: Hold) -> None:
        try:
            unlock_byte(held.descriptor, held.byte)
        except OSError:
            os.close(held.descriptor)  # which lets go of it, too
        else:
            self._idle.append(held.descriptor)

    def _take(self) -> int:
        try:
            return self._idle.pop()
        except IndexError:
            clear_place(self._path)
            return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)

    def _is_current(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(os.fstat(descriptor), os.lstat(self._path))
        except FileNotFoundError:
            return False


def claim_key(uid: str) -> str:
    """The key of the lock that is held while a claim is prepared or unprepared."""
    return f"claim {uid}"


def device_key(name: str) -> str:
    """The key of the lock that is held while partitions of a whole device, or its sharing, change."""
    return f"device {name}"


def _find_byte(key: str) -> int:
    digest = int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest())
    return _FIRST_BYTE + digest % (1 << 61)


@contextlib.contextmanager
def _named(subject: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StateError(f"{error.filename or subject}: {explain_os_error(error)}") from error
