"""Processes that are forked from this one, which is warm and has no threads, and answer commands until they die."""

import contextlib
import functools
import gc
import json
import os
import select
import signal
import socket
import ssl
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

WITHIN_S: Final = 60.0
"""How long an answer may take before nobody believes in it any more: long, since the machine may be busy."""


def warm_up() -> None:
    """Do once, before anything is forked, what every child would do anew: reading certificates takes the most of it."""
    made = functools.cache(ssl.create_default_context)
    made()
    setattr(ssl, "create_default_context", made)  # noqa: B010 - another module's function
    gc.collect()
    gc.freeze()


class DiedError(Exception):
    """The process is dead. `status` is the number of the signal that killed it, negative, or its exit code."""

    def __init__(self, status: int) -> None:
        super().__init__(f"ended with {status}")
        self.status = status


class Child:
    """A forked process that runs `work`, which reads commands, a JSON line each, and answers them likewise."""

    def __init__(self, work: Callable[[socket.socket], None]) -> None:
        self._ours, theirs = socket.socketpair()
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            _run(work, theirs)
        theirs.close()
        self._heard = b""
        self._status: int | None = None

    def ask(self, command: str, **arguments: Any) -> Any:
        """Send a command and return the answer. Raises DiedError if the process ends before that."""
        self.tell(command, **arguments)
        return self.hear()

    def tell(self, command: str, **arguments: Any) -> None:
        """Send a command."""
        with contextlib.suppress(BrokenPipeError):
            self._ours.sendall(json.dumps([command, arguments]).encode() + b"\n")

    def hears(self, within_s: float) -> bool:
        """Return whether an answer, or the end, comes soon."""
        return b"\n" in self._heard or bool(select.select([self._ours], [], [], within_s)[0])

    def hear(self) -> Any:
        """Return the answer to the command before. Raises DiedError."""
        while b"\n" not in self._heard:
            if not self.hears(WITHIN_S):
                self.send(signal.SIGKILL)
                self.wait()
                raise TimeoutError(f"process {self.pid} does not answer")
            try:
                part = self._ours.recv(1 << 16)
            except ConnectionResetError:
                part = b""
            if not part:
                raise DiedError(self.wait())
            self._heard += part
        line, _, self._heard = self._heard.partition(b"\n")
        return json.loads(line)

    def stopped(self) -> bool:
        """Wait until it is stopped by a signal, or has ended, and return which."""
        _, status = os.waitpid(self.pid, os.WUNTRACED)
        if os.WIFSTOPPED(status):
            return True
        self._status = os.waitstatus_to_exitcode(status)
        return False

    def send(self, number: int) -> None:
        """Send a signal."""
        if self._status is None:
            os.kill(self.pid, number)

    def wait(self) -> int:
        """Wait for its end and return its status."""
        if self._status is None:
            self._status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self._status

    def close(self) -> None:
        """End it, if it has not."""
        self.send(signal.SIGKILL)
        self.wait()
        self._ours.close()


def _run(work: Callable[[socket.socket], None], channel: socket.socket) -> None:
    """Be the child: none of the parent's files is open here but 0, 1 and 2."""
    status = 1
    try:
        for number in [int(path.name) for path in Path("/proc/self/fd").iterdir()]:
            if number > 2 and number != channel.fileno():
                with contextlib.suppress(OSError):
                    os.close(number)
        work(channel)
        status = 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 1
    except BaseException:  # noqa: BLE001 - nothing may get past here into the parent's code
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)
