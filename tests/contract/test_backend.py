"""What every backend must do, whatever the hardware: see `dra_driver.devices.backend`."""

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from cdi import ContainerEdits, Spec
from cdi import Device as CdiDevice
from cdi.validation import validate_spec
from dra_driver.api.device_validation import validate_device
from dra_driver.api.resource_v1 import Device as SliceDevice
from dra_driver.devices.attribute import ATTRIBUTES, explain_not_shareable, render_attributes, render_capacity
from dra_driver.devices.backend import Backend
from dra_driver.devices.model import Device, Inventory, Partition
from dra_driver.errors import DeviceError
from tests.support.backend import BENCHES, Bench

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")

Item = tuple[Device, Partition | None]


@pytest.fixture(params=tuple(BENCHES.values()), ids=tuple(BENCHES))
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    build: Callable[[Path], Bench] = request.param
    return build(tmp_path)


@pytest.fixture
def backend(bench: Bench) -> Backend:
    return bench.open()


@pytest.fixture
def inventory(backend: Backend) -> Inventory:
    return backend.read_inventory()


@pytest.fixture
def partitioned(inventory: Inventory) -> Device:
    """A device with partitions that can be made; if there is one, such as can be given out whole, too."""
    for device in sorted(inventory.devices, key=lambda device: not device.offered_whole):
        if device.partitions and not device.has_permanent:
            return device
    pytest.skip("nothing here can be partitioned")


def items(inventory: Inventory) -> Iterator[Item]:
    for device in inventory.devices:
        yield device, None
        yield from ((device, partition) for partition in device.partitions)


def name_of(item: Item) -> str:
    device, partition = item
    return device.partition_name(partition) if partition else device.name


def entries(edits: ContainerEdits) -> set[object]:
    return {*edits.env, *edits.device_nodes, *edits.mounts, *edits.hooks, *edits.net_devices}


def offered(inventory: Inventory) -> tuple[Device, ...]:
    """The devices that can be given out whole."""
    return tuple(device for device in inventory.devices if device.offered_whole)


def fits(counters: list[Mapping[str, int]], totals: Mapping[str, int]) -> bool:
    taken: Counter[str] = Counter()
    for consumed in counters:
        taken.update(consumed)
    return all(amount <= totals.get(counter, 0) for counter, amount in taken.items())


def overlap(one: Partition, other: Partition) -> bool:
    return one.start < other.start + other.size and other.start < one.start + one.size


def test_the_name_of_the_backend_is_a_label(backend: Backend) -> None:
    assert LABEL.fullmatch(backend.name)


def test_the_bench_has_devices(inventory: Inventory) -> None:
    assert inventory.devices
    assert inventory.left_out == ()


def test_the_same_hardware_gives_equal_inventories(bench: Bench, inventory: Inventory) -> None:
    assert bench.open().read_inventory() == inventory


def test_devices_stand_in_physical_order(inventory: Inventory) -> None:
    addresses = [device.pci_bus_id or "" for device in inventory.devices]
    assert addresses == sorted(addresses)


def test_partitions_stand_in_the_order_of_placement(inventory: Inventory) -> None:
    for device in inventory.devices:
        starts = [partition.start for partition in device.partitions]
        assert starts == sorted(starts)


def test_names_are_unique_labels(inventory: Inventory) -> None:
    names = [name_of(item) for item in items(inventory)]
    assert len(set(names)) == len(names)
    assert [name for name in names if not LABEL.fullmatch(name)] == []


def test_identities_are_unique_and_no_index(inventory: Inventory) -> None:
    identities = [(device.vendor, device.identity) for device in inventory.devices]
    assert len(set(identities)) == len(identities)
    assert [identity for _, identity in identities if len(identity) < 4] == []


def test_nothing_that_is_unknown_is_a_placeholder(inventory: Inventory) -> None:
    for device in inventory.devices:
        texts = (device.family, device.product_name, device.uuid, device.serial, device.pci_bus_id, device.pcie_root)
        assert "" not in texts
        assert [
            number for number in (device.numa_node, device.index, device.minor, device.memory) if number == -1
        ] == []


def test_what_is_published_keeps_the_rules_of_the_api(inventory: Inventory) -> None:
    for device, partition in items(inventory):
        published = SliceDevice(
            name=name_of((device, partition)),
            attributes=render_attributes(device, partition),
            capacity=render_capacity(device, partition),
            allow_multiple_allocations=partition is None and explain_not_shareable(device) is None,
        )
        assert list(validate_device(published, "device", per_device_nodes=False)) == []


