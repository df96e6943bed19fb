"""Weighs what a backend sees of a device's health with what was seen before. Pure: the time is given.

A device that falls ill is ill at once. It is well again only after it was seen well for a hold time without a break;
that time doubles each time it falls ill again, up to a limit, and starts over once the device was well for that long.
A device that vanishes counts as ill: when it is back it has to stay.
"""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from dra_driver.devices.model import DeviceName, Health

GONE: Final = Health(reason="gone", message="the device was not there")


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldPolicy:
    """How long a device has to stay well before it counts as well, in seconds: the first time, and at most."""

    first_s: float = 60.0
    limit_s: float = 3600.0

    def hold_s(self, illnesses: int) -> float:
        """Return the hold time after so many illnesses, at least one."""
        return min(self.first_s * 2.0 ** min(illnesses - 1, 32), max(self.limit_s, self.first_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What is remembered of one device that was ill.

    `health` is the last illness, `illnesses` how many there were in a row. `well_since_s` is when it was first seen
    well after it, on the clock that never goes back; None while it is ill. `is_ill` is the verdict.
    """

    health: Health
    illnesses: int = 1
    well_since_s: float | None = None
    is_ill: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """The devices that are remembered, those that were there at the last look, and the changes that it held back."""

    memories: Mapping[DeviceName, Memory] = field(default_factory=dict)
    present: frozenset[DeviceName] = frozenset()
    damped: int = 0

    def health_of(self, device: DeviceName) -> Health | None:
        """Return why a device should not be used; None if it is well."""
        memory = self.memories.get(device)
        return memory.health if memory is not None and memory.is_ill else None


def weigh_health(
    before: Verdicts, seen: Iterable[tuple[DeviceName, Health | None]], *, now_s: float, policy: HoldPolicy
) -> Verdicts:
    """Return the verdicts after a look at all devices."""
    raw: dict[DeviceName, Health | None] = dict(seen)
    raw |= {name: GONE for name in before.present if name not in raw}
    memories: dict[DeviceName, Memory] = {}
    damped = 0
    for name, health in raw.items():
        old = before.memories.get(name)
        new = _fall_ill(old, health) if health is not None else _stay_well(old, now_s, policy)
        if new is not None:
            memories[name] = new
        if old is not None and new is not None and old.is_ill and new.is_ill:
            damped += (old.well_since_s is None) != (new.well_since_s is None)
    memories |= {name: memory for name, memory in before.memories.items() if name not in raw}
    present = frozenset(name for name, health in raw.items() if health is not GONE)
    return Verdicts(memories=memories, present=present, damped=damped)


def _fall_ill(old: Memory | None, health: Health) -> Memory:
    if old is None:
        return Memory(health=health)
    if health is GONE and old.is_ill:
        health = old.health  # what it had before it went says more
    again = old.well_since_s is not None
    return Memory(health=health, illnesses=old.illnesses + again)


def _stay_well(old: Memory | None, now_s: float, policy: HoldPolicy) -> Memory | None:
    if old is None:
        return None
    since_s = now_s if old.well_since_s is None else old.well_since_s
    well_s = now_s - since_s
    if well_s >= max(policy.limit_s, policy.first_s) or policy.first_s == 0:
        return None
    return replace(old, well_since_s=since_s, is_ill=old.is_ill and well_s < policy.hold_s(old.illnesses))


def find_ruled_out(memories: Mapping[DeviceName, Memory], reasons: Container[str]) -> dict[DeviceName, Health]:
    """Return the verdicts whose reasons do not count any more."""
    ill = ((name, memory.health) for name, memory in memories.items() if memory.is_ill)
    return {name: health for name, health in ill if health.reason in reasons}


def restore_verdicts(memories: Mapping[DeviceName, Memory], *, rebooted: bool, now_s: float) -> Verdicts:
    """Return what a process starts from, given what the last one remembered.

    Times before a reboot mean nothing after it, so devices have to stay well anew. Devices that were gone before a
    reboot are forgotten: whatever is there then is there.
    """

    def restore(memory: Memory) -> Memory:
        since_s = memory.well_since_s
        return replace(memory, well_since_s=now_s if since_s is not None and (rebooted or since_s > now_s) else since_s)

    kept = {name: each for name, each in memories.items() if not (rebooted and each.health.reason == GONE.reason)}
    return Verdicts(memories={name: restore(memory) for name, memory in kept.items()})
