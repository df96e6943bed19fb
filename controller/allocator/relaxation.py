"""A node's question, and how it looks once some of what is in the way is gone."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from controller.allocator.allocation import (
    DEFAULT_BUDGET,
    Problem,
    apply_policy,
    known_pools,
    search_table,
)
from controller.allocator.blocker import Blocker, BlockerCode
from controller.allocator.error import AllocationError
from controller.allocator.feature import Features
from controller.allocator.policy import Policy
from controller.allocator.pool import Pool
from controller.allocator.request import Request
from controller.allocator.search import Outcome
from controller.allocator.selector import SelectorCache
from controller.allocator.slice_index import PoolId
from controller.allocator.state import AllocatedState, build_allocated_state
from controller.allocator.table import Table
from dra_driver.api.core_v1 import Node
from dra_driver.api.resource_v1 import DeviceClass, ResourceClaim


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked of one node, wherever its pools come from.

    `gather` gives them, with what is there of the pools that it is given counting as all of them. It may raise
    AllocationError.
    """

    node: Node
    claims: Sequence[ResourceClaim]
    classes: Mapping[str, DeviceClass]
    features: Features
    selectors: SelectorCache
    state: AllocatedState
    gather: Callable[[frozenset[PoolId]], tuple[Pool, ...]]
    policy: Policy | None = Policy.FIRST_FIT
    budget: int = DEFAULT_BUDGET
    refuses_stale_shares: bool = True


def question_of(problem: Problem, selectors: SelectorCache) -> Question:
    """Give the question that a problem asks."""
    gate = problem.features.consumable_capacity
    return Question(
        node=problem.node,
        claims=problem.claims,
        classes=problem.classes,
        features=problem.features,
        selectors=selectors,
        state=build_allocated_state(problem.allocated, consumable_capacity=gate),
        gather=lambda completed: known_pools(problem, completed),
        policy=problem.policy,
        budget=problem.budget,
        refuses_stale_shares=problem.refuses_stale_shares,
    )


@dataclass(slots=True)
class Relaxation:
    """A question, and how it looks without some of its blockers."""

    question: Question
    _pools: dict[frozenset[PoolId], tuple[Pool, ...]] = field(default_factory=dict)

    def outcome(self, removed: frozenset[Blocker]) -> Outcome:
        """Tell how the search ends once blockers are removed. Raises AllocationError."""
        search = search_table(self.build(removed), self.question.budget)
        return Outcome.EXHAUSTED if search is None else search.outcome

    def fits(self, removed: frozenset[Blocker]) -> bool:
        """Tell whether the claims fit once blockers are removed; not being able to tell counts as no."""
        try:
            return self.outcome(removed) is Outcome.FOUND
        except AllocationError:
            return False

    def build(self, removed: frozenset[Blocker]) -> Table:
        """Build the table without the blockers. Raises AllocationError."""
        question = self.question
        freed = {blocker.device for blocker in removed if blocker.code is BlockerCode.IN_USE}
        pools = self._gather({blocker.pool for blocker in removed if blocker.code is BlockerCode.POOL_INCOMPLETE})
        table = Table(
            question.node,
            question.features,
            question.selectors,
            question.state.without(frozenset(_split(device) for device in freed)) if freed else question.state,
            pools,
            question.refuses_stale_shares,
            forgiven=removed,
            uncounted=frozenset(
                pool
                for pool in pools
                if not question.features.partitionable_devices
                or Blocker(BlockerCode.COUNTERS, pool="/".join(pool.id)) in removed
            ),
        )
        table.unmetered = frozenset(
            index
            for index, candidate in enumerate(table.candidates)
            if Blocker(BlockerCode.ROOM, device=candidate.subject) in removed
        )
        table.plan(question.claims, question.classes)
        apply_policy(table, question.policy)
        _drop(table, removed)
        return table

    def _gather(self, completed: set[str]) -> tuple[Pool, ...]:
        ids = frozenset((driver, pool) for driver, _, pool in (name.partition("/") for name in completed))
        pools = self._pools.get(ids)
        if pools is None:
            pools = self._pools[ids] = self.question.gather(ids)
        return pools


def request_path(request: Request) -> str:
    """Give the request under its claim, without the subrequest."""
    first = request.alternatives[0]
    return f"{first.claim_name}/{first.parent or first.name}"


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
            if Blocker(BlockerCode.REQUEST, request_path(request)) in removed:
                first = request.alternatives[0]
                first.is_all, first.count = False, 0
                plan.requests[position] = Request((first,), has_subrequests=False)
