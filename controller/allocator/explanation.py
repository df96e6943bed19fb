"""Why claims do not fit on a node: a tree of reasons, and an irreducible set of blockers.

Costs much more than the refusal, and nothing unless it is asked for.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from controller.allocator.allocation import Problem, known_pools, search_table
from controller.allocator.blocker import Blocker, BlockerCode, reduce_blockers
from controller.allocator.error import AllocationError
from controller.allocator.expression import CelCompiler
from controller.allocator.ledger import Ledger
from controller.allocator.pool import Pool
from controller.allocator.reason import Reason, ReasonCode, explain_misfit, format_nanos
from controller.allocator.request import Alternative, Request
from controller.allocator.search import Outcome
from controller.allocator.selector import SelectorCache
from controller.allocator.state import AllocatedState, build_allocated_state
from controller.allocator.table import Table, find_blocker
from dra_driver.api.quantity import Quantity


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why claims do not fit on `node`: one reason a claim, and what would have to go. Without blockers they fit."""

    node: str
    claims: tuple[Reason, ...]
    blockers: tuple[Blocker, ...]


def explain(problem: Problem, selectors: SelectorCache | None = None) -> Explanation:
    """Explain a refusal. Raises AllocationError for a problem that is not well posed."""
    relaxation = _Relaxation(problem, selectors or SelectorCache(CelCompiler()))
    table = relaxation.build(frozenset())
    tree = tuple(_explain_claim(table, index) for index in range(len(table.claims)))
    if relaxation.fits(frozenset()):
        return Explanation(problem.node.metadata.name, (), ())
    incomplete = [
        Blocker(BlockerCode.POOL_INCOMPLETE, pool="/".join(pool.id)) for pool in table.pools if pool.is_incomplete
    ]
    found = {*incomplete, *_find_blockers(relaxation.build(frozenset(incomplete)))}
    order = {code: place for place, code in enumerate(BlockerCode)}
    blockers = sorted(found, key=lambda blocker: (order[blocker.code], blocker))
    return Explanation(problem.node.metadata.name, tree, reduce_blockers(blockers, relaxation.fits))


def fits_without(problem: Problem, blockers: frozenset[Blocker], selectors: SelectorCache | None = None) -> bool:
    """Tell whether the claims fit once `blockers` are removed; not being able to tell counts as no."""
    return _Relaxation(problem, selectors or SelectorCache(CelCompiler())).fits(blockers)


