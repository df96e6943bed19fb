"""The folder of a running cluster, and the removal of what a killed test run has left.

A cluster holds a lock on its folder for as long as its test run lives. A folder whose lock is free belongs to nobody:
its cgroup is killed, with which its namespaces and mounts go, and the folder is removed.
"""

import fcntl
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from tests.cluster.cgroup import CgroupTree

# Not below TMPDIR: a node's sockets are deep in it, and the path of a socket has at most 107 bytes.
CLUSTERS = Path("/tmp/dra-driver-clusters")


class ClusterFolder:
    """The folder `path` and the cgroup of one cluster, of the same name."""

    def __init__(self, path: Path, lock: IO[str]) -> None:
        self.path = path
        self.cgroup = CgroupTree(path.name)
        self._lock = lock

    @classmethod
    def create(cls) -> "ClusterFolder":
        """Make a new folder and cgroup, after removing those that dead test runs have left."""
        CLUSTERS.mkdir(parents=True, exist_ok=True)
        with _only_one_at_a_time():
            for path in CLUSTERS.iterdir():
                if path.is_dir() and (left := _claim(path)):
                    left.remove()
            path = CLUSTERS / f"dra-{secrets.token_hex(3)}"
            path.mkdir()
            folder = _claim(path)
        if folder is None:
            raise RuntimeError(f"{path}: locked by another, want a folder of our own")
        folder.cgroup.create()
        return folder

    def remove(self) -> None:
        """Kill what is left of the cluster and removes all traces. The programs' own parent reaps them afterwards."""
        self.cgroup.kill()
        self.cgroup.remove()
        shutil.rmtree(self.path)
        self._lock.close()


def _claim(path: Path) -> ClusterFolder | None:
    """Take the lock of a folder, or returns None if a living test run has it."""
    lock = (path / "lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    return ClusterFolder(path, lock)


@contextmanager
def _only_one_at_a_time() -> Iterator[None]:
    with (CLUSTERS / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
