"""Claims under strategies, through a whole prepare and unprepare."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import cdi
from dra_driver.api.config_v1alpha1 import Interval, Strategy
from dra_driver.devices.model import Device
from dra_driver.devices.sharing import SharingPolicy
from dra_driver.errors import ClaimError, DeviceError
from kubeletplugin.discovery import Discovery
from kubeletplugin.prepare.artifact import Artifacts
from kubeletplugin.prepare.checkpoint import Checkpoint
from kubeletplugin.prepare.lock import device_key
from kubeletplugin.prepare.preparer import Owned, Preparer
from kubeletplugin.prepare.spec import Names
from kubeletplugin.sharing.device_sharing import DeviceSharing
from kubeletplugin.sharing.mps_edits import MpsFolders
from kubeletplugin.sharing.mps_state import DOWN, RESTARTED, DaemonState
from tests.support.builder import DRIVER, NODE, FakeBackend, a_claim, a_config, a_device, a_ref, a_share, device_config

DEVICE = a_device("GPU-0")


class Killed(BaseException):
    """The process is gone: nothing of it runs any more."""


@dataclass
class FakeDaemons:
    """Daemons outlive plugins. `trouble` is raised by the next start or stop, after it has been done.

    `dark` is the number of the look that is in vain.
    """

    running: set[str] = field(default_factory=set)
    left: set[str] = field(default_factory=set)
    starts: int = 0
    looks: int = 0
    trouble: BaseException | None = None
    dark: int | None = None

    def start(self, device: Device, backend: str) -> None:
        assert backend == "fake"
        self.starts += device.name not in self.running
        self.running.add(device.name)
        self.left.add(device.name)
        self._stumble()

    def mend(self, device: Device, backend: str) -> None:
        self.start(device, backend)

    def stop(self, device: str) -> None:
        self.running.discard(device)
        self._stumble()

    def remove(self, device: str) -> None:
        assert device not in self.running
        self.left.discard(device)

    def read_left(self) -> frozenset[str]:
        return frozenset(self.left)

    def read_states(self) -> dict[str, DaemonState]:
        self.looks += 1
        if self.looks == self.dark:
            raise DeviceError("MPS daemon: API server away")
        return {device: DaemonState(run=str(self.starts)) for device in self.running}

    def _stumble(self) -> None:
        trouble, self.trouble = self.trouble, None
        if trouble is not None:
            raise trouble


@dataclass
class Node:
    """What outlives a plugin process: disk, devices, daemons. `start` is a process that comes up on them."""

    directory: Path
    policy: Strategy
    backend: FakeBackend = field(default_factory=lambda: FakeBackend((DEVICE,)))
    daemons: FakeDaemons = field(default_factory=FakeDaemons)

    def start(self) -> Preparer:
        checkpoint = Checkpoint(self.directory / "claims")
        checkpoint.read_all()
        folders = MpsFolders(pipes=Path("/plugin/mps"), memory=Path("/memory"))
        shims, specs = self.directory / "shim", self.directory / "cdi"
        artifacts = Artifacts(names=Names(DRIVER), cdi_dir=specs, shim_dir=shims, mps=folders)
        artifacts.ensure_directories()
        return Preparer(
            Owned(driver=DRIVER, pool=NODE, slots=16),
            checkpoint=checkpoint,
            artifacts=artifacts,
            catalog=Discovery([self.backend], SharingPolicy(default=self.policy)).read,
            sharing=DeviceSharing(self.daemons),
        )

    def edits(self, uid: str) -> cdi.ContainerEdits:
        return cdi.Resolver([self.directory / "cdi"]).resolve([f"{DRIVER}/claim={uid}-{DEVICE.name}-{uid}"]).edits


def prepare(preparer: Preparer, uid: str, **sharing: Any) -> None:
    ref = a_ref(uid, f"claim-{uid}")
    config = [a_config(device_config(**sharing))] if sharing else []
    preparer.prepare(ref, a_claim(a_share(DEVICE.name, uid, cores=30), ref=ref, config=config))


def test_turns_last_as_long_as_there_is_a_share(tmp_path: Path) -> None:
    node = Node(tmp_path, Strategy.TIME_SLICING)
    preparer = node.start()
    prepare(preparer, "a", timeSlicing={"interval": "Long"})
    prepare(preparer, "b")
    assert node.backend.time_slices == {DEVICE.name: Interval.LONG}
    preparer.unprepare(a_ref("a"))
    assert node.backend.time_slices == {DEVICE.name: Interval.LONG}
    preparer.unprepare(a_ref("b"))
    assert node.backend.time_slices == {}


def test_turns_that_another_process_ended_are_set_again(tmp_path: Path) -> None:
    node = Node(tmp_path, Strategy.TIME_SLICING)
    first, second = node.start(), node.start()
    prepare(first, "a", timeSlicing={"interval": "Long"})
    second.unprepare(a_ref("a"))
    prepare(first, "b", timeSlicing={"interval": "Long"})
    assert node.backend.time_slices == {DEVICE.name: Interval.LONG}


def test_clients_of_a_daemon_get_its_pipes_and_their_limits(tmp_path: Path) -> None:
    node = Node(tmp_path, Strategy.MPS)
    preparer = node.start()
    prepare(preparer, "a")
    edits = node.edits("a")
    assert set(edits.env) == {
        "CUDA_MPS_PIPE_DIRECTORY=/run/dra-driver/mps",
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=8192M",
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=30",
    }
    assert {(mount.host_path, mount.container_path) for mount in edits.mounts} == {
        (f"/plugin/mps/{DEVICE.name}", "/run/dra-driver/mps"),
        (f"/memory/{DEVICE.name}", "/dev/shm"),
    }
    assert (node.daemons.running, node.backend.exclusive) == ({DEVICE.name}, {DEVICE.name})
    prepare(preparer, "b")
    preparer.unprepare(a_ref("a"))
    assert (node.daemons.running, node.daemons.starts) == ({DEVICE.name}, 1)
    preparer.unprepare(a_ref("b"))
    assert (node.daemons.running, node.backend.exclusive) == (set(), set())


def test_a_daemon_that_does_not_start_leaves_nothing(tmp_path: Path) -> None:
    node = Node(tmp_path, Strategy.MPS)
    node.daemons.trouble = DeviceError("MPS daemon: not ready")
    with pytest.raises(ClaimError, match="MPS daemon: not ready"):
        prepare(node.start(), "a")
    assert (node.daemons.running, node.backend.exclusive) == (set(), set())
    assert not list((tmp_path / "cdi").iterdir())


@pytest.mark.parametrize("again", [True, False], ids=["prepared again", "given up"])
def test_a_plugin_killed_while_it_waits_for_a_daemon_leaves_no_doubt(tmp_path: Path, *, again: bool) -> None:
    node = Node(tmp_path, Strategy.MPS)
    node.daemons.trouble = Killed()
    with pytest.raises(Killed):
        prepare(node.start(), "a")
    preparer = node.start()
    if again:
        prepare(preparer, "a")
        assert (node.daemons.running, node.daemons.starts) == ({DEVICE.name}, 1)
    preparer.unprepare(a_ref("a"))
    assert (node.daemons.running, node.backend.exclusive) == (set(), set())


def test_a_plugin_killed_while_it_stops_a_daemon_leaves_none(tmp_path: Path) -> None:
    node = Node(tmp_path, Strategy.MPS)
    preparer = node.start()
    prepare(preparer, "a")
    node.daemons.trouble = Killed()
    with pytest.raises(Killed):
        preparer.unprepare(a_ref("a"))
    preparer = node.start()
    preparer.restore()
    preparer.unprepare(a_ref("a"))
    assert (node.daemons.running, node.backend.exclusive) == (set(), set())


def test_a_daemon_that_cannot_be_stopped_is_stopped_the_next_time(tmp_path: Path) -> None:
    node = Node(tmp_path, Strategy.MPS)
    preparer = node.start()
    prepare(preparer, "a")
    node.daemons.trouble = DeviceError("MPS daemon: the API server is away")
    with pytest.raises(ClaimError, match="the API server is away"):
        preparer.unprepare(a_ref("a"))
    assert node.backend.exclusive == {DEVICE.name}
    preparer.unprepare(a_ref("a"))
    assert (node.daemons.running, node.backend.exclusive) == (set(), set())


def test_what_a_reboot_forgot_is_applied_again(tmp_path: Path) -> None:
    for policy in (Strategy.TIME_SLICING, Strategy.MPS):
        node = Node(tmp_path / policy, policy)
        prepare(node.start(), "a")
        node.backend.time_slices.clear()
        node.backend.exclusive.clear()
        node.daemons.running.clear()
        assert node.start().restore() == ()
        assert bool(node.backend.time_slices) is (policy is Strategy.TIME_SLICING)
        assert bool(node.daemons.running) is bool(node.backend.exclusive) is (policy is Strategy.MPS)


def test_a_daemon_that_somebody_removed_is_started_again(tmp_path: Path) -> None:
    node = Node(tmp_path, Strategy.MPS)
    preparer = node.start()
    prepare(preparer, "a")
    node.daemons.running.clear()
    preparer.restore()
    assert node.daemons.running == {DEVICE.name}


def test_what_happens_to_a_daemon_in_use_is_told_once(tmp_path: Path) -> None:
    node = Node(tmp_path, Strategy.MPS)
    preparer = node.start()

    def told() -> list[tuple[str, str]]:
        assert preparer.restore() == ()
        return [(change.device, change.reason) for change in preparer.mender.take_daemon_changes()]

    prepare(preparer, "a")
    assert told() == []
    node.daemons.running.clear()
    assert told() == [(DEVICE.name, DOWN)]
    assert set(preparer.mender.daemon_problems) == {DEVICE.name}
    assert told() == [(DEVICE.name, RESTARTED)]
    assert preparer.mender.daemon_problems == {}
    preparer.unprepare(a_ref("a"))
    assert told() == []


def test_a_daemon_that_cannot_be_looked_at_a_second_time_is_told_of_once_all_the_same(tmp_path: Path) -> None:
    node = Node(tmp_path, Strategy.MPS)
    preparer = node.start()
    prepare(preparer, "a")
    node.daemons.running.clear()
    assert preparer.restore() == ()
    node.daemons.running.clear()
    node.daemons.dark = node.daemons.looks + 2
    assert [ref.uid for ref, _ in preparer.restore()] == ["a"]
    for _ in range(2):
        assert preparer.restore() == ()
    assert [change.reason for change in preparer.mender.take_daemon_changes()] == [DOWN, RESTARTED]


def test_a_daemon_is_looked_for_once_however_many_claims_share_its_device(tmp_path: Path) -> None:
    node = Node(tmp_path, Strategy.MPS)
    preparer = node.start()
    for uid in ("a", "b", "c"):
        prepare(preparer, uid)
    node.daemons.looks = 0
    node.backend.exclusive.clear()
    preparer.restore()
    assert node.daemons.looks == 1
    assert node.backend.exclusive == set()  # a program of the driver's for each look would be much


def test_a_daemon_of_a_device_that_somebody_works_on_is_left_alone(tmp_path: Path) -> None:
    node = Node(tmp_path, Strategy.MPS)
    preparer = node.start()
    prepare(preparer, "a")
    node.daemons.running.clear()
    with Checkpoint(tmp_path / "claims").locks.hold(device_key(DEVICE.name)):
        assert preparer.restore() == ()
    assert (node.daemons.running, preparer.mender.take_daemon_changes()) == (set(), ())
    preparer.restore()
    assert node.daemons.running == {DEVICE.name}


def test_a_daemon_that_cannot_be_mended_costs_each_claim_of_its_device_a_word(tmp_path: Path) -> None:
    node = Node(tmp_path, Strategy.MPS)
    preparer = node.start()
    for uid in ("a", "b"):
        prepare(preparer, uid)
    node.daemons.running.clear()
    node.daemons.trouble = DeviceError("MPS daemon: no room")
    assert [(ref.uid, "no room" in str(error)) for ref, error in preparer.restore()] == [("a", True), ("b", True)]


def test_a_daemon_without_a_claim_that_was_seen_twice_is_stopped_once_its_device_is_idle(
    tmp_path: Path,
) -> None:
    node = Node(tmp_path, Strategy.MPS)
    node.daemons.running.add(DEVICE.name)
    preparer = node.start()
    preparer.sweep()
    assert node.daemons.running == {DEVICE.name}
    with Checkpoint(tmp_path / "claims").locks.hold(device_key(DEVICE.name)):
        preparer.sweep()
    assert node.daemons.running == {DEVICE.name}
    preparer.sweep()
    assert node.daemons.running == set()


def test_a_plugin_killed_while_it_stops_a_daemon_without_a_claim_leaves_the_device_to_the_next(tmp_path: Path) -> None:
    """The next one saw no daemon, and left its folders, and the device to one process."""
    node = Node(tmp_path, Strategy.MPS)
    node.daemons.start(DEVICE, "fake")
    node.backend.exclusive.add(DEVICE.name)
    preparer = node.start()
    preparer.sweep()
    node.daemons.trouble = Killed()
    with pytest.raises(Killed):
        preparer.sweep()
    preparer = node.start()
    for _ in range(2):
        preparer.sweep()
    assert (node.daemons.running, node.daemons.left, node.backend.exclusive) == (set(), set(), set())


def test_without_daemons_a_share_by_mps_says_what_to_switch_on(tmp_path: Path) -> None:
    sharing = DeviceSharing()
    node = Node(tmp_path, Strategy.MPS)
    [device] = node.start().prepare(a_ref(), a_claim(a_share(DEVICE.name, "s"))).devices
    entry = Discovery([node.backend]).read().find(DEVICE.name)
    assert entry is not None
    with pytest.raises(DeviceError, match="want the flag --mps-image"):
        sharing.apply(entry, device)
