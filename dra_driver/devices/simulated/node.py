"""Character devices without a driver behind them.

A container that was given one can open it as far as `ENXIO` (no such device): the device cgroup let it through.
One that was not given it gets `EPERM`. That is how tests see what a container may use.
"""

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

_LOCAL_MAJORS = range(240, 255)
"""Majors that the kernel keeps for local and experimental use (its devices.txt)."""

_MODE = stat.S_IFCHR | 0o666


class MakeNode(Protocol):
    """`os.mknod`, or what a test puts in its place."""

    def __call__(self, path: str, mode: int = ..., device: int = ...) -> None:
        """Make a device node."""
        ...


@dataclass(frozen=True, slots=True)
class CharacterDevice:
    """A character device on the host."""

    path: Path
    major: int
    minor: int


def read_registered_majors() -> frozenset[int]:
    """Majors that a driver of this kernel holds; giving out one of those would give out real hardware."""
    try:
        lines = Path("/proc/devices").read_text("ascii").split("Block devices:")[0].splitlines()
    except OSError:
        return frozenset()
    return frozenset(int(line.split()[0]) for line in lines if line.strip()[:1].isdigit())


class CharacterDevices:
    """Makes character devices in a directory. The caller keeps others off meanwhile."""

    def __init__(
        self,
        directory: Path,
        *,
        mknod: MakeNode = os.mknod,
        read_majors: Callable[[], frozenset[int]] = read_registered_majors,
    ) -> None:
        self._directory = directory
        self._mknod = mknod
        self._read_majors = read_majors

    def apply(self, name: str, minor: int) -> CharacterDevice | None:
        """Make the node, or find it made; None where the system does not permit it. Raises OSError otherwise."""
        major = min(set(_LOCAL_MAJORS) - self._read_majors(), default=None)
        if major is None:
            return None
        device = CharacterDevice(self._directory / name, major, minor)
        if _is_there(device):
            return device
        try:
            device.path.parent.mkdir(parents=True, exist_ok=True)
            self._make(device)
        except PermissionError:
            return None
        return device

    def _make(self, device: CharacterDevice) -> None:
        made = device.path.with_name(f".{device.path.name}.new")
        made.unlink(missing_ok=True)
        self._mknod(str(made), _MODE, os.makedev(device.major, device.minor))
        made.chmod(0o666)
        made.replace(device.path)


def _is_there(device: CharacterDevice) -> bool:
    try:
        found = device.path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return stat.S_ISCHR(found.st_mode) and found.st_rdev == os.makedev(device.major, device.minor)
