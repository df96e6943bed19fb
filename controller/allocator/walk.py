"""The search without going back: upstream's first solution, where the first device that works is right each time.

That is nearly always so, and takes a fraction of the time of a search that could go back. What can be told of many
devices at once is told so: sets of them are numbers with a bit for each.
"""

from dataclasses import dataclass
from enum import Enum, auto

from controller.allocator.cell import Cell
from controller.allocator.constraint import UNCOMPARABLE, Constraint
from controller.allocator.ledger import Ledger
from controller.allocator.request import Alternative, Request
from controller.allocator.result import Choices, Given
from controller.allocator.stock import places_of
from controller.allocator.table import Table
from dra_driver.api.allocation_validation import RESULTS_MAX


class Lack(Enum):
    """What may come of a walk that did not arrive."""

    CERTAIN = auto()
    """There is no solution, and no error to be met on the way to that."""
    UNKNOWN = auto()


@dataclass(frozen=True, slots=True)
class Way:
    """What was given away, in order by claim, and which subrequest was chosen."""

    given: list[list[Given]]
    choices: Choices


class _End(Enum):
    SERVED = auto()
    LACKING = auto()
    """All devices that can be had are too few, so that no search would find more."""
    UNKNOWN = auto()


_SERVED, _LACKING, _UNKNOWN = _End.SERVED, _End.LACKING, _End.UNKNOWN


def walk(table: Table, budget: int) -> Way | Lack:
    """Give away the first device that works, each time; nothing stays given away where that leads nowhere.

    `budget` is how many devices may be tried in vain. Raises AllocationError where a search would.
    """
    walker = _Walker(table, budget)
    is_first = True
    for plan in table.claims:
        walker.own, walker.given = 0, []
        for request in plan.requests:
            end = walker.serve(request)
            if end is not _SERVED:
                walker.forget()
                return Lack.CERTAIN if is_first and end is _LACKING else Lack.UNKNOWN
            is_first = False
        walker.way.append(walker.given)
    return Way(walker.way, walker.choices)


