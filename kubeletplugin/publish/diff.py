"""What has to be written so that a pool is stored as it is laid out, by the rules of upstream's slice controller.

A pool is read by consumers as all slices of its newest generation, if there are as many as each of them says.
So a change of one slice may keep the generation, while a change of several gets a new one:
until the last of them is written the pool is incomplete, and nobody allocates from half of it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from dra_driver.api.resource_v1 import Device, DeviceTaint, ResourceSlice
from kubeletplugin.publish.layout import Pool

LAST_GENERATION: Final = 2**63 - 1
"""The largest that the API has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncPlan:
    """Writes in the order in which they are made: deletes (as stored), then updates, then creates.

    `slices` is the pool as it is stored afterwards, in order.
    """

    generation: int
    deletes: tuple[ResourceSlice, ...] = ()
    updates: tuple[ResourceSlice, ...] = ()
    creates: tuple[ResourceSlice, ...] = ()
    slices: tuple[ResourceSlice, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether all is stored as it should be."""
        return not (self.deletes or self.updates or self.creates)


def plan_sync(pool: Pool, stored: Iterable[ResourceSlice]) -> SyncPlan:
    """Return what has to be written, given all slices that are stored (others' too, which are left alone).

    Slices are ours if they have our driver and our node, whatever their pool; those that the pool does not have go.
    The generation is kept if nothing has to be created, at most one slice changes and their number is the same;
    otherwise it is the largest stored one plus one, and every slice is written. The first is 1, also after the last.
    """
    ours = [
        item for item in stored if item.spec.driver == pool.owner.driver and item.spec.node_name == pool.owner.node_name
    ]
    in_pool = {item.metadata.name: item for item in ours if item.spec.pool.name == pool.name}
    matched = [in_pool.get(wanted.metadata.name) for wanted in pool.slices]
    names = {item.metadata.name for item in matched if item is not None}
    deletes = tuple(item for item in ours if item.metadata.name not in names)

    newest = max((item.spec.pool.generation for item in in_pool.values()), default=0)
    kept = _slices_at(pool, newest, matched)
    changed = [item for item, old in zip(kept, matched, strict=True) if old is not None and not _is_same(item, old)]
    recount = any(old is not None and old.spec.pool.resource_slice_count != len(matched) for old in matched)
    if all(matched) and len(changed) <= 1 and not recount:
        return SyncPlan(generation=newest, deletes=deletes, updates=tuple(changed), slices=kept)

    if newest == LAST_GENERATION:  # somebody wrote it, and no slice can be newer than such a one
        anew = _slices_at(pool, 1, [None] * len(matched))
        return SyncPlan(generation=1, deletes=tuple(ours), creates=anew, slices=anew)

    raised = _slices_at(pool, newest + 1, matched)
    return SyncPlan(
        generation=newest + 1,
        deletes=deletes,
        updates=tuple(item for item, old in zip(raised, matched, strict=True) if old is not None),
        creates=tuple(item for item, old in zip(raised, matched, strict=True) if old is None),
        slices=raised,
    )


def _slices_at(pool: Pool, generation: int, matched: list[ResourceSlice | None]) -> tuple[ResourceSlice, ...]:
    """Return the pool's slices as they are written at a generation, over what is stored of them."""
    return tuple(_slice_at(wanted, generation, old) for wanted, old in zip(pool.slices, matched, strict=True))


def _slice_at(wanted: ResourceSlice, generation: int, old: ResourceSlice | None) -> ResourceSlice:
    spec = replace(wanted.spec, pool=replace(wanted.spec.pool, generation=generation))
    if old is None:
        return replace(wanted, spec=spec)
    times = {
        (device.name, taint.key, taint.value, taint.effect): taint.time_added
        for device in old.spec.devices
        for taint in device.taints
    }
    return replace(
        wanted,
        metadata=replace(old.metadata, owner_references=wanted.metadata.owner_references),
        spec=replace(spec, devices=tuple(_with_times(device, times) for device in spec.devices)),
    )


def _with_times(device: Device, times: Mapping[tuple[str, str, str, str], str | None]) -> Device:
    """Keep the time at which the server saw a taint first: tolerations count from it."""
    if not device.taints:
        return device
    return replace(device, taints=tuple(_with_time(device.name, taint, times) for taint in device.taints))


def _with_time(device: str, taint: DeviceTaint, times: Mapping[tuple[str, str, str, str], str | None]) -> DeviceTaint:
    added = times.get((device, taint.key, taint.value, taint.effect))
    return taint if taint.time_added else replace(taint, time_added=added)


def _is_same(wanted: ResourceSlice, stored: ResourceSlice) -> bool:
    return wanted.spec == stored.spec and wanted.metadata.owner_references == stored.metadata.owner_references


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A write: what was sent, and the resource version of what the server made of it."""

    sent: ResourceSlice
    resource_version: str


def restore_sent(stored: Iterable[ResourceSlice], written: Mapping[str, Written]) -> tuple[ResourceSlice, ...]:
    """Return the slices as they were sent, where nobody touched them since (`written` is by slice name).

    A server that changes what it is sent would otherwise be sent the same again and again.
    """
    return tuple(_as_sent(item, written.get(item.metadata.name)) for item in stored)


def _as_sent(stored: ResourceSlice, write: Written | None) -> ResourceSlice:
    if write is None or write.resource_version != stored.metadata.resource_version:
        return stored
    return replace(stored, spec=write.sent.spec)
