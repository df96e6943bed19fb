"""Allocating claims on a node: a question in, an allocation, a refusal or a shrug out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from controller.allocator.error import AllocationError, ErrorClass
from controller.allocator.expression import CelCompiler
from controller.allocator.feature import Features
from controller.allocator.policy import Policy, arrange, policy_of
from controller.allocator.pool import Pool, gather_pools
from controller.allocator.prune import build_pruner
from controller.allocator.result import build_results
from controller.allocator.search import Outcome, Search
from controller.allocator.selector import SelectorCache
from controller.allocator.slice_index import PoolId, index_slices
from controller.allocator.state import AllocatedState, build_allocated_state
from controller.allocator.table import Table
from controller.allocator.taint import apply_taint_rules
from controller.allocator.walk import Lack, Way, walk
from dra_driver.api.core_v1 import Node
from dra_driver.api.resource_v1 import AllocationResult, DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice

DEFAULT_BUDGET: Final = 20_000
_PLAIN_BUDGET: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Claims that are to be allocated together on `node`, and everything that decides about it.

    `slices` are all slices of the cluster, `allocated` all claims with an allocation, `classes` go by name.
    `policy` is for all claims; None takes that of each claim or class from its annotation.
    `budget` is how many devices the search may try before it gives up. `new_share_id` makes share IDs (lower-case
    UUIDs). Shares of a device that is no longer shareable keep it from being given away; upstream gives it away, and
    so does this with `refuses_stale_shares` off.
    """

    node: Node
    claims: Sequence[ResourceClaim]
    slices: Sequence[ResourceSlice]
    classes: Mapping[str, DeviceClass]
    allocated: Sequence[ResourceClaim] = ()
    taint_rules: Sequence[DeviceTaintRule] = ()
    features: Features = field(default_factory=Features)
    policy: Policy | None = Policy.FIRST_FIT
    budget: int = DEFAULT_BUDGET
    refuses_stale_shares: bool = True
    new_share_id: Callable[[], str]


@dataclass(frozen=True, slots=True)
class Allocated:
    """The claims fit: one result each, in order."""

    results: tuple[AllocationResult, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """The claims do not fit on the node."""


@dataclass(frozen=True, slots=True)
class Undecided:
    """The budget was used up; a larger one may bring an answer."""


Answer: TypeAlias = Allocated | Refused | Undecided


def allocate(problem: Problem, selectors: SelectorCache | None = None) -> Answer:
    """Find the allocation that upstream finds. Raises AllocationError with upstream's class of error.

    `selectors` keeps compiled expressions from one call to the next.
    """
    if selectors is None:
        selectors = SelectorCache(CelCompiler())
    gate = problem.features.consumable_capacity
    state = build_allocated_state(problem.allocated, consumable_capacity=gate)
    return allocate_from(problem, known_pools(problem), state, selectors)


def known_pools(problem: Problem, completed: frozenset[PoolId] = frozenset()) -> tuple[Pool, ...]:
    """Give the pools of the problem's node, taint rules applied; see gather_pools."""
    slices = problem.slices
    if problem.taint_rules and problem.features.device_taints:
        slices = apply_taint_rules(slices, problem.taint_rules)
    return gather_pools(problem.node, index_slices(slices), problem.features, completed)


def allocate_from(problem: Problem, pools: Sequence[Pool], state: AllocatedState, selectors: SelectorCache) -> Answer:
    """Do the same with pools and allocations that are known already; those of `problem` are not looked at."""
    table = Table(problem.node, problem.features, selectors, state, pools, problem.refuses_stale_shares)
    table.plan(problem.claims, problem.classes)
    apply_policy(table, problem.policy)
    return solve_table(table, problem.budget, problem.new_share_id)


def solve_table(table: Table, budget: int, new_share_id: Callable[[], str]) -> Answer:
    """Answer the question of a table that is planned and ordered. Raises AllocationError."""
    way = walk(table, min(budget, _PLAIN_BUDGET))
    if isinstance(way, Way):
        return Allocated(build_results(table, way.given, way.choices, new_share_id))
    if way is Lack.UNKNOWN:
        search = search_table(table, budget)
        if search is None:
            return Undecided()
        if search.outcome is Outcome.FOUND:
            return Allocated(build_results(table, search.given, search.choices, new_share_id))
    if any(pool.invalid for pool in table.pools):
        reasons = "; ".join(f"{'/'.join(pool.id)}: {pool.invalid}" for pool in table.pools if pool.invalid)
        raise AllocationError(f"invalid pools: {reasons}", ErrorClass.INVALID, node_only=True)
    return Refused()


def search_table(table: Table, budget: int) -> Search | None:
    """Search plainly while that is cheap, then with all that can be known in advance; None if nothing came out."""
    search = Search(table, budget=min(budget, _PLAIN_BUDGET))
    if search.run() is not Outcome.EXHAUSTED:
        return search
    search = Search(table, build_pruner(table), budget)
    return search if search.run() is not Outcome.EXHAUSTED else None


def apply_policy(table: Table, policy: Policy | None) -> None:
    """Order the candidates of each request; without a policy as annotations say. Raises AllocationError."""
    if policy is Policy.FIRST_FIT:
        return
    for plan in table.claims:
        for request in plan.requests:
            request.alternatives = tuple(
                arranged
                for alternative in request.alternatives
                for arranged in arrange(table, alternative, policy or policy_of(plan.claim, alternative.device_class))
            )
