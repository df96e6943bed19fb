"""The search without going back: upstream's first solution, where the first device that works is right each time.

That is nearly always so, and takes a fraction of the time of a search that could go back.
"""

from collections.abc import Iterator

from controller.allocator.cell import Cell
from controller.allocator.constraint import UNCOMPARABLE, Constraint, Value
from controller.allocator.ledger import Ledger
from controller.allocator.request import RESULTS_MAX, Alternative
from controller.allocator.table import Table


def walk(table: Table, budget: int) -> Ledger | None:
    """Give away the first device that works, each time; None where that leads nowhere, and nothing is given away then.

    `budget` is how many devices may be tried in vain. Raises AllocationError where a search would.
    """
    ledger = Ledger(table, counts=[0] * len(table.claims))
    for plan in table.claims:
        for request in plan.requests:
            if not _serve(ledger, request.alternatives[0], budget):
                while ledger.grants:
                    ledger.undo_last()
                return None
    return ledger


def _serve(ledger: Ledger, alternative: Alternative, budget: int) -> bool:
    wanted = alternative.count
    if wanted > RESULTS_MAX - ledger.counts[alternative.claim]:
        return False
    if alternative.is_all:
        return bool(alternative.devices) and all(_take(ledger, alternative, index) for index in alternative.devices)
    if wanted <= 0:
        return True
    if wanted > 1 and len(alternative.constraints) == 1 and _is_open_match(alternative.constraints[0]):
        return _serve_alike(ledger, alternative)
    for index, cell in _usable(ledger, alternative):
        if ledger.grant(alternative, index, cell) is not None:
            wanted -= 1
            if not wanted:
                return True
        else:
            budget -= 1
            if budget <= 0:
                break
    return False


def _usable(ledger: Ledger, alternative: Alternative) -> Iterator[tuple[int, Cell]]:
    table, cells = ledger.table, alternative.cells
    for index in alternative.order:
        if ledger.is_free(alternative, index):
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
    groups: dict[Value, list[int]] = {}
    for index, _ in _usable(ledger, alternative):
        value = table.value(alternative, constraint, index)
        candidate = table.candidates[index]
        if value is UNCOMPARABLE or candidate.consumption or candidate.groups:
            return False
        if value is not None:
            group = groups.setdefault(value, [])
            group.append(index)
            # A search looks at all devices before it gives the first value up; so the errors are the same.
            if len(group) == alternative.count and group is next(iter(groups.values())):
                break
    chosen = next((group for group in groups.values() if len(group) >= alternative.count), ())
    return bool(chosen) and all(_take(ledger, alternative, index) for index in chosen[: alternative.count])


def _take(ledger: Ledger, alternative: Alternative, index: int) -> bool:
    cell = ledger.table.cell(alternative, index)
    if cell.misfit is not None or not ledger.is_free(alternative, index):
        return False
    return ledger.grant(alternative, index, cell) is not None
