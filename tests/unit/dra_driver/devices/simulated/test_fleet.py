from collections import Counter

import pytest

from dra_driver.devices.model import Device, Partition
from dra_driver.devices.simulated.fleet import Fleet, build_fleet
from dra_driver.devices.simulated.override import Overrides, parse_overrides
from dra_driver.devices.simulated.profile import profile_names, read_profile


def a_fleet(profile: str = "h100x8", node: str = "node-a", overrides: str = "") -> Fleet:
    read = read_profile(profile)
    return build_fleet(read, node, parse_overrides(overrides, "overrides", read) if overrides else Overrides())


def devices(fleet: Fleet) -> tuple[Device, ...]:
    return fleet.inventory().devices


@pytest.mark.parametrize("profile", profile_names())
def test_the_same_node_has_the_same_devices_and_another_node_has_others(profile: str) -> None:
    assert devices(a_fleet(profile)) == devices(a_fleet(profile))
    ours, theirs = ({d.uuid for d in devices(a_fleet(profile, node))} for node in ("node-a", "node-b"))
    assert ours.isdisjoint(theirs)


def test_serial_numbers_are_unique() -> None:
    found = devices(a_fleet("mixed"))
    assert len({device.serial for device in found}) == len(found)


def test_h100_devices_look_like_the_real_ones() -> None:
    device = devices(a_fleet("h100x8"))[0]
    assert device.product_name == "NVIDIA H100 80GB HBM3"
    assert device.memory == 81559 << 20
    assert device.uuid is not None
    assert device.uuid.startswith("GPU-")
    assert (device.pci_bus_id, device.pcie_root, device.numa_node) == ("0000:1b:00.0", "pci0000:15", 0)


def test_a_link_domain_is_named_after_its_smallest_member() -> None:
    found = devices(a_fleet("h100x8"))
    smallest = min(device.identity for device in found)
    assert {(d.link.domain, d.link.full_mesh) for d in found if d.link} == {(smallest, True)}


def test_a_link_domain_keeps_its_name_when_that_member_is_removed() -> None:
    before = devices(a_fleet("h100x8"))
    smallest = min(before, key=lambda device: device.identity)
    after = devices(a_fleet("h100x8", overrides=f"removed: [{smallest.name}]"))
    assert after == tuple(device for device in before if device != smallest)


def test_a_mixed_node_counts_indices_per_vendor() -> None:
    found = [(d.vendor, d.model, d.index) for d in devices(a_fleet("mixed"))]
    assert sorted(found) == [
        ("huawei", "910B3", 0),
        ("huawei", "910B3", 1),
        ("nvidia", "H100", 0),
        ("nvidia", "H100", 1),
        ("nvidia", "L40S", 2),
        ("nvidia", "L40S", 3),
    ]


def test_devices_are_made_unhealthy_by_position_or_name() -> None:
    name = devices(a_fleet())[5].name
    found = devices(a_fleet(overrides=f"unhealthy: {{3: {{reason: xid-79, message: off the bus}}, {name}: {{}}}}"))
    reasons = [device.health.reason if device.health else None for device in found]
    assert reasons == [None, None, None, "xid-79", None, "simulated", None, None]


def test_devices_are_added_after_all_others_and_keep_their_identity() -> None:
    before = devices(a_fleet("mixed"))
    more = devices(a_fleet("mixed", overrides="added: 2"))
    fewer = devices(a_fleet("mixed", overrides="added: 1"))
    assert set(map(id_of, before)) < set(map(id_of, fewer)) < set(map(id_of, more))
    assert {d.model for d in more if id_of(d) not in set(map(id_of, before))} == {"910B3"}


def test_another_kind_of_device_can_be_added() -> None:
    found = devices(a_fleet("l40sx4", overrides="added: [{vendor: amd, type: gpu, model: MI300X, memory: 192Gi}]"))
    assert [device.model for device in found] == ["L40S"] * 4 + ["MI300X"]
    assert found[-1].index == 0


def id_of(device: Device) -> str:
    return device.identity


def test_overrides_of_devices_that_are_not_there_are_left_out() -> None:
    fleet = a_fleet(overrides="unhealthy: {9: {}}\nremoved: [gpu-x]")
    assert [(left.subject, left.problem) for left in fleet.left_out] == [
        ("overrides unhealthy", "device '9' is not on this node"),
        ("overrides removed", "device 'gpu-x' is not on this node"),
    ]
    assert devices(fleet) == devices(a_fleet())


def test_a_device_that_an_administrator_partitioned_offers_just_that() -> None:
    overrides = "partitions: {0: [{profile: 3g.40gb, start: 4}, {profile: 1g.10gb, start: 0}]}"
    first, second, *_ = devices(a_fleet("a100x8", overrides=overrides))
    assert [(p.profile, p.start, p.permanent) for p in first.partitions] == [("1g.10gb", 0, True), ("3g.40gb", 4, True)]
    assert all(partition.uuid for partition in first.partitions)
    assert not first.offered_whole
    assert second.offered_whole


def test_partitions_that_hardware_refuses_the_administrator_are_left_out() -> None:
    overrides = "partitions: {0: [{profile: 7g.80gb, start: 0}, {profile: 1g.10gb, start: 0}, {profile: 8g, start: 0}]}"
    fleet = a_fleet("a100x8", overrides=overrides)
    assert [partition.profile for partition in devices(fleet)[0].partitions] == ["1g.10gb"]
    assert [left.subject for left in fleet.left_out] == ["overrides partitions 0"] * 2


def fits(partitions: tuple[Partition, ...], totals: Counter[str]) -> bool:
    taken: Counter[str] = Counter()
    for partition in partitions:
        taken.update(partition.counters)
    return taken <= totals


def may_coexist(partitions: tuple[Partition, ...]) -> bool:
    """NVIDIA's rule: disjoint memory slices, at most 7 compute slices, at most one set of media extensions."""
    slices = [index for p in partitions for index in range(p.start, p.start + p.size)]
    compute = sum(int(partition.profile[0]) for partition in partitions)
    media = sum(partition.profile.endswith("+me") for partition in partitions)
    return len(set(slices)) == len(slices) and compute <= 7 and media <= 1


def test_a100_counters_admit_exactly_what_the_vendor_allows() -> None:
    device = devices(a_fleet("a100x8"))[0]
    totals = Counter(device.counters)
    sets: list[tuple[Partition, ...]] = [()]
    seen = 0
    while sets:
        seen += len(sets)
        larger = []
        for chosen in sets:
            after = device.partitions.index(chosen[-1]) + 1 if chosen else 0
            for partition in device.partitions[after:]:
                tried = (*chosen, partition)
                assert fits(tried, totals) == may_coexist(tried), tried
                if may_coexist(tried):
                    larger.append(tried)
        sets = larger
    assert seen > 1000


def test_a100_has_every_profile_and_placement() -> None:
    placements = Counter(partition.profile for partition in devices(a_fleet("a100x8"))[0].partitions)
    assert placements == {
        "1g.10gb": 7,
        "1g.10gb+me": 7,
        "1g.20gb": 4,
        "2g.20gb": 3,
        "3g.40gb": 2,
        "4g.40gb": 1,
        "7g.80gb": 1,
    }


def test_only_the_a100_profile_has_partitions() -> None:
    fleets = {name: devices(a_fleet(name)) for name in profile_names()}
    assert [name for name, found in fleets.items() if any(d.partitions for d in found)] == ["a100x8"]
