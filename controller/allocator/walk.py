"""The search without going back: upstream's first solution, where the first device that works is right each time.

That is nearly always so, and takes a fraction of the time of a search that could go back.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

from controller.allocator.cell import Cell
from controller.allocator.constraint import UNCOMPARABLE, Constraint, Value
from controller.allocator.ledger import Grant, Ledger
from controller.allocator.request import RESULTS_MAX, Alternative, Request
from controller.allocator.table import Table


@dataclass(frozen=True, slots=True)
class Way:
    """What was given away, in order, and which subrequest was chosen, by claim and request."""

    grants: list[Grant]
    choices: dict[tuple[int, int], int]


class _End(Enum):
    SERVED = auto()
    LACKING = auto()
    """All devices that can be had are too few, so that no search would find more."""
    UNKNOWN = auto()


def walk(table: Table, budget: int) -> Way | None:
    """Give away the first device that works, each time; None where that leads nowhere, and nothing is given away then.

    `budget` is how many devices may be tried in vain. Raises AllocationError where a search would.
    """
    ledger = Ledger(table, counts=[0] * len(table.claims))
    way = Way(ledger.grants, {})
    for plan in table.claims:
        for request in plan.requests:
            if not _serve_request(ledger, request, way, budget):
                _undo(ledger, 0)
                return None
    return way


def _serve_request(ledger: Ledger, request: Request, way: Way, budget: int) -> bool:
    """Serve the first alternative that is not lacking devices."""
    before = len(ledger.grants)
    for alternative in request.alternatives:
        end = _serve(ledger, alternative, budget)
        if end is _End.SERVED:
            if alternative.position:
                way.choices[alternative.claim, alternative.request] = alternative.position
            return True
        if end is _End.UNKNOWN:
            return False
        _undo(ledger, before)
    return False


def _undo(ledger: Ledger, count: int) -> None:
    while len(ledger.grants) > count:
        ledger.undo_last()


def _serve(ledger: Ledger, alternative: Alternative, budget: int) -> _End:
    wanted = alternative.count
    if wanted > RESULTS_MAX - ledger.counts[alternative.claim]:
        return _End.UNKNOWN
    if alternative.is_all:
        is_served = bool(alternative.devices) and all(
            _take(ledger, alternative, index) for index in alternative.devices
        )
        return _End.SERVED if is_served else _End.UNKNOWN
    if wanted <= 0:
        return _End.SERVED
    if wanted > 1 and len(alternative.constraints) == 1 and _is_open_match(alternative.constraints[0]):
        return _End.SERVED if _serve_alike(ledger, alternative) else _End.UNKNOWN
    return _serve_first(ledger, alternative, budget)


def _serve_first(ledger: Ledger, alternative: Alternative, budget: int) -> _End:
    wanted, left = alternative.count, budget
    for index, cell in _usable(ledger, alternative):
        if ledger.grant(alternative, index, cell) is not None:
            wanted -= 1
            if not wanted:
                return _End.SERVED
        else:
            left -= 1
            if left <= 0:
                break
    return _End.LACKING if left == budget else _End.UNKNOWN


def _usable(ledger: Ledger, alternative: Alternative) -> Iterator[tuple[int, Cell]]:
    table, cells = ledger.table, alternative.cells
    held, marks, is_admin = table.held, ledger.marks, alternative.is_admin
    for index in alternative.order:
        if ledger.is_free(alternative, index) if is_admin else not held[index] and index not in marks:
            cell = cells[index] or table.cell(alternative, index)
            if cell.misfit is None and (not cell.demand or ledger.has_room(cell, index)):
                yield index, cell


def _is_open_match(constraint: Constraint) -> bool:
    return constraint.is_match and not constraint.values and not constraint.lists


def _serve_alike(ledger: Ledger, alternative: Alternative) -> bool:
    """Take devices of one value: of those that enough devices have, of that which comes first.

    Devices that depend on each other otherwise are left to a search.
    """
    table, (constraint,) = ledger.table, alternative.constraints
    groups: dict[Value, list[tuple[int, Cell]]] = {}
    column = table.column(alternative, constraint)
    for index, cell in _usable(ledger, alternative):
        value = column[index]
        if isinstance(value, bool):
            value = table.value(alternative, constraint, index)
        candidate = table.candidates[index]
        if value is UNCOMPARABLE or candidate.consumption or candidate.groups:
            return False
        if value is not None:
            group = groups.setdefault(value, [])
            group.append((index, cell))
            # A search looks at all devices before it gives the first value up; so the errors are the same.
            if len(group) == alternative.count and group is next(iter(groups.values())):
                break
    chosen = next((group for group in groups.values() if len(group) >= alternative.count), ())
    return bool(chosen) and all(
        ledger.grant(alternative, index, cell) is not None for index, cell in chosen[: alternative.count]
    )


def _take(ledger: Ledger, alternative: Alternative, index: int) -> bool:
    cell = ledger.table.cell(alternative, index)
    if cell.misfit is not None or not ledger.is_free(alternative, index):
        return False
    return ledger.grant(alternative, index, cell) is not None