@dataclass(slots=True)
class _Relaxation:
    """A problem, and how it looks without some of its blockers."""

    problem: Problem
    selectors: SelectorCache
    state: AllocatedState = field(init=False)
    pools: dict[frozenset[tuple[str, str]], tuple[Pool, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        gate = self.problem.features.consumable_capacity
        self.state = build_allocated_state(self.problem.allocated, consumable_capacity=gate)

    def fits(self, removed: frozenset[Blocker]) -> bool:
        try:
            search = search_table(self.build(removed), self.problem.budget)
        except AllocationError:
            return False
        return search is not None and search.outcome is Outcome.FOUND

    def build(self, removed: frozenset[Blocker]) -> Table:
        """Build the table without the blockers. Raises AllocationError."""
        problem = self.problem
        freed = {blocker.device for blocker in removed if blocker.code is BlockerCode.IN_USE}
        pools = self._gather({blocker.pool for blocker in removed if blocker.code is BlockerCode.POOL_INCOMPLETE})
        table = Table(
            problem.node,
            problem.features,
            self.selectors,
            self.state.without(frozenset(_split(device) for device in freed)) if freed else self.state,
            pools,
            problem.refuses_stale_shares,
            forgiven=removed,
            uncounted=frozenset(
                pool
                for pool in pools
                if not problem.features.partitionable_devices
                or Blocker(BlockerCode.COUNTERS, pool="/".join(pool.id)) in removed
            ),
        )
        table.unmetered = frozenset(
            index
            for index, candidate in enumerate(table.candidates)
            if Blocker(BlockerCode.ROOM, device=candidate.subject) in removed
        )
        table.plan(problem.claims, problem.classes)
        _drop(table, removed)
        return table

    def _gather(self, completed: set[str]) -> tuple[Pool, ...]:
        ids = frozenset((driver, pool) for driver, _, pool in (name.partition("/") for name in completed))
        pools = self.pools.get(ids)
        if pools is None:
            pools = self.pools[ids] = known_pools(self.problem, ids)
        return pools


def _split(device: str) -> tuple[str, str, str]:
    """Take `driver/pool/device` apart; only the pool's name may hold slashes."""
    driver, _, rest = device.partition("/")
    pool, _, name = rest.rpartition("/")
    return (driver, pool, name)


def _drop(table: Table, removed: frozenset[Blocker]) -> None:
    """Take away constraints and requests that are removed."""
    for plan in table.claims:
        kept = frozenset(
            constraint
            for constraint in plan.constraints
            if Blocker(BlockerCode.CONSTRAINT, plan.name, constraint=constraint.index) not in removed
        )
        for position, request in enumerate(plan.requests):
            for alternative in request.alternatives:
                alternative.constraints = tuple(entry for entry in alternative.constraints if entry in kept)
            if Blocker(BlockerCode.REQUEST, _path(request)) in removed:
                first = request.alternatives[0]
                first.is_all, first.count = False, 0
                plan.requests[position] = Request((first,), has_subrequests=False)


def _path(request: Request) -> str:
    first = request.alternatives[0]
    return f"{first.claim_name}/{first.parent or first.name}"


def _find_blockers(table: Table) -> Iterator[Blocker]:
    """Yield all that may be in the way."""
    alternatives = [
        alternative for plan in table.claims for request in plan.requests for alternative in request.alternatives
    ]
    for index, candidate in enumerate(table.candidates):
        if table.state.is_allocated(candidate.id):
            yield Blocker(BlockerCode.IN_USE, device=candidate.subject)
        if candidate.is_shareable and candidate.capacity:
            yield Blocker(BlockerCode.ROOM, device=candidate.subject)
        for alternative in alternatives:
            yield from _find_misfits(table, alternative, index)
    for pool in table.pools:
        if pool.counters:
            yield Blocker(BlockerCode.COUNTERS, pool="/".join(pool.id))
        others = (other for other in pool.others if table.state.is_allocated(other.id))
        yield from (Blocker(BlockerCode.IN_USE, device=other.subject) for other in others)
    yield from _find_in_claims(table)


def _find_in_claims(table: Table) -> Iterator[Blocker]:
    for plan in table.claims:
        for constraint in plan.constraints:
            yield Blocker(BlockerCode.CONSTRAINT, plan.name, constraint=constraint.index)
        for request in plan.requests:
            yield Blocker(BlockerCode.REQUEST, _path(request))


def _find_misfits(table: Table, alternative: Alternative, index: int) -> Iterator[Blocker]:
    candidate = table.candidates[index]
    try:
        for misfit in table.misfits(alternative, candidate):
            yield find_blocker(misfit, alternative, candidate)
    except AllocationError:
        return


def _explain_claim(table: Table, index: int) -> Reason:
    plan = table.claims[index]
    ledger = Ledger(table, counts=[0] * len(table.claims))
    requests = tuple(_explain_request(ledger, request) for request in plan.requests)
    return Reason(ReasonCode.CLAIM, plan.name, children=requests)


def _explain_request(ledger: Ledger, request: Request) -> Reason:
    if not request.has_subrequests:
        return _explain_alternative(ledger, request.alternatives[0])
    children = tuple(_explain_alternative(ledger, alternative) for alternative in request.alternatives)
    return Reason(ReasonCode.NO_ALTERNATIVE, _path(request), children=children)


def _explain_alternative(ledger: Ledger, alternative: Alternative) -> Reason:
    """Say how many devices could serve the request were it alone, and of each other what keeps it."""
    table = ledger.table
    indexes = alternative.devices if alternative.is_all else range(len(table.candidates))
    misfits = [reason for index in indexes if (reason := _explain_device(ledger, alternative, index)) is not None]
    pools = [_explain_pool(pool) for pool in table.pools if not pool.is_usable]
    usable = len(indexes) - len(misfits)
    code = ReasonCode.TOO_FEW_DEVICES if usable < max(alternative.count, 1) else ReasonCode.COMPETES
    children = (*pools, *misfits)
    return Reason(code, alternative.path, seen=str(usable), wanted=str(alternative.count), children=children)


def _explain_pool(pool: Pool) -> Reason:
    code = ReasonCode.POOL_INCOMPLETE if pool.is_incomplete else ReasonCode.POOL_INVALID
    return Reason(code, "/".join(pool.id), pool.invalid)


def _explain_device(ledger: Ledger, alternative: Alternative, index: int) -> Reason | None:
    table = ledger.table
    candidate = table.candidates[index]
    if not ledger.is_free(alternative, index):
        return Reason(ReasonCode.IN_USE, candidate.subject)
    try:
        misfit = next(table.misfits(alternative, candidate), None)
        if misfit is not None:
            return explain_misfit(table, misfit, alternative, candidate)
        cell = table.cell(alternative, index)
    except AllocationError as error:
        return Reason(ReasonCode.ERROR, candidate.subject, seen=str(error))
    if not ledger.has_room(cell, index):
        return _explain_room(ledger, alternative, index)
    if candidate.consumption:
        return _explain_counters(ledger, index)
    return None


def _explain_room(ledger: Ledger, alternative: Alternative, index: int) -> Reason:
    candidate = ledger.table.candidates[index]
    held = ledger.table.state.consumed[candidate.id]
    quantities = ledger.table.cell(alternative, index).quantities or {}
    short = [
        (name, quantity)
        for name, quantity in quantities.items()
        if held[name] + quantity.nanos > candidate.capacity[name]
    ]
    left = ((name, Quantity(candidate.capacity[name] - held[name], quantity.format)) for name, quantity in short)
    seen = ", ".join(f"{name} {quantity}" for name, quantity in left)
    wanted = ", ".join(f"{name} {quantity}" for name, quantity in short)
    return Reason(ReasonCode.ROOM, candidate.subject, seen, wanted)


def _explain_counters(ledger: Ledger, index: int) -> Reason | None:
    table = ledger.table
    candidate = table.candidates[index]
    available = ledger.available_counters(table.pool_of[index])
    short = [key for key, amount in candidate.consumption.items() if available[key] < amount]
    if not short:
        return None
    seen = ", ".join(f"{'/'.join(key)} {format_nanos(available[key])}" for key in short)
    wanted = ", ".join(f"{'/'.join(key)} {format_nanos(candidate.consumption[key])}" for key in short)
    return Reason(ReasonCode.COUNTERS, candidate.subject, seen, wanted)
