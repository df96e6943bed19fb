"""What is given away already: devices, shares, and how much of each shared device.

Counted as kube-scheduler does it: admin access does not count, and a result with a share ID is a share while
DRAConsumableCapacity is on, and the whole device otherwise.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from dra_driver.api.resource_v1 import DeviceRequestAllocationResult, ResourceClaim

DeviceId: TypeAlias = tuple[str, str, str]
"""Driver, pool and device name."""


class Watcher(Protocol):
    """Who wants to know at once what becomes of devices."""

    def update(self, device: DeviceId, *, is_whole: bool, is_shared: bool) -> None:
        """Take notice of whether anybody now holds the device as a whole, or shares of it."""


@dataclass(slots=True)
class AllocatedState:
    """The sum of all allocations; claims can be added and taken away one by one.

    `whole` counts exclusive allocations of a device, `shares` its shares, `consumed` sums what shares consume, in
    nano-units; what is zero is left out, so that equal allocations give equal states, however they came about.
    """

    consumable_capacity: bool = True
    whole: Counter[DeviceId] = field(default_factory=Counter)
    shares: Counter[DeviceId] = field(default_factory=Counter)
    consumed: dict[DeviceId, Counter[str]] = field(default_factory=dict)
    _watchers: dict[tuple[str, str], list[Watcher]] = field(default_factory=dict, repr=False, compare=False)

    def watch(self, driver: str, pool: str, watcher: Watcher) -> None:
        """Tell `watcher` of what becomes of a pool's devices from now on."""
        self._watchers.setdefault((driver, pool), []).append(watcher)

    def unwatch(self, driver: str, pool: str, watcher: Watcher) -> None:
        """Tell it no longer; it must watch the pool."""
        watchers = self._watchers[driver, pool]
        watchers.remove(watcher)
        if not watchers:
            del self._watchers[driver, pool]

    def add(self, claim: ResourceClaim) -> None:
        """Count what `claim` holds."""
        self._change(claim, 1)

    def discard(self, claim: ResourceClaim) -> None:
        """Count no longer what `claim` holds; it must have been added before."""
        self._change(claim, -1)

    def without(self, devices: frozenset[DeviceId]) -> "AllocatedState":
        """Give the state as if nobody held the devices."""
        return AllocatedState(
            self.consumable_capacity,
            Counter({device: count for device, count in self.whole.items() if device not in devices}),
            Counter({device: count for device, count in self.shares.items() if device not in devices}),
            {device: consumed for device, consumed in self.consumed.items() if device not in devices},
        )

    def is_allocated(self, device: DeviceId) -> bool:
        """Tell whether anybody holds the device or a share of it."""
        return device in self.whole or device in self.shares

    def _change(self, claim: ResourceClaim, sign: int) -> None:
        if claim.status.allocation is None:
            return
        for result in claim.status.allocation.devices.results:
            if not result.admin_access:
                self._change_result(result, sign)

    def _change_result(self, result: DeviceRequestAllocationResult, sign: int) -> None:
        device = (result.driver, result.pool, result.device)
        is_whole = result.share_id is None or not self.consumable_capacity
        _count(self.whole if is_whole else self.shares, device, sign)
        for watcher in self._watchers.get((result.driver, result.pool), ()):
            watcher.update(device, is_whole=device in self.whole, is_shared=device in self.shares)
        if is_whole:
            return
        if not result.consumed_capacity:
            return
        consumed = self.consumed.setdefault(device, Counter())
        for name, quantity in result.consumed_capacity.items():
            consumed[name] += sign * quantity.nanos
            if not consumed[name]:
                del consumed[name]
        if not consumed:
            del self.consumed[device]


def build_allocated_state(claims: Iterable[ResourceClaim], *, consumable_capacity: bool = True) -> AllocatedState:
    """Sum what `claims` hold."""
    state = AllocatedState(consumable_capacity)
    for claim in claims:
        state.add(claim)
    return state


def _count(counter: Counter[DeviceId], device: DeviceId, sign: int) -> None:
    counter[device] += sign
    if counter[device] <= 0:
        del counter[device]
