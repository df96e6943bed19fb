"""A whole device and its partitions exclude each other: every set of devices is tried against the counters."""

from collections import Counter
from itertools import combinations

import pytest

from dra_driver.api.resource_v1 import Device, ResourceSlice
from dra_driver.devices import model
from dra_driver.devices.model import Inventory
from kubeletplugin.publish.layout import Pool, PoolOwner, build_pool
from kubeletplugin.publish.offer import SharePolicy
from tests.support.builder import DRIVER, NODE, a_device, a_partition, a_partitionable_device


def lay_out(*devices: model.Device) -> Pool:
    owner = PoolOwner(driver=DRIVER, node_name=NODE, node_uid="uid")
    return build_pool(Inventory(devices=devices), owner=owner, shares=SharePolicy())


def devices_of(pool: Pool) -> list[Device]:
    return [device for item in pool.slices for device in item.spec.devices]


def fits(pool: Pool, devices: tuple[Device, ...]) -> bool:
    """Whether an allocator may give all of these out at once (facts of KEP-4815)."""
    totals = {
        (counters.name, name): counter.value.nanos
        for item in pool.slices
        for counters in item.spec.shared_counters
        for name, counter in counters.counters.items()
    }
    taken: Counter[tuple[str, str]] = Counter()
    for device in devices:
        for consumption in device.consumes_counters:
            for name, counter in consumption.counters.items():
                taken[consumption.counter_set, name] += counter.value.nanos
    return all(amount <= totals[key] for key, amount in taken.items())


def test_a_whole_device_and_its_partitions_exclude_each_other_whatever_is_tried() -> None:
    parts = [a_partition(start=start) for start in range(4)]
    parts += [a_partition("2g.20gb", start=start, size=2) for start in (0, 2)]
    whole = a_partitionable_device("GPU-P", *parts, slices=4)
    pool = lay_out(whole, a_partitionable_device("GPU-Q"))
    spans: dict[str, set[int]] = {
        whole.partition_name(part): set(range(part.start, part.start + part.size)) for part in parts
    }
    spans[whole.name] = set(range(4))
    ours = [device for device in devices_of(pool) if device.name in spans]
    assert len(ours) == 7
    for count in range(1, len(ours) + 1):
        for chosen in combinations(ours, count):
            taken = [unit for device in chosen for unit in spans[device.name]]
            assert fits(pool, chosen) == (len(taken) == len(set(taken))), [device.name for device in chosen]


def test_whole_devices_do_not_take_from_each_other() -> None:
    pool = lay_out(a_partitionable_device("GPU-P"), a_partitionable_device("GPU-Q"))
    wholes = tuple(device for device in devices_of(pool) if device.attributes["partition"].bool is False)
    assert len(wholes) == 2
    assert fits(pool, wholes)


def test_counter_sets_stand_first_in_slices_of_their_own_eight_at_most() -> None:
    pool = lay_out(*(a_partitionable_device(f"GPU-{number}") for number in range(9)), a_device("GPU-plain"))
    assert [len(item.spec.shared_counters) for item in pool.slices] == [8, 1, 0]
    assert [len(item.spec.devices) for item in pool.slices] == [0, 0, 9 * 4 + 1]


def test_a_whole_and_its_partitions_consume_of_one_counter_set_only() -> None:
    whole = a_partitionable_device()
    for device in devices_of(lay_out(whole)):
        assert [consumption.counter_set for consumption in device.consumes_counters] == [whole.name]


def test_a_device_without_partitions_has_no_counters() -> None:
    pool = lay_out(a_device(counters={"memory-slice-0": 1}))
    [item] = pool.slices
    assert item.spec.devices[0].consumes_counters == ()


@pytest.mark.parametrize("counters", [{}, {"memory-slice-1": 0}], ids=["no counters", "zero of a counter"])
def test_a_partition_that_takes_nothing_of_its_device_is_left_out(counters: dict[str, int]) -> None:
    good, bad = a_partition(start=0), a_partition(start=1, counters=counters)
    whole = a_partitionable_device("GPU-P", good, bad)
    pool = lay_out(whole)
    assert [item.subject for item in pool.left_out] == [whole.partition_name(bad)]
    assert [device.name for device in devices_of(pool)] == [whole.name, whole.partition_name(good)]


def test_a_partition_of_counters_that_its_device_lacks_is_left_out() -> None:
    bad = a_partition(counters={"engines": 1})
    whole = a_partitionable_device("GPU-P", bad)
    pool = lay_out(whole)
    [left_out] = pool.left_out
    assert left_out.problem == f"counters: {whole.name} has no 'engines'"
    assert slices_with_counters(pool) == []


def test_a_device_of_too_many_counters_is_published_whole() -> None:
    pool = lay_out(a_partitionable_device("GPU-P", slices=33))
    [device] = devices_of(pool)
    assert device.consumes_counters == ()
    assert slices_with_counters(pool) == []
    [left_out] = pool.left_out
    assert left_out.problem.startswith("partitions: ")


def slices_with_counters(pool: Pool) -> list[ResourceSlice]:
    return [item for item in pool.slices if item.spec.shared_counters]
