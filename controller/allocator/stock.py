"""The devices of a node's pools in order, and who holds what of them now.

Kept up to date from the allocations as they change, so that nothing is counted again for one more claim. Sets of
devices are numbers with a bit for each, which makes passing over many of them one operation.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from controller.allocator.candidate import Candidate, Counters
from controller.allocator.pool import Pool
from controller.allocator.state import AllocatedState, DeviceId


@dataclass(slots=True, eq=False)
class Stock:
    """Devices by index.

    Of those `held` somebody has the whole, or shares although they are shareable no longer; `free` are the others.
    Of those that are `special` being free is not all that counts: they are shareable or take of counters.
    """

    pools: Sequence[Pool]
    state: AllocatedState
    refuses_stale_shares: bool = True
    candidates: list[Candidate] = field(default_factory=list)
    pool_of: list[Pool] = field(default_factory=list)
    held: list[bool] = field(default_factory=list)
    free: int = 0
    special: int = 0
    overcommitted: set[Pool] = field(default_factory=set)
    _counters: dict[Pool, Counters] = field(default_factory=dict)
    _places: dict[DeviceId, int] = field(default_factory=dict)
    _consumers: dict[DeviceId, tuple[Pool, Candidate]] = field(default_factory=dict)
    _used: set[DeviceId] = field(default_factory=set)

    def __post_init__(self) -> None:
        for pool in self.pools:
            if pool.is_usable:
                self.candidates.extend(pool.candidates)
                self.pool_of.extend([pool] * len(pool.candidates))
        whole = self.state.whole
        shares = self.state.shares if self.refuses_stale_shares else ()
        bit = 1
        for candidate in self.candidates:
            is_held = candidate.id in whole or (not candidate.is_shareable and candidate.id in shares)
            self.held.append(is_held)
            if not is_held:
                self.free |= bit
            if candidate.is_shareable or candidate.consumption or candidate.groups:
                self.special |= bit
            bit <<= 1
        if not self.refuses_stale_shares:
            self.special = bit - 1

    @property
    def everything(self) -> int:
        """All devices."""
        return (1 << len(self.candidates)) - 1

    def update(self, device: DeviceId, *, is_whole: bool, is_shared: bool) -> None:
        """Take notice that somebody holds a device as a whole, or shares of it, or no longer."""
        places = self._places
        if not places:
            places.update((candidate.id, index) for index, candidate in enumerate(self.candidates))
        index = places.get(device)
        if index is not None:
            is_stale = is_shared and self.refuses_stale_shares and not self.candidates[index].is_shareable
            is_held = is_whole or is_stale
            if is_held is not self.held[index]:
                self.held[index] = is_held
                self.free ^= 1 << index
        if device in self._consumers:
            self._count(device, is_used=is_whole or is_shared)

    def counters_left(self, pool: Pool) -> Counters:
        """Give what is left of the counters of a pool, in nano-units; it may be negative. Not to be changed."""
        counters = self._counters.get(pool)
        if counters is None:
            counters = self._counters[pool] = dict(pool.counters)
            # Without the gate there are no counters, whatever devices say.
            for candidate in (*pool.candidates, *pool.others) if counters else ():
                if candidate.consumption:
                    self._consumers[candidate.id] = (pool, candidate)
                    if self.state.is_allocated(candidate.id):
                        self._count(candidate.id, is_used=True)
        return counters

    def _count(self, device: DeviceId, *, is_used: bool) -> None:
        if is_used is (device in self._used):
            return
        pool, candidate = self._consumers[device]
        counters = self._counters[pool]
        if is_used:
            self._used.add(device)
        else:
            self._used.discard(device)
        for key, amount in candidate.consumption.items():
            counters[key] += -amount if is_used else amount
        if any(left < 0 for left in counters.values()):
            self.overcommitted.add(pool)
        else:
            self.overcommitted.discard(pool)


def places_of(devices: int) -> Iterator[int]:
    """Yield the indexes of a set of devices, in order."""
    while devices:
        lowest = devices & -devices
        yield lowest.bit_length() - 1
        devices ^= lowest
