from dataclasses import replace

from dra_driver.devices.model import Health, Inventory, LeftOut
from kubeletplugin.publish.layout import Pool, PoolOwner, Refusals, build_pool
from kubeletplugin.publish.offer import SharePolicy
from tests.support.builder import DRIVER, NODE, a_device, a_partition, a_partitionable_device

OWNER = PoolOwner(driver=DRIVER, node_name=NODE, node_uid="uid-of-node-a")
SICK = Health(reason="XidError", message="Xid 79: fallen off the bus")


def lay_out(*devices: object, refusals: Refusals | None = None, left_out: tuple[LeftOut, ...] = ()) -> Pool:
    inventory = Inventory(devices=devices, left_out=left_out)  # type: ignore[arg-type]
    return build_pool(inventory, owner=OWNER, shares=SharePolicy(), refusals=refusals)


def names(pool: Pool) -> list[str]:
    return [device.name for item in pool.slices for device in item.spec.devices]


def test_a_node_without_devices_has_one_empty_slice() -> None:
    pool = lay_out()
    assert [item.spec.devices for item in pool.slices] == [()]
    assert pool.slices[0].spec.pool.resource_slice_count == 1


def test_every_slice_belongs_to_the_node_and_its_pool() -> None:
    for item in lay_out(*(a_device(f"GPU-{number}") for number in range(70))).slices:
        assert (item.spec.driver, item.spec.node_name, item.spec.pool.name) == (DRIVER, NODE, NODE)
        [reference] = item.metadata.owner_references
        assert (reference.api_version, reference.kind, reference.name) == ("v1", "Node", NODE)
        assert (reference.uid, reference.controller) == ("uid-of-node-a", True)


def test_devices_stand_in_physical_order() -> None:
    devices = [a_device(f"GPU-{number}") for number in (3, 1, 2)]
    assert names(lay_out(*devices)) == [device.name for device in devices]


def test_a_device_stands_before_its_partitions_and_these_by_start_then_size() -> None:
    late, wide, small = a_partition(start=4), a_partition("2g.20gb", start=0, size=2), a_partition(start=0)
    whole = a_partitionable_device("GPU-P", late, wide, small)
    other = a_device("GPU-1")
    expected = [whole.name, *(whole.partition_name(part) for part in (small, wide, late)), other.name]
    assert names(lay_out(whole, other)) == expected


def test_129_devices_are_three_slices_of_at_most_64() -> None:
    pool = lay_out(*(a_device(f"GPU-{number}") for number in range(129)))
    assert [len(item.spec.devices) for item in pool.slices] == [64, 64, 1]
    assert {item.spec.pool.resource_slice_count for item in pool.slices} == {3}


def test_an_unhealthy_device_does_not_move_any_device() -> None:
    well = [a_device(f"GPU-{number}") for number in range(129)]
    sick = [a_device(f"GPU-{number}", health=SICK if number == 5 else None) for number in range(129)]
    assert [len(item.spec.devices) for item in lay_out(*sick).slices] == [64, 64, 1]
    assert names(lay_out(*sick)) == names(lay_out(*well))


def test_an_unhealthy_device_is_tainted_with_all_its_partitions() -> None:
    whole = a_partitionable_device()
    sick = a_device("GPU-P", partitions=whole.partitions, counters=whole.counters, health=SICK)
    pool = lay_out(sick, a_device("GPU-1"))
    *ill, well = pool.slices[-1].spec.devices
    assert len(ill) == 4
    for device in ill:
        [taint] = device.taints
        assert (taint.key, taint.value, taint.effect) == ("dra-driver.io/unhealthy", "XidError", "NoSchedule")
    assert well.taints == ()


def test_a_whole_device_is_shareable_and_a_partition_is_not() -> None:
    whole, partition, *_ = lay_out(a_partitionable_device()).slices[-1].spec.devices
    assert whole.allow_multiple_allocations is True
    assert all(capacity.request_policy for capacity in whole.capacity.values())
    assert set(whole.capacity) == {"memory", "cores", "slots"}
    assert partition.allow_multiple_allocations is None
    assert not any(capacity.request_policy for capacity in partition.capacity.values())


def test_a_device_of_unknown_memory_is_not_shareable() -> None:
    [device] = lay_out(a_device(memory=None)).slices[0].spec.devices
    assert device.allow_multiple_allocations is None


