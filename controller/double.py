"""Whether a device was given away twice, as two controllers can do that both believe that they lead.

The API server orders all writes. Whoever has written an allocation and has then seen everything up to it knows whether
somebody was faster; only then is the Pod let go.
"""

from collections.abc import Iterable

from controller.allocator.candidate import Candidate
from controller.allocator.pool import Pool
from controller.allocator.state import AllocatedState
from dra_driver.api.resource_v1 import ResourceClaim


def find_double(claim: ResourceClaim, state: AllocatedState, pools: Iterable[Pool]) -> str:
    """Say which device of an allocated claim more is taken of than there is; empty if none.

    `state` counts the claim and all others; `pools` are those of the node, and others are not looked at.
    """
    candidates = {candidate.id: (candidate, pool) for pool in pools for candidate in pool.candidates}
    allocation = claim.status.allocation
    for result in allocation.devices.results if allocation is not None else ():
        device = (result.driver, result.pool, result.device)
        if result.admin_access:
            continue
        uses = state.whole.get(device, 0)
        if uses > 1 or (uses and device in state.shares):
            return f"device {'/'.join(device)} is allocated twice"
        known = candidates.get(device)
        if known is not None and _is_overdrawn(*known, state):
            return f"device {'/'.join(device)}: more is allocated than it has"
    return ""


def _is_overdrawn(candidate: Candidate, pool: Pool, state: AllocatedState) -> bool:
    held = state.consumed.get(candidate.id)
    if held and any(held[name] > amount for name, amount in candidate.capacity.items()):
        return True
    for key in candidate.consumption:
        users = (each for each in (*pool.candidates, *pool.others) if state.is_allocated(each.id))
        if sum(each.consumption.get(key, 0) for each in users) > pool.counters.get(key, 0):
            return True
    return False
