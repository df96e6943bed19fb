from controller.ailment import find_ailments, gather_devices
from dra_driver.api.resource_v1 import ResourceClaim, ResourceSlice
from tests.support.control import Manifest, a_claim, a_device, a_slice
from tests.support.control_object import read

SICK = [{"key": "dra-driver.io/unhealthy", "value": "xid-79", "effect": "NoSchedule"}]


def ailments(*slices: Manifest) -> list[tuple[str, str]]:
    """Look at a claim that has gpu-0 of node-a."""
    result = {"request": "r0", "driver": "accel.dra-driver.io", "pool": "node-a", "device": "gpu-0"}
    claim = a_claim() | {"status": {"allocation": {"devices": {"results": [result]}}}}
    return list(find_ailments(read(claim, ResourceClaim), gather_devices(read(each, ResourceSlice) for each in slices)))


def test_a_device_that_is_well_is_not_told_of() -> None:
    assert ailments(a_slice("node-a", "gpu-0")) == []


def test_an_unhealthy_device_is_told_with_what_it_has() -> None:
    text = "device node-a/gpu-0: allocated to this claim, and unhealthy: xid-79"
    assert ailments(a_slice("node-a", a_device("gpu-0", taints=SICK))) == [("DeviceUnhealthy", text)]


def test_a_device_that_is_not_published_is_gone() -> None:
    assert [reason for reason, _ in ailments(a_slice("node-a", "gpu-1"))] == ["DeviceGone"]


def test_a_pool_that_is_being_updated_is_not_judged() -> None:
    assert ailments(a_slice("node-a", "gpu-1", resourceSliceCount=2)) == []
    assert ailments() == []


def test_only_the_largest_generation_counts() -> None:
    old, new = a_slice("node-a", "gpu-0"), a_slice("node-a", "gpu-1", generation=2)
    new["metadata"]["name"] = "new"
    assert [reason for reason, _ in ailments(old, new)] == ["DeviceGone"]
