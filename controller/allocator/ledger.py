"""What a search has given away so far, and how to take it back exactly.

Every change is recorded in a `Grant`; `undo` restores what was, whether a device was refused half way or is given up
while the search goes back.
"""

from dataclasses import dataclass, field

from controller.allocator.candidate import Candidate
from controller.allocator.cell import Cell
from controller.allocator.compatibility import Groups, admit
from controller.allocator.error import AllocationError
from controller.allocator.pool import Pool
from controller.allocator.request import Alternative
from controller.allocator.table import Table


@dataclass(slots=True, eq=False)
class Grant:
    """One device, or one share of it, for one request, and what it changed."""

    alternative: Alternative
    index: int
    cell: Cell
    is_share: bool
    constraints: int = 0
    has_counters: bool = False
    groups: dict[tuple[Pool, str], Groups | None] | None = None
    is_marked: bool = False


@dataclass(slots=True, eq=False)
class Ledger:
    """The state of a search: marks of exclusive devices by claim, shares, consumed capacity, counters, groups."""

    table: Table
    marks: dict[int, list[int]] = field(default_factory=dict)
    shares: dict[int, int] = field(default_factory=dict)
    consumed: dict[int, dict[str, int]] = field(default_factory=dict)
    available: dict[Pool, dict[tuple[str, str], int]] = field(default_factory=dict)
    groups: dict[tuple[Pool, str], Groups | None] = field(default_factory=dict)
    grants: list[Grant] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)

    def is_held(self, index: int) -> bool:
        """Tell whether somebody has the whole device, or shares of one that is no longer shareable."""
        return self.table.held[index]

    def is_free(self, alternative: Alternative, index: int) -> bool:
        """Tell whether the request may take the device, as far as exclusive use goes."""
        if alternative.is_admin:
            return alternative.claim not in self.marks.get(index, ())
        return index not in self.marks and not self.table.held[index]

    def has_room(self, cell: Cell, index: int) -> bool:
        """Tell whether what is left of each capacity suffices."""
        if not cell.demand:
            return True
        candidate = self.table.candidates[index]
        held = self.table.state.consumed.get(candidate.id)
        given = self.consumed.get(index)
        if held is None and given is None:
            return True
        for name, amount in cell.demand:
            taken = (held[name] if held else 0) + (given.get(name, 0) if given else 0)
            if taken + amount > candidate.capacity[name]:
                return index in self.table.unmetered
        return True

    def grant(self, alternative: Alternative, index: int, cell: Cell) -> Grant | None:
        """Give the device away if counters, groups and constraints allow it. Raises AllocationError.

        The caller has seen to it that it is free and selectable; with `All` that there is room is checked here.
        """
        candidate = self.table.candidates[index]
        is_share = candidate.is_shareable and self.table.features.consumable_capacity
        grant = Grant(alternative, index, cell, is_share)
        if candidate.consumption or candidate.groups:
            is_counted = is_share and (candidate.id in self.table.state.shares or index in self.shares)
            if not is_counted and not self._take_counters(grant, candidate):
                return None
        if alternative.constraints and not self._add_constraints(grant):
            return None
        if alternative.is_all and not self.has_room(cell, index):
            self.undo(grant)
            return None
        self._mark(grant)
        self.grants.append(grant)
        self.counts[alternative.claim] += 1
        return grant

    def undo_last(self) -> None:
        """Take the last grant back."""
        grant = self.grants.pop()
        self.counts[grant.alternative.claim] -= 1
        self.undo(grant)

    def undo(self, grant: Grant) -> None:
        """Restore what `grant` changed."""
        index = grant.index
        if grant.is_marked:
            if grant.is_share:
                self._unshare(grant)
            else:
                self.marks[index].pop()
                if not self.marks[index]:
                    del self.marks[index]
        for constraint in grant.alternative.constraints[: grant.constraints]:
            constraint.remove()
        if grant.groups is not None:
            self.groups.update(grant.groups)
        if grant.has_counters:
            available = self.available[self.table.pool_of[index]]
            for key, amount in self.table.candidates[index].consumption.items():
                available[key] += amount

    def _mark(self, grant: Grant) -> None:
        index = grant.index
        grant.is_marked = True
        if not grant.is_share:
            claims = self.marks.get(index)
            if claims is None:
                self.marks[index] = [grant.alternative.claim]
            else:
                claims.append(grant.alternative.claim)
            return
        self.shares[index] = self.shares.get(index, 0) + 1
        if grant.cell.demand:
            consumed = self.consumed.setdefault(index, {})
            for name, amount in grant.cell.demand:
                consumed[name] = consumed.get(name, 0) + amount

    def _unshare(self, grant: Grant) -> None:
        index = grant.index
        self.shares[index] -= 1
        if not self.shares[index]:
            del self.shares[index]
            self.consumed.pop(index, None)
            return
        for name, amount in grant.cell.demand:
            self.consumed[index][name] -= amount

    def _add_constraints(self, grant: Grant) -> bool:
        alternative = grant.alternative
        for constraint in alternative.constraints:
            try:
                is_added = constraint.add(self.table.value(alternative, constraint, grant.index))
            except AllocationError:
                self.undo(grant)
                raise
            if not is_added:
                self.undo(grant)
                if alternative.is_all:
                    device = self.table.candidates[grant.index].subject
                    raise AllocationError(
                        f"{alternative.subject}: asks for all devices, but device {device} violates constraint "
                        f"#{constraint.index} on {constraint.attribute}, want a count or no such constraint"
                    )
                return False
            grant.constraints += 1
        return True

    def _take_counters(self, grant: Grant, candidate: Candidate) -> bool:
        pool = self.table.pool_of[grant.index]
        if pool in self.table.uncounted:
            return True
        if self.table.features.compatibility_groups and not self._join_groups(grant, pool, candidate):
            return False
        available = self.available_counters(pool)
        for key, amount in candidate.consumption.items():
            available[key] -= amount
        grant.has_counters = True
        if pool in self.table.stock.overcommitted:
            is_short = any(left < 0 for left in available.values())
        else:
            is_short = any(available[key] < 0 for key in candidate.consumption)
        if is_short:
            self.undo(grant)
        return not is_short

    def available_counters(self, pool: Pool) -> dict[tuple[str, str], int]:
        """Give what is left of the counters of a pool, in nano-units; it may be negative."""
        available = self.available.get(pool)
        if available is None:
            available = self.available[pool] = dict(self.table.stock.counters_left(pool))
        return available

    def _join_groups(self, grant: Grant, pool: Pool, candidate: Candidate) -> bool:
        changed: dict[tuple[Pool, str], Groups | None] = {}
        for counter_set, groups in candidate.groups.items():
            key = (pool, counter_set)
            if key not in self.groups:
                self.groups[key] = self._held_groups(pool, counter_set)
            joined = admit(self.groups[key], groups)
            if joined is None:
                self.groups.update(changed)
                return False
            changed[key] = self.groups[key]
            self.groups[key] = joined
        grant.groups = changed
        return True

    def _held_groups(self, pool: Pool, counter_set: str) -> Groups | None:
        held: Groups | None = None
        for candidate in (*pool.candidates, *pool.others):
            groups = candidate.groups.get(counter_set)
            if groups is None or not self.table.state.is_allocated(candidate.id):
                continue
            if held is None:
                held = groups
            elif held and groups:
                # Without a common group nobody else gets in; a group that no device can have says so.
                held = held & groups or _NOBODY
        return held


_NOBODY: Groups = frozenset(("",))
