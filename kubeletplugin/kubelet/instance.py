"""The plugin processes of one driver on a node: during an update the leaving one and the new one run side by side.

Who there is follows from locks on bytes of one file, which the kernel gives back when a process ends, however it ends:
no clock is compared, no file is read, nothing is left behind.
Each process has a number, higher than that of every process that was there when it started, so the youngest is known.
"""

import asyncio
import contextlib
import hashlib
import os
import socket
import struct
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

from dra_driver.errors import SettingError, StateError, explain_os_error
from dra_driver.file import clear_place, ensure_directory
from kubeletplugin.byte_lock import find_locked_byte, lock_byte, unlock_byte

LOCK_FILE = "plugin.lock"

START_TIMEOUT_S = 30.0
"""How long another process may take to open its sockets."""

_START: Final = 0
_NAMES: Final = 1 << 32
_AGES: Final = 1 << 40
_TURNS: Final = 1 << 41
_END: Final = 1 << 42
"""The bytes that are locked, or where such bytes begin and end; none is ever written."""

_CREDENTIALS: Final = struct.Struct("iii")
"""`struct ucred`: process, user, group."""

_POLL_S: Final = 0.01


class Instance:
    """One of the processes: its place among the others."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._number = self._take_number()

    @contextlib.asynccontextmanager
    async def starting(self, *, timeout_s: float = START_TIMEOUT_S) -> AsyncIterator[None]:
        """Be the only process that opens sockets: one that is not listened on is then nobody's.

        Raises SettingError if another process does not come to an end with it.
        """
        try:
            async with asyncio.timeout(timeout_s):
                while not lock_byte(self._descriptor, _START):  # noqa: ASYNC110 - it is another process
                    await asyncio.sleep(_POLL_S)
        except TimeoutError:
            raise SettingError(f"another plugin has been starting for {timeout_s:g} s, want it to end") from None
        try:
            yield
        finally:
            unlock_byte(self._descriptor, _START)

    def take_turn(self) -> bool:
        """Say that this process writes for the node from now on. Return whether it may: no younger one said so."""
        lock_byte(self._descriptor, _TURNS + self._number)
        return not self.is_followed()

    def is_followed(self) -> bool:
        """Whether a younger process writes for the node, or tries to."""
        return find_locked_byte(self._descriptor, _TURNS + self._number + 1, _END) is not None

    def give_turn_back(self) -> None:
        """Say that this process does not write, so that an older one may."""
        unlock_byte(self._descriptor, _TURNS + self._number)

    def _take_number(self) -> int:
        """Take the number above those of all others; one of two that start together goes on to the next."""
        number = 0
        while True:
            while (held := find_locked_byte(self._descriptor, _AGES + number, _TURNS)) is not None:
                number = held - _AGES + 1
            if lock_byte(self._descriptor, _AGES + number):
                return number


@contextlib.contextmanager
def hold_instance(directory: Path, pod_uid: str, service: Path) -> Iterator[Instance]:
    """Be the plugin of this Pod, or the one without a Pod, until the process ends, however it ends.

    `service` is its socket, to name who has it.
    Raises SettingError if there is one already, or if the directory cannot be used.
    """
    lock = directory / LOCK_FILE
    try:
        ensure_directory(directory, mode=0o750)
        clear_place(lock)
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except StateError as error:
        raise SettingError(str(error)) from error
    except OSError as error:
        raise SettingError(f"{lock}: {explain_os_error(error)}, want a directory that can be written to") from error
    try:
        try:
            if not lock_byte(descriptor, _NAMES + _digest(pod_uid)):
                raise SettingError(f"{service}: in use by another plugin, process {_read_listener(service)}")
            instance = Instance(descriptor)
        except OSError as error:
            raise SettingError(f"{lock}: {explain_os_error(error)}, want a file system that has locks") from error
        yield instance
    finally:
        os.close(descriptor)


def _read_listener(path: Path) -> str:
    """Return the process that listens on a socket, where it can be seen from here."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        caller.settimeout(0)
        try:
            caller.connect(str(path))
            pid, _, _ = _CREDENTIALS.unpack(caller.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
        except OSError:
            pid = 0
    return str(pid or "unknown")


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
