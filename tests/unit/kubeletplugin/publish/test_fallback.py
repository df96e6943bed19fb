"""What is published where a feature gate is off."""

from dra_driver.api.resource_v1 import Device
from dra_driver.devices import model
from dra_driver.devices.model import Health, Inventory
from kubeletplugin.publish.feature import Features
from kubeletplugin.publish.layout import Pool, PoolOwner, build_pool
from kubeletplugin.publish.offer import SharePolicy
from tests.support.builder import DRIVER, NODE, a_device, a_partition, a_partitionable_device

NOTHING = Features(sharing=False, partitions=False, taints=False)


def lay_out(features: Features, *devices: model.Device) -> Pool:
    owner = PoolOwner(driver=DRIVER, node_name=NODE, node_uid="uid")
    return build_pool(Inventory(devices=devices), owner=owner, shares=SharePolicy(), features=features)


def devices_of(pool: Pool) -> list[Device]:
    return [device for item in pool.slices for device in item.spec.devices]


def test_without_partitions_only_the_whole_device_is_published() -> None:
    whole = a_partitionable_device()
    pool = lay_out(Features(partitions=False), whole)
    [device] = devices_of(pool)
    assert device.name == whole.name
    assert device.consumes_counters == ()
    assert not any(item.spec.shared_counters for item in pool.slices)


def test_without_partitions_what_an_administrator_cut_up_is_published_and_the_device_is_not() -> None:
    made = a_partition(start=0, permanent=True)
    whole = a_partitionable_device("GPU-P", made)
    assert [device.name for device in devices_of(lay_out(NOTHING, whole))] == [whole.partition_name(made)]


def test_without_sharing_a_device_is_for_one_claim_at_a_time() -> None:
    [device] = devices_of(lay_out(Features(sharing=False), a_device()))
    assert device.allow_multiple_allocations is None
    assert set(device.capacity) == {"memory", "cores", "slots"}
    assert not any(capacity.request_policy for capacity in device.capacity.values())


def test_without_taints_an_unhealthy_device_is_left_out_with_its_partitions() -> None:
    whole = a_partitionable_device()
    sick = a_device(
        "GPU-P",
        partitions=whole.partitions,
        counters=whole.counters,
        health=Health(reason="XidError", message="Xid 79"),
    )
    pool = lay_out(Features(taints=False), sick, a_device("GPU-1"))
    assert [device.name for device in devices_of(pool)] == [a_device("GPU-1").name]
    assert not any(item.spec.shared_counters for item in pool.slices)
    [left_out] = pool.left_out
    assert (left_out.subject, left_out.problem) == (whole.name, "unhealthy, XidError: Xid 79")


def test_without_anything_no_field_of_a_gate_is_sent() -> None:
    for device in devices_of(lay_out(NOTHING, a_partitionable_device(), a_device())):
        assert (device.taints, device.consumes_counters, device.allow_multiple_allocations) == ((), (), None)
