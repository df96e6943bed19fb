"""A walk gives what a search finds first, or nothing."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.allocator import AllocationError, Problem, SelectorCache
from controller.allocator.allocation import known_pools
from controller.allocator.search import Outcome, Search
from controller.allocator.state import build_allocated_state
from controller.allocator.table import Table
from controller.allocator.walk import Lack, Way, walk
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
    chosen,
    solve,
)
from tests.support.allocation_strategy import FUNCTIONS, problems

BUDGET = 5000


def a_table(problem: Problem) -> Table:
    selectors = SelectorCache(FakeCompiler(FUNCTIONS))
    state = build_allocated_state(problem.allocated)
    table = Table(problem.node, problem.features, selectors, state, known_pools(problem))
    table.plan(problem.claims, problem.classes)
    return table


def walked(table: Table) -> list[str]:
    way = walk(table, BUDGET)
    if isinstance(way, Lack):
        return []
    return [table.candidates[index].id[2] for own in way.given for _, index, _ in own]


@settings(max_examples=400, deadline=None)
@given(problem=problems(), is_warm=st.booleans())
def test_a_walk_that_arrives_has_gone_where_a_search_goes(problem: Problem, *, is_warm: bool) -> None:
    try:
        table = a_table(problem)
    except AllocationError:
        return
    search = Search(table, budget=BUDGET)
    try:
        outcome = search.run()
    except AllocationError:
        with contextlib.suppress(AllocationError):
            assert walk(a_table(problem), BUDGET) is Lack.UNKNOWN
        return
    expected = [(grant.alternative.position, grant.index) for grant in search.grants]
    while is_warm and search.grants:
        search.ledger.undo_last()
    way = walk(table if is_warm else a_table(problem), BUDGET)
    if way is Lack.CERTAIN:
        assert outcome is not Outcome.FOUND
    if isinstance(way, Way) and outcome is not Outcome.EXHAUSTED:
        assert [(alternative.position, index) for own in way.given for alternative, index, _ in own] == expected
        chosen = {place: position for place, position in search.choices.items() if position}
        assert way.choices == chosen


@pytest.mark.parametrize(
    ("held", "chosen"),
    [
        pytest.param([], ["dev-0", "dev-2"], id="the first value"),
        pytest.param(["dev-0"], ["dev-1", "dev-3"], id="a value that enough devices have"),
        pytest.param(["dev-0", "dev-1"], [], id="none"),
    ],
)
def test_alike_devices_are_found_without_going_back(held: list[str], chosen: list[str]) -> None:
    devices = [a_device(f"dev-{index}", numa=index % 2) for index in range(4)]
    claim = a_claim(a_request(count=2), constraints=[{"matchAttribute": f"{DRIVER}/numa"}])
    problem = a_problem(claim, a_slice(*devices), allocated=[a_holder(name) for name in held])
    assert walked(a_table(problem)) == chosen


def test_a_subrequest_that_lacks_devices_is_passed_over() -> None:
    parts = [a_subrequest("many", count=3), a_subrequest("few", count=2)]
    claim = a_claim({"name": "main", "firstAvailable": parts})
    table = a_table(a_problem(claim, a_slice(a_device("dev-0"), a_device("dev-1"))))
    way = walk(table, BUDGET)
    assert isinstance(way, Way)
    assert way.choices == {(0, 0): 1}
    assert [index for own in way.given for _, index, _ in own] == [0, 1]


def test_after_a_device_without_counters_the_next_one_alike_is_looked_at_before_it_is_taken() -> None:
    takes = {"consumesCounters": [{"counterSet": "gpu", "counters": {"units": {"value": "2"}}}]}
    share, memory = {"allowMultipleAllocations": True}, {"capacity": {"memory": {"value": "1"}}}
    devices = [
        a_device("short", takes | share | memory, numa=0),
        a_device("without memory", share, numa=0),
        a_device("fits", memory, numa=0),
        a_device("used", takes, numa=0),
    ]
    sets = a_slice(name="sets", of=2, sharedCounters=[{"name": "gpu", "counters": {"units": {"value": "3"}}}])
    claim = a_claim(
        a_request("any"),
        a_request("memory", capacity={"requests": {"memory": "1"}}),
        constraints=[
            {"distinctAttribute": f"{DRIVER}/numa", "requests": ["any"]},
            {"matchAttribute": f"{DRIVER}/numa", "requests": ["memory"]},
        ],
    )
    problem = a_problem(claim, [a_slice(*devices, of=2), sets], allocated=[a_holder("used")])
    assert chosen(solve(problem)) == ["any=without memory", "memory=fits"]


def test_where_a_walk_leads_nowhere_nothing_stays_given_away() -> None:
    problem = a_problem(a_claim(a_request(count=3)), a_slice(a_device("dev-0"), a_device("dev-1")))
    table = a_table(problem)
    assert walk(table, BUDGET) is Lack.CERTAIN
    assert Search(table).run() is Outcome.NONE
