"""What became of devices that are allocated: gone, or unhealthy. The claim keeps them, but people must know."""

from collections.abc import Iterable, Iterator, Mapping

from dra_driver.api.resource_v1 import Device, DeviceRequestAllocationResult, ResourceClaim, ResourceSlice
from dra_driver.devices.model import UNHEALTHY_TAINT

PoolDevices = Mapping[tuple[str, str], Mapping[str, Device]]
"""Devices by name, by driver and pool."""


def find_ailments(claim: ResourceClaim, pools: PoolDevices) -> Iterator[tuple[str, str]]:
    """Yield an Event's reason and text for each allocated device that is not well. Only those of `pools` are judged."""
    allocation = claim.status.allocation
    for result in allocation.devices.results if allocation is not None else ():
        devices = pools.get((result.driver, result.pool))
        if devices is not None:
            yield from _find_ailments(result, devices.get(result.device))


def gather_devices(slices: Iterable[ResourceSlice]) -> PoolDevices:
    """Give the devices of each pool's largest generation. A pool that lacks slices is being updated, and left out."""
    groups: dict[tuple[str, str], list[ResourceSlice]] = {}
    for slice_ in slices:
        groups.setdefault((slice_.spec.driver, slice_.spec.pool.name), []).append(slice_)
    pools = {}
    for key, group in groups.items():
        newest = max(slice_.spec.pool.generation for slice_ in group)
        current = [slice_ for slice_ in group if slice_.spec.pool.generation == newest]
        if len(current) == current[0].spec.pool.resource_slice_count:
            pools[key] = {device.name: device for slice_ in current for device in slice_.spec.devices}
    return pools


def _find_ailments(result: DeviceRequestAllocationResult, device: Device | None) -> Iterator[tuple[str, str]]:
    subject = f"device {result.pool}/{result.device}"
    if device is None:
        yield "DeviceGone", f"{subject}: allocated to this claim, and no longer published"
        return
    for taint in device.taints:
        if taint.key == UNHEALTHY_TAINT:
            yield "DeviceUnhealthy", f"{subject}: allocated to this claim, and unhealthy: {taint.value}"
