"""What is still to be served, and which alternatives can still serve it.

An alternative that cannot be had by itself, as things stand, is none: without it a request wants more, or of a kind
that is told from others more easily.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from controller.allocator.cell import Cell
from controller.allocator.constraint import UNCOMPARABLE, Constraint, Value
from controller.allocator.ledger import Ledger
from controller.allocator.pool import Pool
from controller.allocator.request import Alternative
from controller.allocator.risk import Risks
from controller.allocator.search import Position

_JOINT_MAX: Final = 256

Part: TypeAlias = tuple[Alternative, "Group"]
"""Devices that can serve an alternative."""


@dataclass(slots=True, eq=False)
class Group:
    """Devices that are alike now: one of them stands for all."""

    index: int
    size: int = 0
    late: int = 0
    """How many of them the current request may still take."""


@dataclass(slots=True, eq=False)
class Need:
    """A request that is still to be served: `count` devices, out of `parts`."""

    alternatives: tuple[Alternative, ...]
    count: int
    is_current: bool
    parts: list[Part] = field(default_factory=list)

    def covered_by(self, constraint: Constraint) -> bool:
        """Tell whether the constraint is about it whatever alternative is chosen."""
        return all(constraint in alternative.constraints for alternative in self.alternatives)


@dataclass(slots=True, eq=False)
class Reserved:
    """What needs certainly take that can only be met by all devices that there are for them, by number of the need.

    Devices that are `kept` must stay free.
    """

    kept: frozenset[int]
    alternatives: dict[Group, dict[int, Alternative]] = field(default_factory=dict)
    counters: dict[int, Counter[tuple[Pool, tuple[str, str]]]] = field(default_factory=dict)

    def at(self, group: Group, number: int) -> list[Alternative]:
        """Give the alternatives of others that take each device of a group."""
        return [taker for other, taker in self.alternatives.get(group, {}).items() if other != number]

    def of(self, pool: Pool, key: tuple[str, str], number: int) -> int:
        """Give how much of a counter others take."""
        return sum(taken[pool, key] for other, taken in self.counters.items() if other != number)


@dataclass(frozen=True, slots=True, eq=False)
class Surveyor:
    """Finds out what is needed at a position of a search, and what there is for it."""

    ledger: Ledger
    position: Position
    groups: Sequence[Group]
    risks: Risks

    def survey(self) -> list[Need] | None:
        """Give the needs up to where an error may be met: whoever gets there must look. None if one cannot be met."""
        wanted, kept = self._wanted()
        reserved = Reserved(kept)
        while True:
            needs = [self._survey_one(number, alternatives, reserved) for number, alternatives in enumerate(wanted)]
            met = [need for need in needs if need is not None]
            if len(met) < len(needs):
                return None
            again = self._reserve(met, kept)
            if len(again.counters) == len(reserved.counters):
                return [need for need in met if need.count > 0]
            reserved = again

    def _wanted(self) -> tuple[list[tuple[Alternative, ...]], frozenset[int]]:
        """Give the alternatives by request, and the devices without which a request after them meets no error."""
        current = self.position.alternative
        wanted: list[tuple[Alternative, ...]] = [(current,)]
        for number, plan in enumerate(self.ledger.table.claims[current.claim :]):
            for request in plan.requests[current.request + 1 if number == 0 else 0 :]:
                alive = tuple(each for each in request.alternatives if not self.risks.is_dead(self.ledger, each))
                if any(self.risks.may_fail(self.ledger, each) for each in alive):
                    return wanted, self.risks.find_kept(alive)
                wanted.append(alive)
                if not alive:
                    # Nothing is known of what comes after a request that no search gets past.
                    return wanted, frozenset()
        return wanted, frozenset()

    def _survey_one(self, number: int, alternatives: tuple[Alternative, ...], reserved: Reserved) -> Need | None:
        """Give what is needed of the alternatives that may be had; None if none may."""
        is_current = number == 0
        found = []
        for alternative in alternatives:
            count = alternative.count - self.position.slot if is_current else alternative.count
            parts = [
                (alternative, group) for group in self.groups if self._serves(alternative, group, number, reserved)
            ]
            need = Need((alternative,), count, is_current, parts)
            if self._is_viable(need):
                found.append(need)
        if not found:
            return None
        return Need(
            tuple(need.alternatives[0] for need in found),
            min(need.count for need in found),
            is_current,
            [part for need in found for part in need.parts],
        )

    def _reserve(self, needs: Sequence[Need], kept: frozenset[int]) -> Reserved:
        """Reserve all devices that there are for a need if fewer would not do."""
        reserved = Reserved(kept)
        for number, need in enumerate(needs):
            alternative = need.alternatives[0]
            is_forced = len(need.alternatives) == 1 and count_parts(need, need.parts) == need.count > 0
            if not is_forced or alternative.is_admin:
                continue
            taken = reserved.counters[number] = Counter()
            for _, group in need.parts:
                if size_of(need, alternative, group) < group.size:
                    continue
                reserved.alternatives.setdefault(group, {})[number] = alternative
                if not is_shareable(self.ledger, group.index) and not is_charged(self.ledger, group.index):
                    pool = self.ledger.table.pool_of[group.index]
                    for key, amount in self.ledger.table.candidates[group.index].consumption.items():
                        taken[pool, key] += amount * group.size
        return reserved

    def _serves(self, alternative: Alternative, group: Group, number: int, reserved: Reserved) -> bool:
        """Tell whether the devices of the group can serve the alternative as things stand."""
        ledger, index = self.ledger, group.index
        if not ledger.is_free(alternative, index):
            return False
        table = ledger.table
        cell = table.cell(alternative, index)
        if cell.misfit is not None or not ledger.has_room(cell, index):
            return False
        if index in reserved.kept and not alternative.is_admin and not is_shareable(ledger, index):
            return False
        takers = reserved.at(group, number)
        if takers and not alternative.is_admin and not self._has_room_beside(takers, cell, index):
            return False
        if not self._has_counters(index, number, reserved):
            return False
        return all(
            _may_join(constraint, table.value(alternative, constraint, index)) for constraint in alternative.constraints
        )

    def _has_room_beside(self, takers: Sequence[Alternative], cell: Cell, index: int) -> bool:
        """Tell whether the device can serve others and what a cell demands."""
        if not is_shareable(self.ledger, index):
            return False
        if index in self.ledger.table.unmetered:
            return True
        left = Counter(left_of(self.ledger, index))
        for taken in (cell, *(self.ledger.table.cell(taker, index) for taker in takers)):
            left.subtract(dict(taken.demand))
        return all(left[name] >= 0 for name, _ in cell.demand)

    def _has_counters(self, index: int, number: int, reserved: Reserved) -> bool:
        candidate = self.ledger.table.candidates[index]
        if not candidate.consumption or is_charged(self.ledger, index):
            return True
        pool = self.ledger.table.pool_of[index]
        available = self.ledger.available_counters(pool)
        return all(
            available[key] - reserved.of(pool, key, number) >= amount for key, amount in candidate.consumption.items()
        )

    def _is_viable(self, need: Need) -> bool:
        """Tell whether a single alternative may be had, if only it were to be served."""
        (alternative,) = need.alternatives
        if alternative.is_all and (not alternative.devices or self._overdraws(alternative, need.count)):
            return False
        if count_parts(need, need.parts) < need.count:
            return False
        return self.may_hold(need, need.parts)

    def may_hold(self, need: Need, parts: Sequence[Part]) -> bool:
        """Tell whether constraints leave a single alternative devices enough: alike in some, unlike in others."""
        (alternative,) = need.alternatives
        if need.count <= 1 or not alternative.constraints:
            return True
        alike = [self._read(each, parts) for each in alternative.constraints if each.is_match]
        unlike = [self._read(each, parts) for each in alternative.constraints if not each.is_match]
        sizes = [size_of(need, *part) for part in parts]
        return any(
            sum(sizes[place] for place in places) >= need.count
            and all(_may_differ([values[place] for place in places], need.count) for values in unlike)
            for places in _join_values(alike, len(parts))
        )

    def _read(self, constraint: Constraint, parts: Sequence[Part]) -> list[Sequence[Hashable]]:
        """Give the values by part that a constraint compares; what is not comparable is like nothing else."""
        read: list[Sequence[Hashable]] = []
        for alternative, group in parts:
            value = self.ledger.table.value(alternative, constraint, group.index)
            if value is UNCOMPARABLE:
                read.append(() if constraint.is_match else (value,))
            else:
                read.append(tuple(values_of(value)))
        return read

    def _overdraws(self, alternative: Alternative, count: int) -> bool:
        """Tell whether the last `count` devices that `All` means take more of a counter than is left."""
        table = self.ledger.table
        taken = Counter[tuple[Pool, tuple[str, str]]]()
        for index in alternative.devices[len(alternative.devices) - count :]:
            if not is_charged(self.ledger, index):
                for key, amount in table.candidates[index].consumption.items():
                    taken[table.pool_of[index], key] += amount
        # Without the gate there are no counters, and devices that take of them cannot be had.
        return any(amount > self.ledger.available_counters(pool).get(key, 0) for (pool, key), amount in taken.items())


def _may_join(constraint: Constraint, value: Value | None) -> bool:
    if constraint.add(value):
        constraint.remove()
        return True
    return False


def count_parts(need: Need, parts: Iterable[Part]) -> int:
    """Count the devices."""
    return sum(size_of(need, alternative, group) for alternative, group in parts)


def size_of(need: Need, alternative: Alternative, group: Group) -> int:
    """Count the devices of a group that the need may still take."""
    return group.late if need.is_current and not alternative.is_all else group.size


def is_shareable(ledger: Ledger, index: int) -> bool:
    """Tell whether several requests can have the device."""
    return ledger.table.features.consumable_capacity and ledger.table.candidates[index].is_shareable


def left_of(ledger: Ledger, index: int) -> dict[str, int]:
    """Give what is left of the capacities of a device, in nano-units; it may be negative."""
    candidate = ledger.table.candidates[index]
    held: Mapping[str, int] = ledger.table.state.consumed.get(candidate.id, {})
    given: Mapping[str, int] = ledger.consumed.get(index, {})
    return {name: whole - held.get(name, 0) - given.get(name, 0) for name, whole in candidate.capacity.items()}


def is_charged(ledger: Ledger, index: int) -> bool:
    """Tell whether counters are no matter: those of a shared device that are charged already, or all of a pool."""
    candidate = ledger.table.candidates[index]
    if ledger.table.pool_of[index] in ledger.table.uncounted:
        return True
    if not is_shareable(ledger, index):
        return False
    return index in ledger.shares or candidate.id in ledger.table.state.shares


def _may_differ(values: Sequence[Sequence[Hashable]], count: int) -> bool:
    """Tell whether there may be `count` lists of values that have nothing in common, since those values suffice."""
    lengths = sorted(len(own) for own in values if own)
    return len(lengths) >= count and sum(lengths[:count]) <= len({each for own in values for each in own})


def _join_values(columns: Sequence[Sequence[Sequence[Hashable]]], count: int) -> Iterable[Sequence[int]]:
    """Give the places that have values in common in all columns; of very many not all columns are looked at."""
    places: dict[tuple[Hashable, ...], list[int]] = {(): list(range(count))}
    for column in columns:
        joined: dict[tuple[Hashable, ...], list[int]] = {}
        for key, own in places.items():
            for place in own:
                for value in column[place]:
                    joined.setdefault((*key, value), []).append(place)
        places = joined
        if len(places) > _JOINT_MAX:
            break
    return places.values()


def values_of(value: Value | None) -> Iterable[Hashable]:
    """Give the values that another device can share."""
    if value is None or value is UNCOMPARABLE:
        return (value,) if value is not None else ()
    if isinstance(value[1], frozenset):
        return [(value[0], element) for element in value[1]]
    return (value,)
