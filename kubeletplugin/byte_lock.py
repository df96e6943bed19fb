"""Locks on single bytes of a file, by open file description (fcntl(2), F_OFD_SETLK).

Each description is a party of its own, so threads exclude each other as processes do, and the kernel gives back what a
process held when it ends, however it ends. The bytes need not exist.
"""

import errno
import fcntl
import os
import struct
from typing import Final

_FLOCK: Final = struct.Struct("hhqqi0q")
"""`struct flock` of a 64-bit Linux: type, whence, start, length, and a process that must be 0."""

_HELD_ELSEWHERE: Final = frozenset({errno.EAGAIN, errno.EACCES})


def lock_byte(descriptor: int, byte: int, *, shared: bool = False) -> bool:
    """Lock a byte, or turn a lock into a shared one or back; False if another party has it.

    Raises OSError.
    """
    try:
        _control(descriptor, fcntl.F_OFD_SETLK, fcntl.F_RDLCK if shared else fcntl.F_WRLCK, byte, 1)
    except OSError as error:
        if error.errno in _HELD_ELSEWHERE:
            return False
        raise
    return True


def unlock_byte(descriptor: int, byte: int) -> None:
    """Let go of a byte; one that is not locked is left as it is. Raises OSError."""
    _control(descriptor, fcntl.F_OFD_SETLK, fcntl.F_UNLCK, byte, 1)


def find_locked_byte(descriptor: int, start: int, end: int) -> int | None:
    """Return a byte from `start` up to `end`, exclusively, that another party has locked; None if there is none.

    Raises OSError.
    """
    kind, first = _control(descriptor, fcntl.F_OFD_GETLK, fcntl.F_WRLCK, start, end - start)
    return None if kind == fcntl.F_UNLCK else first


def _control(descriptor: int, command: int, kind: int, start: int, length: int) -> tuple[int, int]:
    answer = fcntl.fcntl(descriptor, command, _FLOCK.pack(kind, os.SEEK_SET, start, length, 0))
    found, _, first, _, _ = _FLOCK.unpack(answer)
    return found, first
