"""Lay out a node's devices as the ResourceSlices of one pool. Pure: the same devices give the same slices.

Order is allocation priority: slices are read in the order of their names and devices in the order in which they stand,
so devices are laid out in physical order, a whole device before its partitions.
A slice never has more than 64 devices, although 128 are allowed while none of them has a taint or counters:
otherwise the first device that falls ill would move all others.
Counter sets stand first, in slices of their own, as the API wants (KEP-4815).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from dra_driver.allocator import ALLOCATOR_KEY, ALLOCATOR_TAINT, Allocator
from dra_driver.api.meta_v1 import ObjectMeta, OwnerReference
from dra_driver.api.resource_slice_validation import (
    COUNTER_SETS_MAX,
    DEVICES_WITH_FEATURES_MAX,
    validate_resource_slice,
)
from dra_driver.api.resource_v1 import CounterSet, ResourcePool, ResourceSlice, ResourceSliceSpec
from dra_driver.api.resource_v1 import Device as SliceDevice
from dra_driver.devices.attribute import explain_not_shareable
from dra_driver.devices.model import Device, Inventory, LeftOut, Partition
from kubeletplugin.publish.coexistence import OtherOwner
from kubeletplugin.publish.feature import ALL_FEATURES, Features
from kubeletplugin.publish.offer import SharePolicy, build_counter_set, build_partition, build_whole
from kubeletplugin.publish.slice_name import build_slice_name

_CONTENT = ("spec.devices", "spec.sharedCounters")
_NAME_TAKEN = "another device has the same name, want unique identities"

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolOwner:
    """Whose pool it is: one driver on one node. The pool has the node's name, and goes when the Node goes.

    `allocator` is who gives its devices away, `others` are those who serve some of them, too.
    """

    driver: str
    node_name: str
    node_uid: str
    allocator: Allocator = Allocator.SCHEDULER
    others: tuple[OtherOwner, ...] = ()

    def find_other(self, device: Device) -> OtherOwner | None:
        """Return who else serves a device."""
        return next((other for other in self.others if other.vendor == device.vendor), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusals:
    """What an API server would not take, with its reason: devices and counter sets by name."""

    devices: Mapping[str, str] = field(default_factory=dict)
    counter_sets: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """All slices of the pool in order, at least one; what could not be published, or not to be shared; who else serves.

    The slices' generation is 0: which one they get depends on what is stored (`diff.plan_sync`).
    """

    owner: PoolOwner
    slices: tuple[ResourceSlice, ...]
    left_out: tuple[LeftOut, ...] = ()
    not_shareable: tuple[LeftOut, ...] = ()
    others: tuple[OtherOwner, ...] = ()

    @property
    def name(self) -> str:
        """The pool's name."""
        return self.owner.node_name

    @property
    def device_count(self) -> int:
        """How many devices are published, partitions included."""
        return sum(len(item.spec.devices) for item in self.slices)


def build_pool(
    inventory: Inventory,
    *,
    owner: PoolOwner,
    shares: SharePolicy,
    features: Features = ALL_FEATURES,
    refusals: Refusals | None = None,
) -> Pool:
    """Return the node's pool. `shares` says how devices are shared.

    A device that cannot be published (refused before, invalid, its name taken) is left out alone, with the reason.
    `left_out` begins with what the backends left out.
    Devices that somebody else serves, too, get a taint that says who.
    Devices that belong to the controller get the taint that keeps kube-scheduler away.
    What takes the place of a missing feature:

    - without `partitions`: no counters, a device that could be partitioned is published whole only;
    - without `sharing`: a whole device is given to one claim at a time;
    - without `taints`: a device that is unhealthy, or that somebody else serves, is left out, with its partitions; of a
      node that belongs to the controller every device is, since kube-scheduler would give it away.
    """
    if owner.allocator is Allocator.CONTROLLER and not features.taints:
        return Pool(owner=owner, slices=_pack(owner, [], []), left_out=(*inventory.left_out, _all_devices(owner)))
    draft = _Draft(owner, shares, features, refusals or Refusals())
    for device in inventory.devices:
        draft.add(device)
    return Pool(
        owner=owner,
        slices=_pack(owner, draft.devices, draft.counter_sets),
        left_out=(*inventory.left_out, *draft.left_out),
        not_shareable=tuple(draft.not_shareable),
        others=tuple(dict.fromkeys(other for device in inventory.devices if (other := owner.find_other(device)))),
    )


