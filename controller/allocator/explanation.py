"""Why claims do not fit on a node: a tree of reasons, and an irreducible set of blockers.

Costs much more than the refusal, and nothing unless it is asked for.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from controller.allocator.allocation import Problem
from controller.allocator.blocker import Blocker, BlockerCode, reduce_blockers
from controller.allocator.error import AllocationError
from controller.allocator.expression import CelCompiler
from controller.allocator.reason import Reason, ReasonCode
from controller.allocator.relaxation import Question, Relaxation, question_of, request_path
from controller.allocator.request import Alternative
from controller.allocator.selector import SelectorCache
from controller.allocator.sifting import explain_request, sift_request
from controller.allocator.table import Table, find_blocker


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why claims do not fit on `node`: one reason a claim, and what would have to go. Without blockers they fit."""

    node: str
    claims: tuple[Reason, ...]
    blockers: tuple[Blocker, ...]


def explain(problem: Problem, selectors: SelectorCache | None = None) -> Explanation:
    """Explain a refusal. Raises AllocationError for a problem that is not well posed."""
    return explain_question(question_of(problem, selectors or SelectorCache(CelCompiler())))


def explain_question(question: Question) -> Explanation:
    """Explain a refusal. Raises AllocationError for a question that is not well posed."""
    relaxation = Relaxation(question)
    table = relaxation.build(frozenset())
    tree = tuple(_explain_claim(table, index) for index in range(len(table.claims)))
    if relaxation.fits(frozenset()):
        return Explanation(question.node.metadata.name, (), ())
    return Explanation(question.node.metadata.name, tree, find_blockers(relaxation, table))


def fits_without(problem: Problem, blockers: frozenset[Blocker], selectors: SelectorCache | None = None) -> bool:
    """Tell whether the claims fit once `blockers` are removed; not being able to tell counts as no."""
    return Relaxation(question_of(problem, selectors or SelectorCache(CelCompiler()))).fits(blockers)


def find_blockers(relaxation: Relaxation, table: Table) -> tuple[Blocker, ...]:
    """Give an irreducible set of blockers; `table` is that of the question as it stands, which must not fit."""
    incomplete = [
        Blocker(BlockerCode.POOL_INCOMPLETE, pool="/".join(pool.id)) for pool in table.pools if pool.is_incomplete
    ]
    found = {*incomplete, *_find_all(relaxation.build(frozenset(incomplete)))}
    order = {code: place for place, code in enumerate(BlockerCode)}
    blockers = sorted(found, key=lambda blocker: (order[blocker.code], blocker))
    return reduce_blockers(blockers, relaxation.fits)


def _find_all(table: Table) -> Iterator[Blocker]:
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
            yield Blocker(BlockerCode.REQUEST, request_path(request))


def _find_misfits(table: Table, alternative: Alternative, index: int) -> Iterator[Blocker]:
    candidate = table.candidates[index]
    try:
        for misfit in table.misfits(alternative, candidate):
            yield find_blocker(misfit, alternative, candidate)
    except AllocationError:
        return


def _explain_claim(table: Table, index: int) -> Reason:
    plan = table.claims[index]
    requests = tuple(explain_request(request, sift_request(table, request)) for request in plan.requests)
    return Reason(ReasonCode.CLAIM, plan.name, children=requests)
