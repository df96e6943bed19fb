"""Why claims do not fit on a node: a tree of reasons, and an irreducible set of blockers.

Costs much more than the refusal, and nothing unless it is asked for.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from controller.allocator.allocation import Problem
from controller.allocator.blocker import Blocker, BlockerCode, reduce_blockers
from controller.allocator.error import AllocationError, ErrorClass
from controller.allocator.expression import CelCompiler
from controller.allocator.reason import Reason, ReasonCode
from controller.allocator.relaxation import Question, Relaxation, question_of, request_path
from controller.allocator.request import Alternative, claim_name
from controller.allocator.search import Outcome
from controller.allocator.selector import SelectorCache
from controller.allocator.sifting import explain_request, sift_request
from controller.allocator.table import Table, find_blocker
from dra_driver.api.resource_v1 import ResourceClaim


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why claims do not fit on `node`: one reason a claim, and what would have to go. Without reasons they fit.

    With an `error` nothing was decided: the tree says what is wrong, and there are no blockers.
    """

    node: str
    claims: tuple[Reason, ...]
    blockers: tuple[Blocker, ...]
    error: ErrorClass | None = None


def explain(problem: Problem, selectors: SelectorCache | None = None) -> Explanation:
    """Explain a refusal, or an error."""
    return explain_question(question_of(problem, selectors or SelectorCache(CelCompiler())))


def explain_question(question: Question) -> Explanation:
    """Explain a refusal, or an error."""
    relaxation, node = Relaxation(question), question.node.metadata.name
    try:
        table = relaxation.build(frozenset())
        if relaxation.outcome(frozenset()) is Outcome.FOUND:
            return Explanation(node, (), ())
    except AllocationError as error:
        return Explanation(node, explain_error(error, question.claims), (), error.error_class)
    tree = tuple(_explain_claim(table, index) for index in range(len(table.claims)))
    return Explanation(node, tree, find_blockers(relaxation, table))


def explain_error(error: AllocationError, claims: Sequence[ResourceClaim]) -> tuple[Reason, ...]:
    """Give the tree of an error: claim, request, and a reason for each thing that is wrong.

    What is about no claim in particular stands by itself.
    """
    faults = tuple(
        Reason(_CODES[error.error_class], fault.subject, fault.found, fault.wanted) for fault in error.faults
    )
    names = (claim_name(claim) for claim in claims)
    claim = next((name for name in names if error.path == name or error.path.startswith(f"{name}/")), None)
    if claim is None:
        return faults
    if error.path != claim:
        faults = (Reason(ReasonCode.REQUEST_ERROR, error.path, children=faults),)
    return (Reason(ReasonCode.CLAIM, claim, children=faults),)


_CODES: Final = {
    ErrorClass.COMPILE: ReasonCode.COMPILE,
    ErrorClass.RUNTIME: ReasonCode.ERROR,
    ErrorClass.LIMIT: ReasonCode.LIMIT,
    ErrorClass.INCOMPLETE: ReasonCode.POOL_INCOMPLETE,
    ErrorClass.INVALID: ReasonCode.POOL_INVALID,
    ErrorClass.OTHER: ReasonCode.MALFORMED,
}


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
