"""The pools that a node can use, in the order in which upstream tries them.

A pool is known by the slices that are relevant for the node; the others count for completeness and for counters.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from controller.allocator.candidate import Candidate, Counters, build_candidate
from controller.allocator.feature import Features
from controller.allocator.node_selection import matches_node
from controller.allocator.slice_index import PoolId, SliceIndex
from dra_driver.api.core_v1 import Node
from dra_driver.api.resource_v1 import Device, ResourceSlice


@dataclass(slots=True, eq=False)
class Pool:
    """Devices that are managed together.

    `candidates` are the devices of slices that are relevant for the node, `others` those that only count for
    `counters`, which holds the totals. Without slices enough it is incomplete; `invalid` says why it contradicts
    itself. Then it has no devices.
    """

    id: PoolId
    is_incomplete: bool = False
    invalid: str = ""
    candidates: tuple[Candidate, ...] = ()
    others: tuple[Candidate, ...] = ()
    counters: Counters = field(default_factory=dict)
    has_binding_conditions: bool = False

    @property
    def is_usable(self) -> bool:
        """Whether devices can be taken from it."""
        return not self.is_incomplete and not self.invalid


def gather_pools(
    node: Node, slices: SliceIndex, features: Features, completed: frozenset[PoolId] = frozenset()
) -> tuple[Pool, ...]:
    """Give the pools with devices for `node`, out of all slices of the cluster.

    Slices of old generations are ignored. What is there of the pools `completed` counts as all of them. Raises
    AllocationError for a malformed node selector.
    """
    relevant = _group(_relevant_slices(node, slices, features))
    pools = [
        pool
        for pool_id, group in relevant.items()
        if (pool := _build_checked_pool(pool_id, group, slices, features)) is not None
    ]
    for place, pool in enumerate(pools):
        if pool.is_incomplete and pool.id in completed:
            pools[place] = _build_pool(pool.id, relevant[pool.id], (), features)
    pools.sort(key=attrgetter("has_binding_conditions", "id"))
    return tuple(pools)


def _relevant_slices(node: Node, slices: SliceIndex, features: Features) -> Iterable[ResourceSlice]:
    for slice_ in slices.for_node(node.metadata.name):
        if not _is_skipped(slice_, features) and _is_relevant(node, slice_):
            yield slice_


def _is_skipped(slice_: ResourceSlice, features: Features) -> bool:
    spec = slice_.spec
    if not features.partitionable_devices and (spec.per_device_node_selection is not None or spec.shared_counters):
        return True
    return not features.compatibility_groups and _uses_compatibility_groups(slice_)


def _uses_compatibility_groups(slice_: ResourceSlice) -> bool:
    return any(entry.compatibility_groups for device in slice_.spec.devices for entry in device.consumes_counters)


def _is_relevant(node: Node, slice_: ResourceSlice) -> bool:
    spec = slice_.spec
    if spec.node_name or spec.all_nodes or spec.node_selector is not None:
        subject = f"slice {slice_.metadata.name}"
        return matches_node(node, spec.node_name, spec.node_selector, subject, all_nodes=spec.all_nodes)
    if not spec.per_device_node_selection:
        return False
    return any(matches_device_node(node, device, slice_) for device in spec.devices)


def matches_device_node(node: Node, device: Device, slice_: ResourceSlice) -> bool:
    """Tell whether a device of a slice with perDeviceNodeSelection is for `node`."""
    subject = f"device {device.name} in slice {slice_.metadata.name}"
    return matches_node(node, device.node_name, device.node_selector, subject, all_nodes=device.all_nodes)


def _group(slices: Iterable[ResourceSlice]) -> dict[PoolId, list[ResourceSlice]]:
    """Group by pool; only the largest generation stays."""
    groups: dict[PoolId, list[ResourceSlice]] = {}
    for slice_ in slices:
        pool = slice_.spec.pool
        group = groups.setdefault((slice_.spec.driver, pool.name), [])
        generation = group[0].spec.pool.generation if group else pool.generation
        if pool.generation > generation:
            group.clear()
        if pool.generation >= generation:
            group.append(slice_)
    return groups


def _build_checked_pool(
    pool_id: PoolId, group: list[ResourceSlice], slices: SliceIndex, features: Features
) -> Pool | None:
    """Build the pool, looking at all slices of the cluster if some seem to lack; None if it is out of date."""
    pool = group[0].spec.pool
    if len(group) == pool.resource_slice_count:
        return _build_pool(pool_id, group, (), features)
    whole = slices.of_pool(pool_id)
    if any(slice_.spec.pool.generation > pool.generation for slice_ in whole):
        return None
    whole = [slice_ for slice_ in whole if slice_.spec.pool.generation == pool.generation]
    if not features.compatibility_groups:
        whole = [slice_ for slice_ in whole if not _uses_compatibility_groups(slice_)]
    if len(whole) != pool.resource_slice_count:
        return Pool(pool_id, is_incomplete=True)
    names = {slice_.metadata.name for slice_ in group}
    others = [slice_ for slice_ in whole if slice_.metadata.name not in names] if len(group) < len(whole) else []
    return _build_pool(pool_id, group, others, features)


def _build_pool(
    pool_id: PoolId, group: Sequence[ResourceSlice], others: Sequence[ResourceSlice], features: Features
) -> Pool:
    ordered = sorted(group, key=lambda slice_: slice_.metadata.name)
    has_counters = features.partitionable_devices
    candidates = _build_candidates(slice_ for slice_ in ordered if not (has_counters and slice_.spec.shared_counters))
    pool = Pool(pool_id, candidates=candidates)
    pool.invalid = _duplicate_device(candidates)
    if not pool.invalid and has_counters:
        pool.others = _build_candidates(slice_ for slice_ in others if not slice_.spec.shared_counters)
        pool.invalid = _sum_counters(pool, (*ordered, *others))
    if pool.invalid:
        return Pool(pool_id, invalid=pool.invalid)
    pool.has_binding_conditions = any(candidate.device.binding_conditions for candidate in candidates)
    return pool


def _build_candidates(slices: Iterable[ResourceSlice]) -> tuple[Candidate, ...]:
    return tuple(build_candidate(device, slice_) for slice_ in slices for device in slice_.spec.devices)


def _duplicate_device(candidates: Iterable[Candidate]) -> str:
    names: set[str] = set()
    for candidate in candidates:
        if candidate.device.name in names:
            return f"duplicate device name {candidate.device.name!r}"
        names.add(candidate.device.name)
    return ""


def _sum_counters(pool: Pool, holders: Iterable[ResourceSlice]) -> str:
    """Fill in the counters of the pool; give what is wrong with them."""
    names: set[str] = set()
    for slice_ in holders:
        for counter_set in slice_.spec.shared_counters:
            if counter_set.name in names:
                return f"duplicate counter set {counter_set.name!r}"
            names.add(counter_set.name)
            for name, counter in counter_set.counters.items():
                pool.counters[counter_set.name, name] = counter.value.nanos
    for candidate in (*pool.candidates, *pool.others):
        for name in candidate.groups:
            if name not in names:
                return f"device {candidate.device.name!r} consumes of unknown counter set {name!r}"
        for key in candidate.consumption:
            if key not in pool.counters:
                return f"device {candidate.device.name!r} consumes unknown counter {key[1]!r} of set {key[0]!r}"
    return ""
