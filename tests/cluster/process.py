"""Programs of a cluster: started with a log file each, waited for, signalled, restarted, ended."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from tests.cluster.cgroup import CgroupTree

T = TypeVar("T")


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Give the environment of a program in the cluster: this one's, where no proxy stands between, and `extra`."""
    here = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    return {**here, **(extra or {})}


class ProgramEndedError(Exception):
    """A program that should run has ended; the text carries the tail of its log."""


def wait_until(
    what: str,
    probe: Callable[[], T | None],
    timeout: float,
    *,
    interval: float = 0.1,
    check: Callable[[], None] = lambda: None,
) -> T:
    """Return the first true answer of `probe`.

    `check` is called between the tries and raises where waiting on is in vain.
    A probe that raises `subprocess.SubprocessError`, `OSError` or `LookupError` has no answer yet.
    Raises `TimeoutError` with the last answer or error after `timeout` seconds.
    """
    deadline = time.monotonic() + timeout
    while True:
        last: object
        try:
            last = answer = probe()
        except (subprocess.SubprocessError, OSError, LookupError) as error:
            last, answer = _text(error), None
        if answer:
            return answer
        check()
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not so within {timeout:g} s, last {last!r}")
        time.sleep(interval)


def _text(error: Exception) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        return str(error.stderr or error.stdout or error).strip()
    return f"{type(error).__name__}: {error}"


class Process:
    """One program, which may be started again after it was ended. Its log is appended to."""

    def __init__(
        self, name: str, command: Sequence[str | Path], log: Path, cgroup: CgroupTree, env: Mapping[str, str] | None
    ) -> None:
        self.name = name
        self.log = log
        self._command = command
        self._cgroup = cgroup
        self._env = env
        self._popen = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            popen = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment(self._env),
                # An interrupt from the terminal is for the tests, which then end the programs in order.
                start_new_session=True,
            )
        self._cgroup.add(popen.pid)
        return popen

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def returncode(self) -> int | None:
        """The exit status (negative: the signal), None while the program runs."""
        return self._popen.poll()

    def signal(self, number: signal.Signals) -> None:
        self._popen.send_signal(number)

    def wait(self, timeout: float = 10) -> int:
        return self._popen.wait(timeout)

    def stop(self, timeout: float = 10) -> int:
        """SIGTERM, and SIGKILL after `timeout` seconds. Returns the exit status."""
        self.signal(signal.SIGTERM)
        try:
            return self.wait(timeout)
        except subprocess.TimeoutExpired:
            return self.kill()

    def kill(self) -> int:
        """SIGKILL, as by a crash or the kernel for want of memory."""
        self.signal(signal.SIGKILL)
        return self.wait()

    def start(self) -> None:
        """Start the program again, with the same command."""
        if self.returncode is None:
            raise RuntimeError(f"{self.name}: runs already, stop it first")
        self._popen = self._start()

    def restart(self) -> None:
        self.stop()
        self.start()

    def check(self) -> None:
        if self.returncode is not None:
            raise ProgramEndedError(f"{self.name}: ended with status {self.returncode}\n{self.tail()}")

    def tail(self, lines: int = 30, without: Sequence[str] = ()) -> str:
        """Give the end of the log, leaving out the lines that contain any of the texts of `without`."""
        log = self.log.read_text(errors="replace").splitlines()
        return "\n".join([line for line in log if not any(text in line for text in without)][-lines:])


class Processes:
    """The programs of one cluster, by name, in the order of their start."""

    def __init__(self, logs: Path, cgroup: CgroupTree) -> None:
        logs.mkdir()
        self._logs = logs
        self._cgroup = cgroup
        self._processes: dict[str, Process] = {}

    def start(self, name: str, command: Sequence[str | Path], env: Mapping[str, str] | None = None) -> Process:
        """Start a program with `env` added to the environment. A name may be used again once its program has ended."""
        before = self._processes.pop(name, None)
        if before is not None and before.returncode is None:
            raise RuntimeError(f"{name}: runs already, stop it first")
        process = Process(name, command, self._logs / f"{name}.log", self._cgroup, env)
        self._processes[name] = process
        return process

    def __getitem__(self, name: str) -> Process:
        return self._processes[name]

    def __iter__(self) -> Iterator[Process]:
        return iter(tuple(self._processes.values()))

    def check(self) -> None:
        """Raise `ProgramEndedError` for the first program that has ended."""
        for process in self:
            process.check()

    def stop(self, names: Sequence[str], timeout: float = 10) -> None:
        """End the named programs at once: SIGTERM to all, then SIGKILL to those that still run at the deadline."""
        running = [process for process in self if process.name in names and process.returncode is None]
        deadline = time.monotonic() + timeout
        for process in running:
            process.signal(signal.SIGTERM)
        for process in running:
            try:
                process.wait(max(0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()

    def reap(self) -> None:
        """Wait for programs that were killed from outside, so that no zombie is left."""
        for process in self:
            process.wait()
