"""What became of devices that are allocated: gone, or unhealthy. The claim keeps them, but people must know."""

from collections.abc import Iterable, Iterator
from typing import Final

from dra_driver.api.resource_v1 import Device, DeviceRequestAllocationResult, ResourceClaim, ResourceSlice

UNHEALTHY: Final = "dra-driver.io/unhealthy"


def find_ailments(claim: ResourceClaim, slices: Iterable[ResourceSlice]) -> Iterator[tuple[str, str]]:
    """Yield an Event's reason and text for each allocated device that is not as it should be.

    `slices` are all slices of the pools that the claim has devices of. A pool that is being updated is not judged.
    """
    allocation = claim.status.allocation
    pools = _gather_pools(slices)
    for result in allocation.devices.results if allocation is not None else ():
        devices = pools.get((result.driver, result.pool))
        if devices is not None:
            yield from _find_ailments(result, devices.get(result.device))


def _find_ailments(result: DeviceRequestAllocationResult, device: Device | None) -> Iterator[tuple[str, str]]:
    subject = f"device {result.pool}/{result.device}"
    if device is None:
        yield "DeviceGone", f"{subject}: allocated to this claim, and no longer published"
        return
    for taint in device.taints:
        if taint.key == UNHEALTHY:
            yield "DeviceUnhealthy", f"{subject}: allocated to this claim, and unhealthy: {taint.value}"


def _gather_pools(slices: Iterable[ResourceSlice]) -> dict[tuple[str, str], dict[str, Device]]:
    """Give the devices of the largest generation of each pool by name, if all its slices are there."""
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
