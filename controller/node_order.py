"""In which order nodes are tried: that makes a policy visible in where Pods land.

What a node has is counted in units: a device of its own, or all the devices that share a counter set.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, assert_never

from controller.allocator import AllocationError, Cluster, Policy
from controller.allocator.candidate import Candidate, find_link_domain
from controller.allocator.pool import Pool
from controller.allocator.state import AllocatedState
from dra_driver.api.resource_v1 import ResourceClaim

_WHOLE: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class NodeUse:
    """How far a node's devices are used. `used` and `left` are millionths of units, `share` millionths of all.

    `domains` are the numbers of free devices in each link domain, ascending; `singles` is how many free ones have none.
    """

    used: int = 0
    left: int = 0
    domains: tuple[int, ...] = ()
    singles: int = 0

    @property
    def share(self) -> int:
        """How much of the node is used."""
        total = self.used + self.left
        return _WHOLE * self.used // total if total else 0


def measure_node(cluster: Cluster, node: str) -> NodeUse:
    """Measure how far the devices of a node are used."""
    try:
        pools = cluster.pools(node)
    except AllocationError:
        return NodeUse()
    used = left = singles = 0
    domains: Counter[tuple[str, str]] = Counter()
    for pool in pools:
        for share in _measure_units(pool, cluster.state):
            used += share
            left += _WHOLE - share
        for candidate in pool.candidates:
            if cluster.state.is_allocated(candidate.id):
                continue
            domain = find_link_domain(candidate)
            if domain is not None:
                domains[domain] += 1
            else:
                singles += 1
    return NodeUse(used, left, tuple(sorted(domains.values())), singles)


def order_nodes(uses: Mapping[str, NodeUse], policy: Policy, count: int) -> Sequence[str]:
    """Give the nodes in the order in which `policy` wants them tried for `count` devices; equal ones by name."""
    match policy:
        case Policy.FIRST_FIT:
            return sorted(uses)
        case Policy.BINPACK:
            return sorted(uses, key=lambda name: (-uses[name].share, name))
        case Policy.SPREAD:
            return sorted(uses, key=lambda name: (uses[name].share, name))
        case Policy.BEST_FIT:
            return sorted(uses, key=lambda name: (uses[name].left, name))
        case Policy.TOPOLOGY:
            return sorted(uses, key=lambda name: (*_distance(uses[name], count), name))
        case _:
            assert_never(policy)


def count_devices(claims: Iterable[ResourceClaim]) -> int:
    """Give how many devices claims ask for, by their first alternatives; `All` counts as one."""
    count = 0
    for claim in claims:
        for request in claim.spec.devices.requests:
            first = request.exactly or (request.first_available[0] if request.first_available else None)
            count += max(first.count, 1) if first is not None else 0
    return count


def _distance(use: NodeUse, count: int) -> tuple[int, int]:
    """Sort by the smallest link domain that has enough; a single device is better taken from outside of any."""
    if count == 1 and use.singles:
        return (0, 0)
    enough = [free for free in use.domains if free >= count]
    if enough:
        return (1, enough[0])
    return (2, -max(use.domains, default=0))


def _measure_units(pool: Pool, state: AllocatedState) -> Iterable[int]:
    """Give how far each unit of a pool is used, in millionths."""
    sets: dict[str, Counter[tuple[str, str]]] = {}
    for candidate in pool.candidates:
        if not candidate.consumption:
            yield _measure_device(candidate, state)
            continue
        taken = sets.setdefault(next(iter(candidate.consumption))[0], Counter())
        if state.is_allocated(candidate.id):
            # A whole device that is shared counts as far as its shares go, partitions as far as their counters do.
            part = _measure_device(candidate, state)
            for key, amount in candidate.consumption.items():
                taken[key] += amount * part // _WHOLE
    for name, taken in sets.items():
        totals = {key: amount for key, amount in pool.counters.items() if key[0] == name and amount > 0}
        yield min(max((_WHOLE * taken[key] // amount for key, amount in totals.items()), default=0), _WHOLE)


def _measure_device(candidate: Candidate, state: AllocatedState) -> int:
    if candidate.id in state.whole:
        return _WHOLE
    if candidate.id not in state.shares:
        return 0
    held = state.consumed.get(candidate.id)
    if not held:
        return _WHOLE
    parts = [_WHOLE * held[name] // amount for name, amount in candidate.capacity.items() if amount > 0]
    return min(max(parts, default=_WHOLE), _WHOLE)
