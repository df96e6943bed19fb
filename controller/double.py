"""Whether a device was given away twice, as two controllers can do that both believe that they lead.

The API server orders all writes. Whoever has written an allocation and has then seen everything up to it knows whether
somebody was faster; only then is the Pod let go. Of two allocations the earlier one stays.
"""

from collections.abc import Iterable, Iterator, Mapping

from controller.allocator.candidate import Candidate
from controller.allocator.pool import Pool
from controller.allocator.state import AllocatedState, DeviceId
from dra_driver.api.resource_v1 import ResourceClaim
from dra_driver.kube.resource import ObjectKey, key_of


def find_double(claim: ResourceClaim, state: AllocatedState, pools: Iterable[Pool]) -> frozenset[DeviceId]:
    """Give the devices that are allocated beside those of `claim` although there is not enough for both.

    Devices of the claim are among them. `state` counts the claim and all others; `pools` are those of the node.
    """
    candidates = {candidate.id: (candidate, pool) for pool in pools for candidate in pool.candidates}
    devices: set[DeviceId] = set()
    for device in _devices(claim):
        uses = state.whole.get(device, 0)
        if uses > 1 or (uses and device in state.shares):
            devices.add(device)
        known = candidates.get(device)
        if known is not None:
            devices.update(_find_overdrawn(*known, state))
    return frozenset(devices)


def find_earlier(
    claim: ResourceClaim, devices: frozenset[DeviceId], claims: Iterable[ResourceClaim], since: Mapping[ObjectKey, int]
) -> ResourceClaim | None:
    """Give a claim that got one of `devices` before `claim` did; `since` are the versions of the allocations."""
    own = since.get(key_of(claim), 0)
    for other in claims:
        key = key_of(other)
        if key != key_of(claim) and since.get(key, own) < own and not devices.isdisjoint(_devices(other)):
            return other
    return None


def _devices(claim: ResourceClaim) -> Iterator[DeviceId]:
    allocation = claim.status.allocation
    for result in allocation.devices.results if allocation is not None else ():
        if not result.admin_access:
            yield (result.driver, result.pool, result.device)


def _find_overdrawn(candidate: Candidate, pool: Pool, state: AllocatedState) -> Iterator[DeviceId]:
    """Yield the devices that together take more of a capacity or counter of `candidate` than there is."""
    held = state.consumed.get(candidate.id)
    if held and any(held[name] > amount for name, amount in candidate.capacity.items()):
        yield candidate.id
    for key in candidate.consumption:
        users = [each for each in (*pool.candidates, *pool.others) if state.is_allocated(each.id)]
        if sum(each.consumption.get(key, 0) for each in users) > pool.counters.get(key, 0):
            yield from (each.id for each in users if key in each.consumption)
