"""What a test run that was killed has left is removed by the next one."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.cluster.cgroup import CgroupTree
from tests.cluster.folder import ClusterFolder
from tests.cluster.image import PROJECT

_START_AND_WAIT = """
import sys
from tests.cluster import network
from tests.cluster.folder import ClusterFolder
from tests.cluster.process import Processes

folder = ClusterFolder.create()
network.create_control_namespace(Processes(folder.path / "logs", folder.cgroup))
print(folder.path, flush=True)
sys.stdin.read()
"""


def test_the_next_run_removes_what_a_killed_run_has_left_and_nothing_of_a_living_one() -> None:
    living = ClusterFolder.create()
    with subprocess.Popen(
        (sys.executable, "-c", _START_AND_WAIT), cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        left = Path(run.stdout.readline().strip())
        holders = CgroupTree(left.name).pids()
        run.send_signal(signal.SIGKILL)
    assert left.exists()
    assert len(holders) == 1
    assert all(Path(f"/proc/{pid}").exists() for pid in holders)

    ClusterFolder.create().remove()

    assert not left.exists()
    assert CgroupTree(left.name).pids() == set()
    assert not any(Path(entry.path, left.name).exists() for entry in os.scandir("/sys/fs/cgroup"))
    assert living.path.exists()
    living.remove()
