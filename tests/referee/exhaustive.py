"""Whether claims fit at all, by trying everything: a check on refusals where upstream runs out of time.

What can be known of one device for one request, and what a set of devices adds up to, is taken from the allocator;
the search and what makes it short are written anew: devices that have all in common are tried once, and states that
were tried before are not tried again.
"""

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import Enum, auto

from controller.allocator import AllocationError, CelCompiler, SelectorCache
from controller.allocator.allocation import known_pools
from controller.allocator.ledger import Ledger
from controller.allocator.request import Alternative
from controller.allocator.state import build_allocated_state
from controller.allocator.table import Table
from dra_driver.api.allocation_validation import RESULTS_MAX
from tests.referee.allocation import read_problem
from tests.referee.process import Question

_STEPS = 500_000


class Verdict(Enum):
    """What trying everything came to."""

    FITS = auto()
    DOES_NOT_FIT = auto()
    UNKNOWN = auto()
    """There is too much to try, or something that is no allocation but an error was met."""


class _TooMuchError(Exception):
    """There is too much to try."""


def try_everything(question: Question, *, steps: int = _STEPS) -> Verdict:
    """Answer whether the claims of a question fit; `steps` bounds how many devices are tried."""
    problem = read_problem(question)
    state = build_allocated_state(problem.allocated, consumable_capacity=problem.features.consumable_capacity)
    selectors = SelectorCache(CelCompiler())
    try:
        table = Table(
            problem.node, problem.features, selectors, state, known_pools(problem), problem.refuses_stale_shares
        )
        table.plan(problem.claims, problem.classes)
        return Verdict.FITS if _Trial(table, steps).serve(0) else Verdict.DOES_NOT_FIT
    except (AllocationError, _TooMuchError):
        return Verdict.UNKNOWN


@dataclass(slots=True)
class _Trial:
    table: Table
    left: int
    ledger: Ledger = field(init=False)
    requests: list[tuple[Alternative, ...]] = field(init=False)
    looks: list[Hashable] = field(init=False)
    failed: set[Hashable] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.ledger = Ledger(self.table, counts=[0] * len(self.table.claims))
        self.requests = [request.alternatives for plan in self.table.claims for request in plan.requests]
        self.looks = [self._look(index) for index in range(len(self.table.candidates))]

    def serve(self, number: int) -> bool:
        """Serve requests from `number` on."""
        if number == len(self.requests):
            return True
        key = self._key(number)
        if key in self.failed:
            return False
        if any(self._serve(alternative, number, 0, 0) for alternative in self.requests[number]):
            return True
        self.failed.add(key)
        return False

    def _serve(self, alternative: Alternative, number: int, slot: int, start: int) -> bool:
        """Find the devices of an alternative from `slot` on, in increasing order."""
        if alternative.is_all and not alternative.devices:
            return False
        if slot == alternative.count:
            return self.serve(number + 1)
        if alternative.count - slot > RESULTS_MAX - self.ledger.counts[alternative.claim]:
            return False
        if alternative.is_all:
            return self._try(alternative, number, slot, alternative.devices[slot])
        tried = set()
        for index in range(start, len(self.table.candidates)):
            look = (self.looks[index], self._use(index))
            if look not in tried:
                tried.add(look)
                if self._try(alternative, number, slot, index):
                    return True
        return False

    def _try(self, alternative: Alternative, number: int, slot: int, index: int) -> bool:
        self.left -= 1
        if self.left < 0:
            raise _TooMuchError
        ledger = self.ledger
        if not ledger.is_free(alternative, index):
            return False
        cell = self.table.cell(alternative, index)
        if cell.misfit is not None or not ledger.has_room(cell, index):
            return False
        if ledger.grant(alternative, index, cell) is None:
            return False
        if self._serve(alternative, number, slot + 1, index + 1):
            return True
        ledger.undo_last()
        return False

    def _key(self, number: int) -> Hashable:
        """Give what decides about all requests that are still to come."""
        used = Counter((self.looks[index], self._use(index)) for index in range(len(self.looks)) if self._use(index))
        claim = self.requests[number][0].claim
        constraints = tuple(tuple(constraint.values) for constraint in self.table.claims[claim].constraints)
        return (number, frozenset(used.items()), constraints, self.ledger.counts[claim])

    def _use(self, index: int) -> Hashable:
        """Give how a device is used by what is tried now; nothing if it is not."""
        marks, shares = tuple(self.ledger.marks.get(index, ())), self.ledger.shares.get(index, 0)
        return (marks, shares, frozenset(self.ledger.consumed.get(index, {}).items())) if marks or shares else ()

    def _look(self, index: int) -> Hashable:
        """Give what requests can see of a device, and what it takes."""
        table, candidate = self.table, self.table.candidates[index]
        seen = tuple(self._see(alternative, index) for request in self.requests for alternative in request)
        held = table.state.consumed.get(candidate.id, Counter())
        return (
            table.pool_of[index].id,
            table.held[index],
            candidate.id in table.state.shares,
            candidate.is_shareable,
            tuple((name, amount - held[name]) for name, amount in candidate.capacity.items()),
            tuple(candidate.consumption.items()),
            tuple(candidate.groups.items()),
            seen,
        )

    def _see(self, alternative: Alternative, index: int) -> Hashable:
        """Give what one request sees; a device that it fails on stands for itself."""
        try:
            cell = self.table.cell(alternative, index)
            values = tuple(self.table.value(alternative, entry, index) for entry in alternative.constraints)
        except AllocationError:
            return index
        return (cell.misfit, cell.demand, values, index in alternative.devices)