def test_a_bad_device_is_left_out_alone() -> None:
    bad = a_device("GPU-bad", health=Health(reason="not a label value!", message=""))
    pool = lay_out(a_device("GPU-0"), bad, a_device("GPU-1"))
    assert names(pool) == [a_device("GPU-0").name, a_device("GPU-1").name]
    [left_out] = pool.left_out
    assert left_out.subject == bad.name
    assert "taints" in left_out.problem


def test_a_bad_partition_is_left_out_alone() -> None:
    good, bad = a_partition(start=0), a_partition("1g.10gb_UPPER", start=1)
    whole = a_partitionable_device("GPU-P", good, bad)
    pool = lay_out(whole)
    assert names(pool) == [whole.name, whole.partition_name(good)]
    assert [item.subject for item in pool.left_out] == [whole.partition_name(bad)]


def test_of_two_devices_with_one_name_the_first_is_published() -> None:
    pool = lay_out(a_device("GPU-0", model="H100"), a_device("GPU-0", model="A100"))
    [device] = pool.slices[0].spec.devices
    assert device.attributes["model"].string == "H100"
    assert [item.subject for item in pool.left_out] == [device.name]


def test_what_backends_left_out_is_told_too() -> None:
    left_out = LeftOut(subject="0000:1b:00.0", problem="no UUID")
    assert lay_out(left_out=(left_out,)).left_out == (left_out,)


def test_a_refused_device_is_left_out_with_the_reason() -> None:
    devices = [a_device(f"GPU-{number}") for number in range(3)]
    pool = lay_out(*devices, refusals=Refusals(devices={devices[1].name: "too odd"}))
    assert names(pool) == [devices[0].name, devices[2].name]
    assert pool.left_out == (LeftOut(subject=devices[1].name, problem="too odd"),)


def test_a_device_whose_counters_are_refused_is_published_whole() -> None:
    whole = a_partitionable_device()
    pool = lay_out(whole, refusals=Refusals(counter_sets={whole.name: "too odd"}))
    [item] = pool.slices
    assert names(pool) == [whole.name]
    assert item.spec.devices[0].consumes_counters == ()
    assert pool.left_out == (LeftOut(subject=whole.name, problem="partitions: too odd"),)


def test_what_an_administrator_cut_up_is_published_as_it_is() -> None:
    made = a_partition(start=0, permanent=True, uuid="MIG-1")
    whole = a_partitionable_device("GPU-P", made, a_partition(start=1))
    pool = lay_out(whole)
    [item] = pool.slices
    assert names(pool) == [whole.partition_name(made)]
    assert item.spec.devices[0].consumes_counters == ()


def test_a_device_that_is_switched_to_partitions_is_published_in_partitions_with_counters() -> None:
    whole = a_partitionable_device()
    switched = replace(whole, usable_whole=False)
    pool = lay_out(switched)
    assert names(pool) == [switched.partition_name(part) for part in switched.partitions]
    assert [counters.name for counters in pool.slices[0].spec.shared_counters] == [switched.name]
    assert all(device.consumes_counters for device in pool.slices[-1].spec.devices)
    assert pool.left_out == ()


def test_a_device_that_is_switched_to_partitions_and_offers_none_is_left_out() -> None:
    made = a_partition(uuid="MIG-1", permanent=True, offered=False)
    for device in (a_device("GPU-1", usable_whole=False), a_partitionable_device("GPU-1", made)):
        pool = lay_out(device)
        assert names(pool) == []
        assert pool.left_out == (
            LeftOut(subject=device.name, problem="switched to partitions, none of which is offered"),
        )


def test_partitions_that_are_there_until_their_claim_ends_are_not_published() -> None:
    retired = a_partition(start=1, uuid="MIG-1", offered=False)
    whole = a_partitionable_device("GPU-P", a_partition(start=0), retired)
    assert names(lay_out(whole)) == [whole.name, whole.partition_name(a_partition(start=0))]
    alone = a_partitionable_device("GPU-P", retired)
    pool = lay_out(alone)
    assert names(pool) == [alone.name]
    assert pool.slices[0].spec.shared_counters == ()


def test_equal_inventories_give_equal_pools() -> None:
    assert lay_out(a_partitionable_device(), a_device()) == lay_out(a_partitionable_device(), a_device())