def test_attributes_are_of_the_closed_vocabulary(inventory: Inventory) -> None:
    known = {attribute.name for attribute in ATTRIBUTES}
    for item in items(inventory):
        assert {"vendor", "type", "partition", "model"} <= set(render_attributes(*item)) <= known


def test_every_capacity_of_a_shareable_device_has_a_request_policy(inventory: Inventory) -> None:
    for device in inventory.devices:
        if explain_not_shareable(device) is None:
            capacity = render_capacity(device)
            assert set(capacity) == {"memory", "cores", "slots"}
            assert [name for name, entry in capacity.items() if entry.request_policy is None] == []


def test_counters_keep_the_limits_of_the_api(inventory: Inventory) -> None:
    for device in inventory.devices:
        assert len(device.counters) <= 32
        assert [name for name in device.counters if not LABEL.fullmatch(name)] == []
        assert all(total > 0 for total in device.counters.values())


def test_each_partition_draws_from_what_its_device_has(inventory: Inventory) -> None:
    for device in inventory.devices:
        for partition in device.partitions:
            assert partition.counters, partition
            assert all(amount > 0 for amount in partition.counters.values())
            assert fits([partition.counters], device.counters)


def test_a_whole_device_and_any_of_its_partitions_exclude_each_other(inventory: Inventory) -> None:
    for device in inventory.devices:
        for partition in device.partitions:
            assert not fits([device.counters, partition.counters], device.counters)


def test_partitions_that_overlap_do_not_both_fit_the_counters(inventory: Inventory) -> None:
    for device in inventory.devices:
        for one, other in itertools.combinations(device.partitions, 2):
            if overlap(one, other):
                assert not fits([one.counters, other.counters], device.counters)


def test_edits_are_not_empty_and_valid(backend: Backend, inventory: Inventory) -> None:
    for device in offered(inventory):
        edits = backend.render_edits(device, None)
        spec = Spec(
            cdi_version="1.1.0",
            kind="accel.dra-driver.io/claim",
            devices=(CdiDevice(name=device.name, container_edits=edits),),
        )
        assert edits != ContainerEdits()
        assert validate_spec(spec) == ()


def test_edits_are_the_same_each_time(bench: Bench, backend: Backend, inventory: Inventory) -> None:
    for device in offered(inventory):
        assert backend.render_edits(device, None) == bench.open().render_edits(device, None)


def test_edits_of_a_device_hold_nothing_of_another(backend: Backend, inventory: Inventory) -> None:
    for vendor in {device.vendor for device in offered(inventory)}:
        edits = [
            entries(backend.render_edits(device, None)) for device in offered(inventory) if device.vendor == vendor
        ]
        shared = set.intersection(*edits) if len(edits) > 1 else set()
        own = [each - shared for each in edits]
        assert all(own)
        assert all(one.isdisjoint(other) for one, other in itertools.combinations(own, 2))


def test_edits_of_several_devices_can_be_joined(backend: Backend, inventory: Inventory) -> None:
    variables: dict[str, str] = {}
    nodes: dict[str, str] = {}
    for device in offered(inventory):
        edits = backend.render_edits(device, None)
        for name, _, value in (entry.partition("=") for entry in edits.env):
            assert variables.setdefault(name, value) == value
        for node in edits.device_nodes:
            assert nodes.setdefault(node.path, node.host_path) == node.host_path


