"""Which devices are interchangeable, and which states of a search have the same future.

Two devices are alike if every request sees the same in them: verdict, demand, attributes that constraints compare,
counters, what is left. One that failed in a place fails for all that are like it.
"""

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field

from controller.allocator.error import AllocationError
from controller.allocator.ledger import Ledger
from controller.allocator.request import Alternative
from controller.allocator.risk import Risks
from controller.allocator.table import Table


@dataclass(slots=True, eq=False)
class Likeness:
    """The classes of alike devices of a table, as numbers by candidate; and the `risks` of errors."""

    table: Table
    classes: list[int] = field(default_factory=list)
    risks: Risks = field(init=False)

    def __post_init__(self) -> None:
        self.risks = Risks(self.table)
        ledger = Ledger(self.table)
        numbers: dict[Hashable, int] = {}
        for index in range(len(self.table.candidates)):
            key = (tuple(self.risks.roles.get(index, ())), *self._look(ledger, index))
            self.classes.append(numbers.setdefault(key, len(numbers)))

    def key(self, ledger: Ledger, index: int) -> Hashable:
        """Give what only devices share that are alike now, after what the search has given away."""
        if index in ledger.marks:
            return (self.classes[index], tuple(ledger.marks[index]))
        if index in ledger.shares:
            return (self.classes[index], ledger.shares[index], frozenset(ledger.consumed.get(index, {}).items()))
        return self.classes[index]

    def state_key(self, ledger: Ledger, claim: int, request: int) -> Hashable:
        """Give what only states share, at the start of a request, that have the same future."""
        touched = Counter(self.key(ledger, index) for index in (*ledger.marks, *ledger.shares))
        constraints = tuple(
            (constraint.values[-1] if constraint.is_match else frozenset(constraint.values))
            if constraint.values
            else None
            for constraint in self.table.claims[claim].constraints
        )
        return (claim, request, ledger.counts[claim], frozenset(touched.items()), constraints)

    def _look(self, ledger: Ledger, index: int) -> tuple[Hashable, ...]:
        candidate = self.table.candidates[index]
        consumed = self.table.state.consumed.get(candidate.id)
        # What is left of an exclusive device never changes, and sufficed when the cell was made.
        is_metered = candidate.is_shareable or consumed is not None
        left = (
            {name: amount - (consumed[name] if consumed else 0) for name, amount in candidate.capacity.items()}
            if is_metered
            else {}
        )
        counters: Hashable = None
        pool = self.table.pool_of[index]
        if candidate.groups and pool not in self.table.uncounted:
            counters = (pool.id, frozenset(candidate.consumption.items()), frozenset(candidate.groups.items()))
        is_held = ledger.is_held(index)
        return (
            is_held,
            candidate.id in self.table.state.shares,
            candidate.is_shareable,
            index in self.table.unmetered,
            frozenset(left.items()),
            counters,
            tuple(
                self._look_through(alternative, index, is_held=is_held, is_metered=is_metered)
                for alternative in self.risks.alternatives
            ),
        )

    def _look_through(self, alternative: Alternative, index: int, *, is_held: bool, is_metered: bool) -> Hashable:
        """See the device as a request does. One that is held is not looked at, unless by `All` or admin access."""
        if is_held and not alternative.is_all and not alternative.is_admin:
            return None
        try:
            cell = self.table.cell(alternative, index)
            if cell.misfit is not None:
                return cell.misfit
            values = tuple(self.table.value(alternative, entry, index) for entry in alternative.constraints)
        except AllocationError as error:
            self.risks.note(alternative, index)
            return ("error", error.error_class)
        return (cell.demand if is_metered else (), values)
