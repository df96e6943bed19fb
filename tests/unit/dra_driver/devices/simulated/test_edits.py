import pytest

from dra_driver.devices.model import Device, DeviceType
from dra_driver.devices.simulated.edits import plan_nodes

VENDORS = ["nvidia", "huawei", "amd", "hygon", "cambricon", "mthreads", "iluvatar", "enflame", "metax", "acme"]


def a_device(vendor: str = "nvidia", minor: int = 0) -> Device:
    return Device(vendor=vendor, type=DeviceType.GPU, identity="GPU-1", model="H100", minor=minor)


def names(device: Device, position: int = 0, placement: int | None = None) -> list[str]:
    return [node.name for node in plan_nodes(device, position, placement, 0)]


def test_nodes_are_called_as_the_vendor_calls_them() -> None:
    assert names(a_device("nvidia", minor=3)) == ["nvidiactl", "nvidia-uvm", "nvidia3"]
    assert names(a_device("huawei", minor=3)) == ["davinci_manager", "devmm_svm", "hisi_hdc", "davinci3"]
    assert names(a_device("amd"), position=2) == ["kfd", "dri/renderD130"]
    assert names(a_device("acme")) == ["accelctl", "accel/accel0"]


@pytest.mark.parametrize("vendor", VENDORS)
def test_every_device_and_partition_has_a_node_and_a_minor_of_its_own(vendor: str) -> None:
    planned = [
        plan_nodes(a_device(vendor, minor=position), position, placement, 0xFFFF)
        for position in range(3)
        for placement in (None, *range(63))
    ]
    shared = set.intersection(*map(set, planned))
    own = [set(nodes) - shared for nodes in planned]
    assert {len(nodes) for nodes in own} == {1}
    assert len({node.name for nodes in own for node in nodes}) == len(planned)
    minors = [node.minor for node in shared] + [node.minor for nodes in own for node in nodes]
    assert len(set(minors)) == len(minors)
    assert max(minors) < 2**20


def test_a_partition_does_not_bring_the_node_of_its_device() -> None:
    assert "nvidia0" not in names(a_device("nvidia"), placement=0)


def test_nodes_of_all_vendors_can_stand_side_by_side() -> None:
    planned = [node for vendor in VENDORS for node in plan_nodes(a_device(vendor), VENDORS.index(vendor), None, 1)]
    by_minor = {node.minor: node.name for node in planned}
    assert len(by_minor) == len({node.name for node in planned})