def test_a_device_that_is_removed_leaves_the_others_as_they_were(bench: Bench, backend: Backend) -> None:
    """All but the number that the vendor's tools show: those count anew."""
    before = backend.read_inventory().devices
    gone = before[len(before) // 2]
    bench.remove(gone)
    after = [replace(device, index=None) for device in backend.read_inventory().devices]
    assert after == [replace(device, index=None) for device in before if device != gone]
    assert bench.open().read_inventory() == backend.read_inventory()


def test_edits_of_a_device_that_is_gone_are_refused(bench: Bench, backend: Backend, inventory: Inventory) -> None:
    bench.remove(inventory.devices[0])
    with pytest.raises(DeviceError):
        backend.render_edits(inventory.devices[0], None)


def test_a_partition_has_edits_of_its_own_once_it_is_made(backend: Backend, partitioned: Device) -> None:
    partition = partitioned.partitions[0]
    with pytest.raises(DeviceError):
        backend.render_edits(partitioned, partition)
    alike = [device for device in offered(backend.read_inventory()) if device.vendor == partitioned.vendor]
    each = [entries(backend.render_edits(device, None)) for device in alike]
    shared = set.intersection(*each) if each else set()
    whole = entries(backend.render_edits(partitioned, None)) if partitioned.offered_whole else set()
    backend.apply_partition(partitioned, partition)
    edits = backend.render_edits(partitioned, partition)
    assert entries(edits) - shared - whole


def test_two_partitions_of_a_device_have_nothing_of_each_other(backend: Backend, partitioned: Device) -> None:
    pair = next(
        pair
        for pair in itertools.combinations(partitioned.partitions, 2)
        if fits([partition.counters for partition in pair], partitioned.counters)
    )
    for partition in pair:
        backend.apply_partition(partitioned, partition)
    one, other = (backend.render_edits(partitioned, partition) for partition in pair)
    shared = entries(one) & entries(other)
    assert shared <= entries(backend.render_edits(partitioned, None))
    assert entries(one) - shared
    paths = [{node.path for node in edits.device_nodes if node not in shared} for edits in (one, other)]
    assert paths[0].isdisjoint(paths[1])
    assert all(paths) or not one.device_nodes


def test_a_partition_that_exists_has_a_uuid(bench: Bench, backend: Backend, partitioned: Device) -> None:
    partition = partitioned.partitions[0]
    backend.apply_partition(partitioned, partition)
    for reader in (backend, bench.open()):
        found = next(device for device in reader.read_inventory().devices if device.name == partitioned.name)
        assert [p.uuid is not None for p in found.partitions] == [p == partition for p in partitioned.partitions]


def test_partitions_come_and_go_without_a_trace_in_names_and_attributes(backend: Backend, partitioned: Device) -> None:
    def published() -> list[object]:
        return [(name_of(item), render_attributes(*item)) for item in items(backend.read_inventory())]

    before = published()
    backend.apply_partition(partitioned, partitioned.partitions[0])
    assert published() == before


def test_a_partition_can_be_made_twice(backend: Backend, partitioned: Device) -> None:
    partition = partitioned.partitions[0]
    backend.apply_partition(partitioned, partition)
    inventory = backend.read_inventory()
    backend.apply_partition(partitioned, partition)
    assert backend.read_inventory() == inventory


def test_a_partition_can_be_undone_twice_and_by_another_process(
    bench: Bench, backend: Backend, inventory: Inventory, partitioned: Device
) -> None:
    partition = partitioned.partitions[0]
    backend.apply_partition(partitioned, partition)
    bench.open().undo_partition(partitioned, partition)
    backend.undo_partition(partitioned, partition)
    assert backend.read_inventory() == inventory


def test_a_partition_that_was_never_made_can_be_undone(backend: Backend, partitioned: Device) -> None:
    backend.undo_partition(partitioned, partitioned.partitions[-1])


def test_a_partition_of_a_device_that_is_gone_can_be_undone(
    bench: Bench, backend: Backend, partitioned: Device
) -> None:
    backend.apply_partition(partitioned, partitioned.partitions[0])
    bench.remove(partitioned)
    backend.undo_partition(partitioned, partitioned.partitions[0])


def test_hardware_refuses_partitions_that_overlap_and_makes_nothing(
    bench: Bench, backend: Backend, partitioned: Device
) -> None:
    one, other = next(pair for pair in itertools.combinations(partitioned.partitions, 2) if overlap(*pair))
    backend.apply_partition(partitioned, one)
    before = backend.read_inventory()
    with pytest.raises(DeviceError):
        bench.open().apply_partition(partitioned, other)
    assert backend.read_inventory() == before


def test_many_threads_can_use_a_backend_at_once(backend: Backend, inventory: Inventory) -> None:
    def render(device: Device) -> ContainerEdits:
        return backend.render_edits(device, None) if device.offered_whole else ContainerEdits()

    def use(device: Device) -> ContainerEdits:
        if device.partitions:
            backend.apply_partition(device, device.partitions[0])
            backend.undo_partition(device, device.partitions[0])
        backend.read_inventory()
        return render(device)

    with ThreadPoolExecutor(8) as pool:
        edits = list(pool.map(use, inventory.devices * 4))
    assert edits == [render(device) for device in inventory.devices] * 4
    assert backend.read_inventory() == inventory


def test_of_threads_that_want_overlapping_partitions_one_wins(backend: Backend, partitioned: Device) -> None:
    def apply(partition: Partition) -> bool:
        try:
            backend.apply_partition(partitioned, partition)
        except DeviceError:
            return False
        return True

    rivals = [p for p in partitioned.partitions if overlap(p, partitioned.partitions[0])]
    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(apply, rivals)) == 1
