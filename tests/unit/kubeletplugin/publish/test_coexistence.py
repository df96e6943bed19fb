import pytest
from msgspec.structs import replace

from dra_driver.api.meta_v1 import ObjectMeta
from dra_driver.api.name import validate_label_value
from dra_driver.api.quantity import Quantity
from dra_driver.api.resource_v1 import (
    Device,
    DeviceAttribute,
    DeviceTaint,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from kubeletplugin.publish.coexistence import (
    IN_USE_KEY,
    OtherOwner,
    OwnerHold,
    find_other_owners,
    find_told_owners,
)
from tests.support.builder import DRIVER, NODE


def a_slice(driver: str, *devices: str) -> ResourceSlice:
    pool = ResourcePool(name=NODE, generation=1, resource_slice_count=1)
    spec = ResourceSliceSpec(
        driver=driver, pool=pool, node_name=NODE, devices=tuple(Device(name=name) for name in devices)
    )
    return ResourceSlice(metadata=ObjectMeta(name=f"slice-{driver}"), spec=spec)


def find(*slices: ResourceSlice, **allocatable: int) -> tuple[OtherOwner, ...]:
    return find_other_owners(
        {name.replace("__", "/").replace("_", "."): Quantity.of_int(count) for name, count in allocatable.items()},
        slices,
        driver=DRIVER,
    )


@pytest.mark.parametrize(
    ("resource", "vendor"),
    [
        ("nvidia.com/gpu", "nvidia"),
        ("nvidia.com/gpu.shared", "nvidia"),
        ("nvidia.com/mig-1g.10gb", "nvidia"),
        ("huawei.com/Ascend910B3", "huawei"),
        ("amd.com/gpu", "amd"),
        ("amd.com/cpx_nps4", "amd"),
        ("cambricon.com/mlu370", "cambricon"),
        ("cpu", None),
        ("nvidia.com/hostdev", None),
        ("example.com/gpu", None),
    ],
)
def test_extended_resources_are_their_vendors(resource: str, vendor: str | None) -> None:
    found = find_other_owners({resource: Quantity.of_int(8)}, (), driver=DRIVER)
    assert found == (() if vendor is None else (OtherOwner(vendor, resource),))


def test_a_device_plugin_that_was_removed_serves_nothing() -> None:
    assert find(nvidia_com__gpu=0) == ()


def test_other_drivers_serve_if_they_have_devices() -> None:
    assert find(a_slice("gpu.nvidia.com", "gpu-0")) == (OtherOwner("nvidia", "gpu.nvidia.com"),)
    assert find(a_slice("gpu.nvidia.com"), a_slice(DRIVER, "gpu-0"), a_slice("net.example.com", "eth-0")) == ()


def test_our_own_slices_never_count_whatever_the_driver_is_called() -> None:
    mine = a_slice("gpu.nvidia.com", "gpu-0")
    assert find_other_owners({}, (mine,), driver="gpu.nvidia.com") == ()


def test_there_is_one_owner_a_vendor_and_the_device_plugin_is_named_first() -> None:
    found = find(a_slice("gpu.nvidia.com", "gpu-0"), a_slice("npu.huawei.com", "npu-0"), nvidia_com__gpu=8)
    assert found == (OtherOwner("huawei", "npu.huawei.com"), OtherOwner("nvidia", "nvidia.com/gpu"))


@pytest.mark.parametrize("name", ["nvidia.com/gpu", "gpu.nvidia.com", "cambricon.com/" + "x" * 62 + "-y"])
def test_the_taint_is_valid(name: str) -> None:
    taint = OtherOwner("any", name).taint
    assert (taint.key, taint.effect) == ("dra-driver.io/in-use-by", "NoSchedule")
    assert taint.value
    assert not validate_label_value(taint.value)


@pytest.mark.parametrize(
    "other",
    [
        OtherOwner("nvidia", "nvidia.com/gpu"),
        OtherOwner("nvidia", "gpu.nvidia.com"),
        OtherOwner("amd", "amd.com/cpx_nps4"),
    ],
    ids=str,
)
def test_who_is_told_in_a_taint_is_found_again(other: OtherOwner) -> None:
    plain = a_slice(DRIVER, "gpu-0", "gpu-1")
    device = Device(name="gpu-2", attributes={"vendor": DeviceAttribute(string=other.vendor)}, taints=(other.taint,))
    tainted = replace(plain, spec=replace(plain.spec, devices=(*plain.spec.devices, device)))
    assert find_told_owners((plain, tainted), driver=DRIVER) == (other,)
    assert find_told_owners((plain, tainted), driver="other.example.com") == ()


def test_a_taint_that_names_nobody_who_could_serve_the_device_tells_of_nobody() -> None:
    taint = DeviceTaint(key=IN_USE_KEY, value="somebody", effect="NoSchedule")
    device = Device(name="gpu-2", attributes={"vendor": DeviceAttribute(string="nvidia")}, taints=(taint,))
    plain = a_slice(DRIVER)
    assert find_told_owners((replace(plain, spec=replace(plain.spec, devices=(device,))),), driver=DRIVER) == ()


def test_who_is_gone_is_kept_for_a_while_counted_from_when_he_was_missed_first() -> None:
    hold, plugin, other = OwnerHold(10), OtherOwner("nvidia", "nvidia.com/gpu"), OtherOwner("amd", "amd.com/gpu")
    assert hold.settle([plugin], 0) == (plugin,)
    assert hold.settle([], 100) == (plugin,)
    assert hold.settle([other], 109) == (other, plugin)
    assert hold.settle([other], 110) == (other,)


def test_who_is_back_in_time_is_held_anew_when_he_goes_again() -> None:
    hold, plugin = OwnerHold(10), OtherOwner("nvidia", "nvidia.com/gpu")
    for now_s, found in ((0, [plugin]), (1, []), (9, [plugin]), (10, []), (19, [])):
        assert hold.settle(found, now_s) == (plugin,)
    assert hold.settle([], 20) == ()


def test_a_vendor_s_devices_have_one_other_owner_at_a_time() -> None:
    hold, plugin, driver = OwnerHold(10), OtherOwner("nvidia", "nvidia.com/gpu"), OtherOwner("nvidia", "gpu.nvidia.com")
    hold.settle([plugin], 0)
    assert hold.settle([driver], 1) == (driver,)