class _Walker:
    """Where a walk is: `taken` are devices that it gave away as a whole, `own` those of them to the current claim."""

    __slots__ = ("_budget", "_ledger", "_stock", "_table", "choices", "given", "own", "taken", "way")

    def __init__(self, table: Table, budget: int) -> None:
        self._table = table
        self._stock = table.stock
        self._budget = budget
        self._ledger: Ledger | None = None
        self.taken = self.own = 0
        self.given: list[Given] = []
        self.way: list[list[Given]] = []
        self.choices: Choices = {}

    def forget(self) -> None:
        """Take everything back."""
        for plan in self._table.claims:
            for constraint in plan.constraints:
                constraint.values.clear()

    def serve(self, request: Request) -> _End:
        """Serve the first alternative that is not lacking devices."""
        alternatives = request.alternatives
        if len(alternatives) == 1:
            return self._serve(alternatives[0])
        for alternative in alternatives:
            taken, own, given = self.taken, self.own, len(self.given)
            grants = len(self._ledger.grants) if self._ledger is not None else 0
            held = [len(constraint.values) for constraint in alternative.constraints]
            end = self._serve(alternative)
            if end is _SERVED:
                if alternative.position:
                    self.choices[alternative.claim, alternative.request] = alternative.position
                return end
            if end is _UNKNOWN:
                return end
            self.taken, self.own = taken, own
            del self.given[given:]
            while self._ledger is not None and len(self._ledger.grants) > grants:
                self._ledger.undo_last()
            for constraint, count in zip(alternative.constraints, held, strict=True):
                del constraint.values[count:]
        return _LACKING

    def _serve(self, alternative: Alternative) -> _End:
        if alternative.count > RESULTS_MAX - len(self.given):
            return _UNKNOWN
        pending = self._stock.everything & ~self.own if alternative.is_admin else self._stock.free & ~self.taken
        if alternative.is_all:
            return self._serve_all(alternative, pending)
        if not isinstance(alternative.order, range):
            return _UNKNOWN
        return self._serve_some(alternative, pending & ~alternative.unfit) if alternative.count > 0 else _SERVED

    def _serve_some(self, alternative: Alternative, pending: int) -> _End:
        constraints = alternative.constraints
        if len(constraints) == 1 and not constraints[0].lists:
            if constraints[0].is_match:
                return self._serve_alike(alternative, constraints[0], pending)
            return self._serve_distinct(alternative, constraints[0], pending)
        return self._serve_first(alternative, pending)

    def _serve_all(self, alternative: Alternative, pending: int) -> _End:
        for index in alternative.devices:
            cell = self._table.cell(alternative, index)
            if cell.misfit is not None or not pending >> index & 1 or not self._give(alternative, index, cell):
                return _UNKNOWN
        return _SERVED if alternative.devices else _UNKNOWN

    def _serve_first(self, alternative: Alternative, pending: int) -> _End:
        table, special = self._table, self._stock.special
        cells, given = alternative.cells, self.given
        is_plain = not alternative.constraints
        wanted, budget = alternative.count, self._budget
        while pending:
            lowest = pending & -pending
            pending ^= lowest
            index = lowest.bit_length() - 1
            cell = cells[index]
            if cell is None:
                cell = table.cell(alternative, index)
                if cell.misfit is not None:
                    continue
            if is_plain and not lowest & special:
                self.taken |= lowest
                self.own |= lowest
                given.append((alternative, index, None))
            elif lowest & special and self._is_short(index, cell):
                continue
            elif not self._give(alternative, index, cell):
                budget -= 1
                if budget <= 0:
                    return _UNKNOWN
                continue
            wanted -= 1
            if not wanted:
                return _SERVED
        return _LACKING if budget == self._budget else _UNKNOWN

    def _serve_alike(self, alternative: Alternative, constraint: Constraint, pending: int) -> _End:
        """Take devices of one value: of those that enough devices have, of that which comes first."""
        column, values = self._table.column(alternative, constraint), constraint.values
        if pending & self._stock.special:
            if alternative.derived:
                return _UNKNOWN
            pending = self._without_short(alternative, pending)
        if pending & ~(alternative.seen & column.seen):
            pending = self._learn(alternative, constraint, pending)
        if values:
            if values[-1] is UNCOMPARABLE:
                return _UNKNOWN
            group = column.masks.get(values[-1], 0) & pending
            return _LACKING if group.bit_count() < alternative.count else self._take(alternative, constraint, group)
        while pending:
            value = column.values[(pending & -pending).bit_length() - 1]
            if value is UNCOMPARABLE or isinstance(value, bool):
                return _UNKNOWN
            group = column.masks[value] & pending
            if value is not None and group.bit_count() >= alternative.count:
                return self._take(alternative, constraint, group)
            pending ^= group
        return _LACKING

    def _learn(self, alternative: Alternative, constraint: Constraint, pending: int) -> int:
        """Look at devices until there are enough of the first value, as a search would; give those that may do.

        A search looks at all of them before it gives the first value up; so the errors are the same.
        """
        common = constraint.values[-1] if constraint.values else None
        left = alternative.count
        for index in places_of(pending):
            cell = self._table.cell(alternative, index)
            bit = 1 << index
            if cell.misfit is not None or (bit & self._stock.special and self._is_short(index, cell)):
                pending ^= bit
                continue
            value = self._table.value(alternative, constraint, index)
            common = value if common is None else common
            if value is not None and value == common:
                left -= 1
                if not left:
                    break
        return pending

    def _take(self, alternative: Alternative, constraint: Constraint, group: int) -> _End:
        """Take the first devices of a group that are enough."""
        left = alternative.count
        value, special, given = constraint.values, self._stock.special, self.given
        for index in places_of(group):
            bit = 1 << index
            if bit & special:
                if not self._give(alternative, index, self._table.cell(alternative, index)):
                    # What comes next was perhaps not looked at, and must be before it is taken.
                    return _UNKNOWN
            else:
                self.taken |= bit
                self.own |= bit
                given.append((alternative, index, None))
                value.append(self._table.value(alternative, constraint, index))  # type: ignore[arg-type]
            left -= 1
            if not left:
                return _SERVED
        return _UNKNOWN

    def _serve_distinct(self, alternative: Alternative, constraint: Constraint, pending: int) -> _End:
        """Take the first device of each value that the constraint does not hold yet."""
        column, values, special = self._table.column(alternative, constraint), constraint.values, self._stock.special
        if pending & special:
            return self._serve_first(alternative, pending)
        masks, cells = column.masks, alternative.cells
        for value in values:
            pending &= ~masks.get(value, 0)
        wanted = alternative.count
        while pending:
            bit = pending & -pending
            index = bit.bit_length() - 1
            cell = cells[index] or self._table.cell(alternative, index)
            if cell.misfit is not None:
                pending ^= bit
                continue
            found = column.values[index]
            seen = self._table.value(alternative, constraint, index) if isinstance(found, bool) else found
            pending &= ~masks[seen]
            if not constraint.add(seen):
                continue
            self.taken |= bit
            self.own |= bit
            self.given.append((alternative, index, None))
            wanted -= 1
            if not wanted:
                return _SERVED
        return _LACKING

    def _give(self, alternative: Alternative, index: int, cell: Cell) -> bool:
        """Give a device away by the book."""
        ledger = self._ledger
        if ledger is None:
            ledger = self._ledger = Ledger(self._table, counts=[0] * len(self._table.claims))
        grant = ledger.grant(alternative, index, cell)
        if grant is None:
            return False
        if not grant.is_share:
            self.taken |= 1 << index
            self.own |= 1 << index
        self.given.append((alternative, index, cell if grant.is_share else None))
        return True

    def _is_short(self, index: int, cell: Cell) -> bool:
        """Tell whether the device certainly lacks what a request takes of it, or its counters."""
        table = self._table
        candidate = table.candidates[index]
        if cell.demand:
            held = table.state.consumed.get(candidate.id)
            given = self._ledger.consumed.get(index) if self._ledger is not None else None
            if held is not None or given is not None:
                for name, amount in cell.demand:
                    taken = (held[name] if held else 0) + (given.get(name, 0) if given else 0)
                    if taken + amount > candidate.capacity[name]:
                        return index not in table.unmetered
        if candidate.consumption and not candidate.is_shareable:
            pool = table.pool_of[index]
            left = self._stock.counters_left(pool)
            for key, amount in candidate.consumption.items():
                if left[key] < amount:
                    return pool not in table.uncounted
        return False

    def _without_short(self, alternative: Alternative, pending: int) -> int:
        """Leave out the devices that are known and lack room or counters."""
        for index in places_of(pending & self._stock.special & alternative.seen):
            if self._is_short(index, self._table.cell(alternative, index)):
                pending ^= 1 << index
        return pending
