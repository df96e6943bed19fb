"""The entries of a claim's `status.devices` that are this driver's: a condition for people, data for programs. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from dra_driver.api.meta_v1 import Condition, JsonObject, Time
from dra_driver.api.resource_v1 import AllocatedDeviceStatus, ResourceClaim
from kubeletplugin.catalog import Entry
from kubeletplugin.prepare.record import PreparedDevice
from kubeletplugin.sharing.mps_state import DOWN

READY: Final = "Ready"

_MOST_DATA: Final = 10 * 1024
_MOST_MESSAGE: Final = 1024

Key = tuple[str, str, str, str | None]
"""What tells the entries of one claim apart: driver, pool, device, share."""


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether a device of a claim can be used, with a reason for programs and a message for people."""

    ready: bool
    reason: str
    message: str = ""


def explain_readiness(entry: Entry | None, daemon_problem: str | None = None) -> Readiness:
    """Say how a prepared device is, given what the node has of it now, and why its MPS daemon cannot be used, if so."""
    if entry is None:
        return Readiness(ready=False, reason="DeviceGone", message="not on this node any more")
    if (health := entry.device.health) is not None:
        return Readiness(ready=False, reason="DeviceUnhealthy", message=f"{health.reason}: {health.message}")
    if daemon_problem is not None:
        return Readiness(ready=False, reason=DOWN, message=daemon_problem)
    return Readiness(ready=True, reason="Prepared")


def render_data(device: PreparedDevice, entry: Entry | None, nodes: Sequence[str]) -> JsonObject:
    """Write what is known of a prepared device, absent what is not; `nodes` are those that a container gets.

    At most 10 KiB, which is what the API takes: the nodes go first.
    """
    data: JsonObject = {"request": device.request}
    if entry is not None:
        data |= _render_device(entry)
    if device.consumed is not None:
        data["consumed"] = {name: value for name, value in msgspec.structs.asdict(device.consumed).items() if value}
    if device.admin_access:
        data["adminAccess"] = True
    whole = data | ({"deviceNodes": list(nodes)} if nodes else {})
    return whole if len(msgspec.json.encode(whole)) <= _MOST_DATA else data


def build_entry(driver: str, device: PreparedDevice, readiness: Readiness, data: JsonObject) -> AllocatedDeviceStatus:
    """Build the entry of a prepared device; the time of its condition is still to be filled in."""
    return AllocatedDeviceStatus(
        driver=driver,
        pool=device.pool,
        device=device.device,
        share_id=device.share_id,
        conditions=(_build_condition(readiness),),
        data=data,
    )


def build_failed_entries(claim: ResourceClaim, driver: str, pool: str, reason: str, message: str) -> tuple[
    AllocatedDeviceStatus, ...
]:  # fmt: skip
    """Build the entries of all devices that a claim has of this driver in this pool, and that could not be prepared."""
    allocation = claim.status.allocation
    condition = _build_condition(Readiness(ready=False, reason=reason, message=message))
    return unique(
        AllocatedDeviceStatus(
            driver=result.driver,
            pool=result.pool,
            device=result.device,
            share_id=result.share_id,
            conditions=(condition,),
        )
        for result in (allocation.devices.results if allocation is not None else ())
        if (result.driver, result.pool) == (driver, pool)
    )


def unique(entries: Iterable[AllocatedDeviceStatus]) -> tuple[AllocatedDeviceStatus, ...]:
    """Keep one entry a key, the first: admin access may give a device to a claim twice."""
    found: dict[Key, AllocatedDeviceStatus] = {}
    for entry in entries:
        found.setdefault(key_of(entry), entry)
    return tuple(found.values())


def key_of(entry: AllocatedDeviceStatus) -> Key:
    """Return what the API tells an entry by."""
    return entry.driver, entry.pool, entry.device, entry.share_id


def keep_times(
    wanted: Sequence[AllocatedDeviceStatus], stored: Mapping[Key, AllocatedDeviceStatus], now: Time
) -> tuple[AllocatedDeviceStatus, ...]:
    """Fill in since when each condition is as it is: what is stored if its status is the same, else now."""
    return tuple(_keep_time(entry, stored.get(key_of(entry)), now) for entry in wanted)


def is_stored(wanted: Sequence[AllocatedDeviceStatus], stored: Mapping[Key, AllocatedDeviceStatus]) -> bool:
    """Whether exactly these entries are stored; conditions and network data of others in them do not count."""
    return {key_of(entry) for entry in wanted} == set(stored) and all(
        entry.data == stored[key_of(entry)].data
        and all(condition in stored[key_of(entry)].conditions for condition in entry.conditions)
        for entry in wanted
    )


def _build_condition(readiness: Readiness) -> Condition:
    return Condition(
        type=READY,
        status=str(readiness.ready),
        last_transition_time=Time(""),
        reason=readiness.reason,
        message=readiness.message[:_MOST_MESSAGE],
    )


def _keep_time(entry: AllocatedDeviceStatus, stored: AllocatedDeviceStatus | None, now: Time) -> AllocatedDeviceStatus:
    since = {each.type: each for each in stored.conditions} if stored is not None else {}
    conditions = tuple(
        msgspec.structs.replace(
            each,
            last_transition_time=since[each.type].last_transition_time
            if each.type in since and since[each.type].status == each.status
            else now,
        )
        for each in entry.conditions
    )
    return msgspec.structs.replace(entry, conditions=conditions)


def _render_device(entry: Entry) -> JsonObject:
    device, partition = entry.device, entry.partition
    known = {
        "vendor": device.vendor,
        "model": device.model,
        "productName": device.product_name,
        "uuid": device.uuid if partition is None else partition.uuid,
        "parentUUID": None if partition is None else device.uuid,
        "partitionProfile": None if partition is None else partition.profile,
        "pciBusID": device.pci_bus_id,
        "driverVersion": device.driver_version,
    }
    return {name: value for name, value in known.items() if value is not None}
