"""A cgroup tree of a cluster's own, so that whatever a cluster started can be found and ended.

Containers and their shims are not children of the tests. All of them are below one cgroup, which outlives a test run
that was killed, and is empty when nothing of the run is left.
"""

import os
import signal
import time
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")


def hierarchies() -> tuple[Path, ...]:
    """List the mounted cgroup hierarchies: one on cgroup v2, one a controller on v1."""
    if (ROOT / "cgroup.controllers").exists():
        return (ROOT,)
    mounts = (path for path in ROOT.iterdir() if not path.is_symlink())
    return tuple(sorted(path for path in mounts if (path / "cgroup.procs").exists()))


class CgroupTree:
    """The cgroup `name` in every hierarchy. The programs of the tests are in its child `programs`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def create(self) -> None:
        self.create_child("programs")

    def create_child(self, child: str) -> str:
        """Make a child in every hierarchy and return its path as the kubelet's `cgroupRoot` wants it."""
        for hierarchy in hierarchies():
            for parent, folder in (
                (hierarchy, hierarchy / self.name),
                (hierarchy / self.name, hierarchy / self.name / child),
            ):
                folder.mkdir(exist_ok=True)
                _delegate(parent, folder)
        return f"/{self.name}/{child}"

    def add(self, pid: int) -> None:
        """Move a process among the programs; its children are born there."""
        (self._tracked() / "programs" / "cgroup.procs").write_text(str(pid))

    def pids(self) -> set[int]:
        pids: set[int] = set()
        for folder, _, _ in os.walk(self._tracked()):
            try:
                pids.update(int(pid) for pid in Path(folder, "cgroup.procs").read_text().split())
            except OSError:  # the cgroup went away meanwhile
                continue
        return pids

    def kill(self, timeout: float = 10) -> None:
        """Kill every process of the tree and wait until none is left."""
        deadline = time.monotonic() + timeout
        while pids := self.pids():
            if time.monotonic() > deadline:
                raise TimeoutError(f"cgroup {self.name}: processes {sorted(pids)} live on after SIGKILL")
            for pid in pids:
                _kill(pid)
            time.sleep(0.02)

    def remove(self, timeout: float = 5) -> None:
        """Remove the empty tree. The kernel may need a moment after the last process has ended."""
        deadline = time.monotonic() + timeout
        for hierarchy in hierarchies():
            for folder, _, _ in os.walk(hierarchy / self.name, topdown=False):
                _remove(Path(folder), deadline)

    def _tracked(self) -> Path:
        """Give the hierarchy in which processes are counted; on v1 the others hold only what the kubelet puts there."""
        mounted = hierarchies()
        return next((path for path in mounted if path.name == "pids"), mounted[0]) / self.name


def _delegate(parent: Path, folder: Path) -> None:
    if (parent / "cgroup.controllers").exists():
        controllers = (parent / "cgroup.controllers").read_text().split()
        for controller in controllers:
            try:
                (parent / "cgroup.subtree_control").write_text(f"+{controller}")
            except OSError:  # held back by the machine: the kubelet says what it misses
                continue
    for file in ("cpuset.cpus", "cpuset.mems"):
        # On v1 a cpuset takes no process before it is told its processors.
        if (folder / file).exists() and not (folder / file).read_text().strip() and (parent / file).exists():
            (folder / file).write_text((parent / file).read_text())


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _remove(folder: Path, deadline: float) -> None:
    while True:
        try:
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return
