"""Where a search may meet an error, so that a branch without solution still matters: whoever gets there must look.

An error of a selector or of a derived attribute is met at a device, once a request comes to it. That the devices which
`All` means violate a constraint is an error, too, but none where one of the devices before cannot be had: that is an
ordinary refusal. So what an error needs may be gone, and then it is not met on the way from there any more.
"""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from controller.allocator.constraint import Constraint, Value
from controller.allocator.error import AllocationError
from controller.allocator.ledger import Ledger
from controller.allocator.request import Alternative
from controller.allocator.table import Table


@dataclass(slots=True, eq=False)
class Risks:
    """The alternatives of a table to which a search may come, and which of them may meet errors.

    `guards` are the devices of `All` up to the first at which a constraint may be violated, `failing` those at which
    other alternatives meet an error, `dead` are `All` that cannot be had whatever comes before, `impassable` those that
    can only be refused or meet an error. `roles` is what tells devices apart that would be alike otherwise.
    """

    table: Table
    alternatives: list[Alternative] = field(default_factory=list)
    guards: dict[Alternative, tuple[int, ...]] = field(default_factory=dict)
    failing: dict[Alternative, list[int]] = field(default_factory=dict)
    dead: set[Alternative] = field(default_factory=set)
    impassable: set[Alternative] = field(default_factory=set)
    roles: dict[int, list[Hashable]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for plan in self.table.claims:
            for request in plan.requests:
                for alternative in request.alternatives:
                    self.alternatives.append(alternative)
                    if alternative.is_all and alternative.constraints and self._assess(alternative):
                        self.impassable.add(alternative)
                if self.impassable.issuperset(request.alternatives):
                    return

    def find_kept(self, alternatives: Iterable[Alternative]) -> frozenset[int]:
        """Give the devices that must stay free if a request is to meet an error, where that is all that it can do."""
        hopeful = [each for each in alternatives if not each.is_all or each.devices]
        if not self.impassable.issuperset(hopeful):
            return frozenset()
        guards = [frozenset(self.guards.get(each, ())) for each in hopeful]
        return guards[0].intersection(*guards[1:]) if guards else frozenset()

    def _assess(self, alternative: Alternative) -> bool:
        """Take in what `All` means; tell whether no search gets past it."""
        reached = self._up_to_violation(alternative)
        if not any(self._may_clash(alternative, constraint) for constraint in alternative.constraints):
            return self._guard(alternative, reached)
        # What was chosen before can only make a violation come earlier: which of these are there decides.
        for index in reached or alternative.devices:
            self.roles.setdefault(index, []).append(index)
        self._guard(alternative, alternative.devices[:1])
        return bool(reached)

    def note(self, alternative: Alternative, index: int) -> None:
        """Take notice of an error at a device."""
        if not alternative.is_all:
            self.failing.setdefault(alternative, []).append(index)

    def is_dead(self, ledger: Ledger, alternative: Alternative) -> bool:
        """Tell whether `All` cannot be had any more, and meets no error."""
        if alternative in self.dead:
            return True
        guards = self.guards.get(alternative)
        if guards is None:
            return False
        # At the last of them a violation is met before room is looked for.
        return any(
            not ledger.is_free(alternative, index)
            or (index != guards[-1] and not ledger.has_room(self.table.cell(alternative, index), index))
            for index in guards
        )

    def may_fail(self, ledger: Ledger, alternative: Alternative) -> bool:
        """Tell whether the alternative may still meet an error."""
        if alternative in self.guards:
            return not self.is_dead(ledger, alternative)
        return any(ledger.is_free(alternative, index) for index in self.failing.get(alternative, ()))

    def _may_clash(self, alternative: Alternative, constraint: Constraint) -> bool:
        """Tell whether the devices that `All` means may violate a constraint for what requests before it have got."""
        places = range(len(self.table.candidates))
        others = [
            other
            for other in self.alternatives
            if other.claim == alternative.claim and other.request < alternative.request
        ]
        try:
            own = {self.table.value(alternative, constraint, index) for index in alternative.devices}
            before = {
                self.table.value(other, constraint, index)
                for other in others
                if constraint in other.constraints
                for index in places
                if self.table.cell(other, index).misfit is None
            }
        except AllocationError:
            return True
        before.discard(None)
        if constraint.is_match:
            return bool(before) and len(before | own) > 1
        return not set(_elements(before)).isdisjoint(_elements(own))

    def _guard(self, alternative: Alternative, guards: tuple[int, ...]) -> bool:
        """Keep the guards, if there are any; tell so."""
        if any(self._is_missing(alternative, index) for index in guards):
            self.dead.add(alternative)
        elif guards:
            self.guards[alternative] = guards
            for index in guards:
                self.roles.setdefault(index, []).append((len(self.alternatives), index == guards[-1]))
        return bool(guards)

    def _is_missing(self, alternative: Alternative, index: int) -> bool:
        """Tell whether a device cannot be had whatever comes before."""
        is_held = self.table.held[index] and not alternative.is_admin
        return is_held or self.table.cell(alternative, index).misfit is not None

    def _up_to_violation(self, alternative: Alternative) -> tuple[int, ...]:
        """Give its devices up to the first that violates a constraint, or cannot be had; none if there is none."""
        alone = [replace(constraint, values=[]) for constraint in alternative.constraints]
        for place, index in enumerate(alternative.devices):
            if self._is_missing(alternative, index):
                return alternative.devices[: place + 1]
            try:
                values = [self.table.value(alternative, constraint, index) for constraint in alone]
            except AllocationError:
                return alternative.devices[: place + 1]
            if not all(constraint.add(value) for constraint, value in zip(alone, values, strict=True)):
                return alternative.devices[: place + 1]
        return ()


def _elements(values: Iterable[Value | None]) -> Iterator[Hashable]:
    for value in values:
        if value is not None and isinstance(value[1], frozenset):
            yield from ((value[0], element) for element in value[1])
        else:
            yield value
