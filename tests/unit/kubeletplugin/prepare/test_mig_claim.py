"""Claims for MIG partitions, from the allocation to the CDI spec and back, on a node with NVIDIA GPUs."""

from dataclasses import dataclass
from pathlib import Path

import pytest

import cdi
from dra_driver.devices.model import Device
from dra_driver.errors import ClaimError, DeviceBusyError
from kubeletplugin.prepare.preparer import Preparer
from tests.support.builder import DRIVER, a_claim, a_ref, a_result
from tests.support.nvml.machine import Gpu, an_h100_machine
from tests.support.nvml.node import NvidiaNode
from tests.support.prepare_node import open_preparer


@dataclass
class Node:
    """A node whose first GPU is worked on."""

    folder: Path
    hardware: NvidiaNode
    preparer: Preparer

    @property
    def gpu(self) -> Gpu:
        return self.hardware.machine.gpus[0]

    @property
    def layout(self) -> list[tuple[str, int, int]]:
        return self.hardware.nvml.layout(self.gpu)

    def device(self) -> Device:
        return self.hardware.open().read_inventory().devices[0]

    def name(self, profile: str, start: int) -> str:
        device = self.device()
        return next(device.partition_name(p) for p in device.partitions if (p.profile, p.start) == (profile, start))

    def prepare(self, device: str, uid: str = "uid-1", *, admin: bool = False) -> None:
        ref = a_ref(uid, f"claim-{uid}")
        self.preparer.prepare(ref, a_claim(a_result(device, admin_access=admin or None), ref=ref))

    def nodes(self, device: str, uid: str = "uid-1") -> set[str]:
        name = f"{DRIVER}/claim={uid}-{device}"
        edits = cdi.Resolver([self.folder / "cdi"]).resolve([name]).edits
        return {each.path for each in edits.device_nodes}

    def restart(self) -> None:
        self.preparer = open_preparer(self.folder, self.hardware.open())


@pytest.fixture
def node(tmp_path: Path) -> Node:
    hardware = NvidiaNode(tmp_path / "host", an_h100_machine())
    folder = tmp_path / "plugin"
    folder.mkdir()
    return Node(folder, hardware, open_preparer(folder, hardware.open()))


def test_a_claim_for_a_partition_makes_it_and_sees_nothing_else(node: Node) -> None:
    one, other = node.name("1g.10gb", 0), node.name("3g.40gb", 4)
    node.prepare(one)
    node.prepare(other, "uid-2")
    assert node.layout == [("1g.10gb", 0, 1), ("3g.40gb", 4, 1)]
    own = [node.nodes(one), node.nodes(other, "uid-2")]
    shared = own[0] & own[1]
    assert shared >= {"/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm"}
    assert [len(each - shared) for each in own] == [2, 2]
    assert all("/nvidia-caps/" in path for each in own for path in each - shared)


def test_the_gpu_is_whole_again_when_the_last_partition_is_gone(node: Node) -> None:
    whole = node.device().name
    node.prepare(node.name("1g.10gb", 0))
    assert node.gpu.mig_enabled
    with pytest.raises(DeviceBusyError, match="held by claim default/claim-uid-1"):
        node.prepare(whole, "uid-2")
    node.restart()
    node.preparer.unprepare(a_ref())
    assert (node.layout, node.gpu.mig_enabled) == ([], False)
    node.prepare(whole, "uid-2")
    assert not any("nvidia-caps" in path for path in node.nodes(whole, "uid-2"))
    with pytest.raises(DeviceBusyError):
        node.prepare(node.name("1g.10gb", 0), "uid-3")


def test_a_partition_that_hardware_refuses_leaves_the_claim_unprepared(node: Node) -> None:
    node.gpu.monitored = True
    with pytest.raises(ClaimError, match="in use by a process"):
        node.prepare(node.name("1g.10gb", 0))
    assert list((node.folder / "claims").glob("*.json")) == []
    assert list((node.folder / "cdi").glob("*.json")) == []
    node.gpu.monitored = False
    node.prepare(node.name("1g.10gb", 0))


def test_a_monitor_may_look_at_a_gpu_with_partitions(node: Node) -> None:
    node.prepare(node.name("1g.10gb", 0))
    node.prepare(node.device().name, "uid-2", admin=True)
    assert node.layout == [("1g.10gb", 0, 1)]


def test_a_partition_of_a_claim_whose_record_is_gone_is_swept_and_an_administrators_is_not(node: Node) -> None:
    node.prepare(node.name("1g.10gb", 0))
    node.hardware.nvml.make(node.hardware.machine.gpus[0], "3g.40gb", 4)
    for folder in ("claims", "cdi"):
        for path in (node.folder / folder).glob("*.json"):
            path.unlink()
    node.restart()
    for _ in range(3):
        node.preparer.sweep()
    assert node.layout == [("3g.40gb", 4, 1)]


@pytest.mark.parametrize("there", [True, False], ids=["with it", "without it"])
def test_a_partition_of_a_gpu_that_was_away_when_its_claim_ended_is_gone_once_it_is_back(
    node: Node, *, there: bool
) -> None:
    node.prepare(node.name("1g.10gb", 0))
    gpu = node.hardware.machine.gpus.pop(0)
    node.preparer.unprepare(a_ref())
    assert list((node.folder / "claims").glob("*.json")) == []
    node.hardware.machine.gpus.insert(0, gpu)
    if not there:
        node.hardware.bind(gpu)
        node.hardware.nvml.remove(node.gpu)
        node.gpu.mig_enabled = node.gpu.mig_pending = False
    node.restart()
    for _ in range(3):
        node.preparer.sweep()
    node.prepare(node.device().name, "uid-2")
    assert (node.layout, node.gpu.mig_enabled) == ([], False)
    assert list((node.hardware.folder / "state/mig").glob("*.json")) == []


def _reset(node: Node) -> None:
    """Let the kernel's driver take the GPU on anew: its instances and its mode are gone."""
    node.hardware.nvml.remove(node.gpu)
    node.gpu.mig_enabled = node.gpu.mig_pending = False
    node.hardware.bind(node.gpu)


def test_a_partition_that_a_reset_took_from_a_claim_is_made_again(node: Node) -> None:
    partition = node.name("1g.10gb", 0)
    node.prepare(partition)
    _reset(node)
    for _ in range(3):
        assert node.preparer.restore() == ()
    assert node.layout == [("1g.10gb", 0, 1)]
    assert any("/nvidia-caps/" in path for path in node.nodes(partition))
    node.preparer.unprepare(a_ref())
    assert (node.layout, node.gpu.mig_enabled) == ([], False)


def test_asking_again_after_a_reset_makes_the_partition_before_it_answers(node: Node) -> None:
    node.prepare(node.name("1g.10gb", 0))
    _reset(node)
    assert node.preparer.find_prepared(a_ref("uid-1", "claim-uid-1")) is not None
    assert node.layout == [("1g.10gb", 0, 1)]


@pytest.mark.parametrize("profile", ["1g.10gb", "2g.20gb"])
def test_what_an_administrator_made_in_place_of_a_claims_partition_after_a_reset_stays(
    node: Node, profile: str
) -> None:
    node.prepare(node.name("1g.10gb", 0))
    _reset(node)
    node.gpu.mig_enabled = node.gpu.mig_pending = True
    node.hardware.nvml.make(node.gpu, profile, 0)
    for _ in range(3):
        node.preparer.restore()
    node.preparer.unprepare(a_ref())
    for _ in range(3):
        node.preparer.sweep()
    assert node.layout == [(profile, 0, 1)]
