"""The devices of a simulated node, built from profile, node name and overrides."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count

from dra_driver.devices.model import Device, Health, Inventory, LeftOut, Link, Partition
from dra_driver.devices.simulated.identity import render_partition_uuid, render_serial, render_uuid
from dra_driver.devices.simulated.override import MadePartition, Overrides
from dra_driver.devices.simulated.profile import (
    DeviceGroup,
    Partitioning,
    PartitionProfile,
    Profile,
    Slot,
    parse_memory,
    slice_counters,
)


@dataclass(frozen=True, slots=True)
class Seat:
    """One device of the node and its position, which never changes: the profile's devices first, then the added.

    `placements` are all the partitions that it could have; the device offers fewer once an administrator made some.
    """

    position: int
    device: Device
    placements: tuple[Partition, ...]

    def find_placement(self, name: str) -> tuple[int, Partition] | None:
        """The placement of that partition name, with its number among all placements."""
        named = (pair for pair in enumerate(self.placements) if self.device.partition_name(pair[1]) == name)
        return next(named, None)


@dataclass(frozen=True, slots=True)
class Fleet:
    """The seats that are taken, in physical order, and what in the overrides fits no device."""

    seats: tuple[Seat, ...]
    left_out: tuple[LeftOut, ...] = ()

    def inventory(self) -> Inventory:
        """The fleet as a backend reports it."""
        return Inventory(devices=tuple(seat.device for seat in self.seats), left_out=self.left_out)

    def find(self, name: str) -> Seat | None:
        """The seat of the device with that name."""
        return next((seat for seat in self.seats if seat.device.name == name), None)


def build_fleet(profile: Profile, node_name: str, overrides: Overrides) -> Fleet:
    """Build all devices of the node as they are now; no partition has its UUID yet but the administrator's."""
    seats = list(_seats(profile.devices, (node_name, "profile"), []))
    seats += _seats(overrides.groups(profile), (node_name, "added"), seats)
    keys = {key: seat for seat in seats for key in (str(seat.position), seat.device.name)}
    left_out = tuple(_unknown(overrides, keys)) + tuple(_misplaced(overrides, keys))
    removed = {keys[str(key)].position for key in overrides.removed if str(key) in keys}
    there = [
        replace(seat, device=_override(seat.device, {str(seat.position), seat.device.name}, overrides))
        for seat in seats
        if seat.position not in removed
    ]
    return Fleet(tuple(sorted(there, key=lambda seat: seat.device.pci_bus_id or "")), left_out)


def _seats(groups: tuple[DeviceGroup, ...], seed: tuple[str, str], before: list[Seat]) -> Iterator[Seat]:
    """The devices of some groups, numbered on from those before; indices count per vendor."""
    positions = count(len(before))
    indices = Counter(seat.device.vendor for seat in before)
    for group in groups:
        seats = []
        for slot in group.slots or (None,) * group.count:
            position = next(positions)
            own_seed = (*seed, group.model, str(position - len(before)))
            device = _build_device(group, slot, own_seed, position, indices[group.vendor])
            indices[group.vendor] += 1
            seats.append(Seat(position, device, device.partitions))
        yield from _linked(group, seats)


def _build_device(group: DeviceGroup, slot: Slot | None, seed: tuple[str, ...], position: int, index: int) -> Device:
    slot = slot or Slot(address=f"0001:{position + 1:02x}:00.0", root="pci0001:00")
    uuid = render_uuid(group.vendor, *seed)
    return Device(
        vendor=group.vendor,
        type=group.type,
        identity=uuid,
        model=group.model,
        family=group.family,
        product_name=group.product_name,
        uuid=uuid,
        serial=render_serial(group.vendor, *seed),
        index=index,
        minor=index,
        memory=None if group.memory is None else parse_memory(group.memory),
        memory_type=group.memory_type,
        compute_capability=group.compute_capability,
        compute_units=group.compute_units,
        driver_version=group.driver_version,
        runtime_version=group.runtime_version,
        fabric_domain=group.fabric_domain,
        share_enforcement=group.share_enforcement,
        numa_node=slot.numa_node,
        pcie_root=slot.root,
        pci_bus_id=slot.address,
        partitions=_partitions(group.partitioning) if group.partitioning else (),
        counters=_totals(group.partitioning) if group.partitioning else {},
    )


def _linked(group: DeviceGroup, seats: list[Seat]) -> Iterator[Seat]:
    """Join the devices of a group. A member that is removed later still names its domain: the others keep theirs."""
    if group.link is None:
        yield from seats
        return
    size = group.link.size or len(seats)
    for first in range(0, len(seats), size):
        members = seats[first : first + size]
        domain = min(seat.device.identity for seat in members)
        link = Link(domain=domain, type=group.link.type, full_mesh=group.link.full_mesh)
        for seat in members:
            yield replace(seat, device=replace(seat.device, link=link))


def _totals(partitioning: Partitioning) -> Mapping[str, int]:
    return slice_counters(0, partitioning.slices) | partitioning.counters


def _partitions(partitioning: Partitioning) -> tuple[Partition, ...]:
    placed = [_partition(profile, start) for profile in partitioning.profiles for start in profile.starts]
    return tuple(sorted(placed, key=lambda partition: (partition.start, partition.size)))


def _partition(profile: PartitionProfile, start: int) -> Partition:
    return Partition(
        profile=profile.profile,
        start=start,
        size=profile.size,
        memory=parse_memory(profile.memory),
        compute_units=profile.compute_units,
        counters=slice_counters(start, profile.size) | profile.counters,
    )


def _override(device: Device, keys: set[str], overrides: Overrides) -> Device:
    for key, unhealthy in overrides.unhealthy.items():
        if str(key) in keys:
            device = replace(device, health=Health(reason=unhealthy.reason, message=unhealthy.message))
    made = [placed for key, wanted in overrides.partitions.items() if str(key) in keys for placed in wanted]
    permanent = _permanent(device, made)
    return replace(device, partitions=permanent) if permanent else device


def _permanent(device: Device, made: list[MadePartition]) -> tuple[Partition, ...]:
    """The partitions that the administrator made, those left aside that the hardware would have refused."""
    left = Counter(device.counters)
    wanted = {(placed.profile, placed.start) for placed in made}
    found = []
    for partition in device.partitions:
        if (partition.profile, partition.start) in wanted and Counter(partition.counters) <= left:
            left -= Counter(partition.counters)
            uuid = render_partition_uuid(device.vendor, device.identity, partition.profile, partition.start)
            found.append(replace(partition, uuid=uuid, permanent=True))
    return tuple(found)


def _unknown(overrides: Overrides, keys: Mapping[str, Seat]) -> Iterator[LeftOut]:
    named = (("unhealthy", overrides.unhealthy), ("removed", overrides.removed), ("partitions", overrides.partitions))
    for field, devices in named:
        for key in devices:
            if str(key) not in keys:
                yield LeftOut(subject=f"overrides {field}", problem=f"device {str(key)!r} is not on this node")


def _misplaced(overrides: Overrides, keys: Mapping[str, Seat]) -> Iterator[LeftOut]:
    for key, made in overrides.partitions.items():
        seat = keys.get(str(key))
        permanent = _permanent(seat.device, list(made)) if seat else ()
        there = {(partition.profile, partition.start) for partition in permanent}
        for placed in made if seat else ():
            if (placed.profile, placed.start) not in there:
                problem = f"partition {placed.profile!r} at {placed.start} does not exist there, or overlaps another"
                yield LeftOut(subject=f"overrides partitions {key}", problem=problem)
