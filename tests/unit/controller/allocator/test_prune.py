"""Pruning never changes the outcome: a search with it ends as a plain one does."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from controller.allocator import AllocationError, Features, SelectorCache
from controller.allocator.pool import gather_pools
from controller.allocator.prune import build_pruner
from controller.allocator.search import Outcome, Pruner, Search
from controller.allocator.state import build_allocated_state
from controller.allocator.table import Table
from tests.support.allocation import (
    DRIVER,
    FakeCompiler,
    a_claim,
    a_device,
    a_holder,
    a_problem,
    a_request,
    a_slice,
    a_subrequest,
)

_SMALL = st.integers(0, 1)
_FUNCTIONS = {
    "zero": lambda candidate: candidate.device.attributes["a"].int == 0,
    "fails": lambda candidate: {0: True}[candidate.device.attributes["b"].int],
}


@st.composite
def _device(draw: st.DrawFn, index: int) -> Any:
    fields: dict[str, Any] = {}
    if draw(st.booleans()):
        amount = str(draw(st.integers(1, 2)))
        fields["consumesCounters"] = [
            {"counterSet": draw(st.sampled_from(("x", "y"))), "counters": {"units": {"value": amount}}}
        ]
    if draw(st.booleans()):
        fields["capacity"] = {"memory": {"value": "4", "requestPolicy": {"default": "2"}}}
        fields["allowMultipleAllocations"] = draw(st.booleans())
    return a_device(f"dev-{index}", fields, a=draw(_SMALL), b=draw(_SMALL), c=index)


@st.composite
def _request(draw: st.DrawFn, index: int) -> dict[str, Any]:
    selectors = draw(st.sampled_from(((), (), (), ("zero",), ("fails",))))
    fields: dict[str, Any] = {}
    if draw(st.integers(0, 2)) == 0:
        fields["capacity"] = {"requests": {"memory": str(draw(st.integers(1, 3)))}}
    if draw(st.integers(0, 5)) == 0:
        fields["allocationMode"] = "All"
    if draw(st.integers(0, 3)) == 0:
        parts = [a_subrequest(f"s{part}", *selectors, count=draw(st.integers(1, 2)), **fields) for part in range(2)]
        return {"name": f"r{index}", "firstAvailable": parts}
    if draw(st.integers(0, 7)) == 0:
        fields["adminAccess"] = True
    return a_request(f"r{index}", *selectors, count=draw(st.integers(1, 3)), **fields)


@st.composite
def _problem(draw: st.DrawFn) -> Any:
    devices = [draw(_device(index)) for index in range(draw(st.integers(1, 6)))]
    claims = []
    for number in range(draw(st.integers(1, 2))):
        requests = [draw(_request(index)) for index in range(draw(st.integers(1, 3)))]
        constraints = [
            {draw(st.sampled_from(("matchAttribute", "distinctAttribute"))): f"{DRIVER}/{draw(st.sampled_from('abc'))}"}
            for _ in range(draw(st.integers(0, 2)))
        ]
        claims.append(a_claim(*requests, name=f"claim-{number}", constraints=constraints))
    sets = [{"name": name, "counters": {"units": {"value": "3"}}} for name in ("x", "y")]
    slices = [a_slice(*devices, name="a", of=2), a_slice(name="b", of=2, sharedCounters=sets)]
    held = [a_holder(device.name) for device in devices if draw(st.integers(0, 5)) == 0]
    features = Features(list_type_attributes=draw(st.booleans()))
    return a_problem(claims, slices, allocated=held, features=features)


def _run(problem: Any, *, pruned: bool) -> Any:
    pools = gather_pools(problem.node, problem.slices, problem.features)
    state = build_allocated_state(problem.allocated)
    table = Table(problem.node, problem.features, SelectorCache(FakeCompiler(_FUNCTIONS)), state, pools)
    try:
        table.plan(problem.claims, problem.classes)
        order = range(len(table.candidates))
        pruner: Pruner | None = build_pruner(table, order) if pruned else None
        search = Search(table, order, pruner, budget=10**6)
        outcome = search.run()
    except AllocationError as error:
        return error.error_class
    if outcome is not Outcome.FOUND:
        return outcome
    return [(grant.alternative.claim, grant.alternative.result_name, grant.index) for grant in search.grants]


@settings(max_examples=300, deadline=None)
@given(_problem())
def test_a_pruned_search_ends_like_a_plain_one(problem: Any) -> None:
    assert _run(problem, pruned=True) == _run(problem, pruned=False)