class _Draft:
    """Collects what the slices are made from, one whole device after the other."""

    def __init__(self, owner: PoolOwner, shares: SharePolicy, features: Features, refusals: Refusals) -> None:
        self._owner = owner
        self._shares = shares
        self._features = features
        self._refusals = refusals
        self._other: OtherOwner | None = None
        self._wholes: set[str] = set()
        self._names: set[str] = set()
        self.devices: list[SliceDevice] = []
        self.counter_sets: list[CounterSet] = []
        self.left_out: list[LeftOut] = []
        self.not_shareable: list[LeftOut] = []

    def add(self, device: Device) -> None:
        """Add a device: the whole of it, its partitions, both, or neither."""
        if device.name in self._wholes:
            self._leave_out(device.name, _NAME_TAKEN)
            return
        self._wholes.add(device.name)
        self._other = self._owner.find_other(device)
        if self._other is not None and not self._features.taints:
            self._leave_out(device.name, str(self._other))
            return
        if device.health is not None and not self._features.taints:
            self._leave_out(device.name, f"unhealthy, {device.health.reason}: {device.health.message}")
            return
        if device.has_permanent:
            self._add_parts(device, self._permanent_partitions(device))
            return
        partitions = self._partitions(device) if self._features.partitions else []
        if not device.offered_whole:
            self.counter_sets += [build_counter_set(device)] if partitions else []
            self._add_parts(device, partitions)
            return
        if device.share_memory is None and (problem := explain_not_shareable(device)):
            self.not_shareable.append(LeftOut(subject=device.name, problem=problem))
        whole = build_whole(device, shares=self._shares, features=self._features, takes_counters=bool(partitions))
        if partitions:
            self.counter_sets.append(build_counter_set(device))
        self.devices += [*self._accepted(whole), *partitions]

    def _add_parts(self, device: Device, partitions: list[SliceDevice]) -> None:
        """Add the partitions of a device that cannot be used whole."""
        self.devices += partitions
        if not partitions:
            self._leave_out(device.name, "switched to partitions, none of which is offered")

    def _permanent_partitions(self, device: Device) -> list[SliceDevice]:
        made = [partition for partition in device.partitions if partition.permanent and partition.offered]
        return self._build_partitions(device, made, takes_counters=False)

    def _partitions(self, device: Device) -> list[SliceDevice]:
        offered = [partition for partition in device.partitions if partition.offered]
        if not offered:
            return []
        if problem := self._counter_problem(device):
            self._leave_out(device.name, f"partitions: {problem}")
            return []
        sound: list[Partition] = []
        for partition in offered:
            if problem := _consumption_problem(device, partition):
                self._leave_out(device.partition_name(partition), problem)
            else:
                sound.append(partition)
        return self._build_partitions(device, sound, takes_counters=True)

    def _build_partitions(
        self, device: Device, partitions: Sequence[Partition], *, takes_counters: bool
    ) -> list[SliceDevice]:
        in_order = sorted(partitions, key=lambda item: (item.start, item.size, item.profile))
        built = (build_partition(device, partition, takes_counters=takes_counters) for partition in in_order)
        return [accepted for item in built for accepted in self._accepted(item)]

    def _accepted(self, device: SliceDevice) -> Iterator[SliceDevice]:
        """Yield the device, given to its allocator, if it can be published; else leave it out."""
        if self._other is not None:
            device = msgspec.structs.replace(device, taints=(*device.taints, self._other.taint))
        if self._owner.allocator is Allocator.CONTROLLER:
            device = msgspec.structs.replace(device, taints=(*device.taints, ALLOCATOR_TAINT))
        problem = self._refusals.devices.get(device.name) or self._problem(devices=(device,))
        if device.name in self._names:
            problem = _NAME_TAKEN
        if problem:
            self._leave_out(device.name, problem)
        else:
            self._names.add(device.name)
            yield device

    def _counter_problem(self, device: Device) -> str:
        refused = self._refusals.counter_sets.get(device.name)
        return refused or self._problem(shared_counters=(build_counter_set(device),))

    def _problem(self, *, devices: tuple[SliceDevice, ...] = (), shared_counters: tuple[CounterSet, ...] = ()) -> str:
        """Say in one line what the API server would refuse, or nothing."""
        errors = validate_resource_slice(_slice(self._owner, 0, 1, devices=devices, shared_counters=shared_counters))
        return "; ".join(str(error) for error in errors if error.path.startswith(_CONTENT))

    def _leave_out(self, subject: str, problem: str) -> None:
        self.left_out.append(LeftOut(subject=subject, problem=problem))


def _all_devices(owner: PoolOwner) -> LeftOut:
    problem = (
        f"the node is labelled {ALLOCATOR_KEY}={owner.allocator}, but the API server does not keep taints, which keep "
        "kube-scheduler from its devices, want the feature gate DRADeviceTaints or no such label"
    )
    return LeftOut(subject="all devices", problem=problem)


def _consumption_problem(device: Device, partition: Partition) -> str:
    """Say why a partition is unsafe: one that takes nothing of its device would be given out beside the whole."""
    if unknown := sorted(set(partition.counters) - set(device.counters)):
        return f"counters: {device.name} has no {', '.join(map(repr, unknown))}"
    if not any(amount > 0 for amount in partition.counters.values()):
        return f"counters: takes nothing of {device.name}, want a part"
    return ""


def _pack(owner: PoolOwner, devices: list[SliceDevice], counter_sets: list[CounterSet]) -> tuple[ResourceSlice, ...]:
    """Deal devices and counter sets out to slices. A pool without devices is one empty slice: complete, and empty."""
    sets = _batches(counter_sets, COUNTER_SETS_MAX)
    groups = _batches(devices, DEVICES_WITH_FEATURES_MAX) or [()]
    count = len(sets) + len(groups)
    return (
        *(_slice(owner, index, count, shared_counters=group) for index, group in enumerate(sets)),
        *(_slice(owner, index, count, devices=group) for index, group in enumerate(groups, start=len(sets))),
    )


def _slice(
    owner: PoolOwner,
    index: int,
    count: int,
    *,
    devices: tuple[SliceDevice, ...] = (),
    shared_counters: tuple[CounterSet, ...] = (),
) -> ResourceSlice:
    reference = OwnerReference(api_version="v1", kind="Node", name=owner.node_name, uid=owner.node_uid, controller=True)
    return ResourceSlice(
        metadata=ObjectMeta(
            name=build_slice_name(index, driver=owner.driver, node_name=owner.node_name),
            owner_references=(reference,),
        ),
        spec=ResourceSliceSpec(
            driver=owner.driver,
            node_name=owner.node_name,
            pool=ResourcePool(name=owner.node_name, generation=0, resource_slice_count=count),
            devices=devices,
            shared_counters=shared_counters,
        ),
    )


def _batches(items: Sequence[_T], size: int) -> list[tuple[_T, ...]]:
    return [tuple(items[start : start + size]) for start in range(0, len(items), size)]
