"""What is given away already: devices, shares, and how much of each shared device.

Counted as kube-scheduler does it: admin access does not count, and a result with a share ID is a share while
DRAConsumableCapacity is on, and the whole device otherwise.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from dra_driver.api.resource_v1 import DeviceRequestAllocationResult, ResourceClaim

DeviceId: TypeAlias = tuple[str, str, str]
"""Driver, pool and device name."""


Change: TypeAlias = tuple[DeviceId, bool, bool]
"""A device, and whether somebody holds it as a whole, and shares of it."""

_CHANGES_MAX: Final = 10_000


@dataclass(slots=True)
class AllocatedState:
    """The sum of all allocations; claims can be added and taken away one by one.

    `whole` counts exclusive allocations of a device, `shares` its shares, `consumed` sums what shares consume, in
    nano-units.
    """

    consumable_capacity: bool = True
    whole: Counter[DeviceId] = field(default_factory=Counter)
    shares: Counter[DeviceId] = field(default_factory=Counter)
    consumed: dict[DeviceId, Counter[str]] = field(default_factory=dict)
    _changes: list[Change] = field(default_factory=list, repr=False, compare=False)
    _forgotten: int = field(default=0, repr=False, compare=False)

    @property
    def version(self) -> int:
        """A number that grows with every change."""
        return self._forgotten + len(self._changes)

    def changed_since(self, version: int) -> Sequence[Change] | None:
        """Give what changed since the state had `version`, in order; None if that is long ago."""
        start = version - self._forgotten
        return self._changes[start:] if start >= 0 else None

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
        if len(self._changes) >= _CHANGES_MAX:
            self._forgotten += len(self._changes)
            self._changes.clear()
        self._changes.append((device, device in self.whole, device in self.shares))
        if is_whole:
            return
        if not result.consumed_capacity:
            return
        consumed = self.consumed.setdefault(device, Counter())
        for name, quantity in result.consumed_capacity.items():
            consumed[name] += sign * quantity.nanos
        if device not in self.shares:
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
