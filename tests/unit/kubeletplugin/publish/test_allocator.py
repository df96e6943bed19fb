"""Devices that belong to the controller: every one of them has the taint, or is not published."""

from dra_driver.allocator import Allocator
from dra_driver.api.resource_v1 import Device
from dra_driver.devices import model
from dra_driver.devices.model import Health, Inventory, LeftOut
from kubeletplugin.publish.feature import ALL_FEATURES, Features
from kubeletplugin.publish.layout import Pool, PoolOwner, build_pool
from kubeletplugin.publish.offer import SharePolicy
from tests.support.builder import DRIVER, NODE, a_device, a_partition, a_partitionable_device


def lay_out(*devices: model.Device, features: Features = ALL_FEATURES, left_out: tuple[LeftOut, ...] = ()) -> Pool:
    owner = PoolOwner(driver=DRIVER, node_name=NODE, node_uid="uid", allocator=Allocator.CONTROLLER)
    inventory = Inventory(devices=devices, left_out=left_out)
    return build_pool(inventory, owner=owner, shares=SharePolicy(), features=features)


def devices_of(pool: Pool) -> list[Device]:
    return [device for item in pool.slices for device in item.spec.devices]


def taints(device: Device) -> list[str]:
    return [f"{taint.key}={taint.value}:{taint.effect}" for taint in device.taints]


def test_whole_devices_and_partitions_of_every_sort_are_tainted() -> None:
    made = a_partitionable_device("GPU-M", a_partition(permanent=True))
    pool = lay_out(a_device("GPU-0"), a_partitionable_device("GPU-P"), made)
    assert len(devices_of(pool)) == 1 + 4 + 1
    for device in devices_of(pool):
        assert taints(device) == ["dra-driver.io/allocator=controller:NoSchedule"]


def test_an_unhealthy_device_has_both_taints() -> None:
    sick = a_device(health=Health(reason="XidError", message="Xid 79"))
    [device] = devices_of(lay_out(sick))
    assert taints(device) == [
        "dra-driver.io/unhealthy=XidError:NoSchedule",
        "dra-driver.io/allocator=controller:NoSchedule",
    ]


def test_the_taint_moves_no_device() -> None:
    many = [a_device(f"GPU-{number}") for number in range(129)]
    assert [len(item.spec.devices) for item in lay_out(*many).slices] == [64, 64, 1]


def test_without_taints_nothing_is_published_and_one_line_says_why() -> None:
    known = LeftOut(subject="0000:1b:00.0", problem="no UUID")
    pool = lay_out(a_partitionable_device(), a_device("GPU-1"), features=Features(taints=False), left_out=(known,))
    assert [(item.spec.devices, item.spec.shared_counters) for item in pool.slices] == [((), ())]
    assert pool.left_out == (
        known,
        LeftOut(
            subject="all devices",
            problem=(
                "the node is labelled dra-driver.io/allocator=controller, but the API server does not keep taints, "
                "which keep kube-scheduler from its devices, want the feature gate DRADeviceTaints or no such label"
            ),
        ),
    )
