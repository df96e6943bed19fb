"""Pruning never changes the outcome: a search with it ends as a plain one does."""

from typing import Any

from hypothesis import given, settings

from controller.allocator import AllocationError, SelectorCache
from controller.allocator.pool import gather_pools
from controller.allocator.prune import build_pruner
from controller.allocator.search import Outcome, Pruner, Search
from controller.allocator.slice_index import index_slices
from controller.allocator.state import build_allocated_state
from controller.allocator.table import Table
from tests.support.allocation import FakeCompiler
from tests.support.allocation_strategy import FUNCTIONS, problems


def _run(problem: Any, *, pruned: bool) -> Any:
    pools = gather_pools(problem.node, index_slices(problem.slices), problem.features)
    state = build_allocated_state(problem.allocated)
    table = Table(problem.node, problem.features, SelectorCache(FakeCompiler(FUNCTIONS)), state, pools)
    try:
        table.plan(problem.claims, problem.classes)
        pruner: Pruner | None = build_pruner(table) if pruned else None
        search = Search(table, pruner, budget=10**6)
        outcome = search.run()
    except AllocationError as error:
        return error.error_class
    if outcome is not Outcome.FOUND:
        return outcome
    return [(grant.alternative.claim, grant.alternative.result_name, grant.index) for grant in search.grants]


@settings(max_examples=300, deadline=None)
@given(problems())
def test_a_pruned_search_ends_like_a_plain_one(problem: Any) -> None:
    assert _run(problem, pruned=True) == _run(problem, pruned=False)
