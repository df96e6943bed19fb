"""What cannot fit is refuted, within a budget in which a plain search gets nowhere."""

from typing import Any

import pytest

from controller.allocator import Features, Problem, Refused, SelectorCache
from controller.allocator.candidate import Candidate
from controller.allocator.pool import gather_pools
from controller.allocator.prune import build_pruner
from controller.allocator.search import Outcome, Search
from controller.allocator.slice_index import index_slices
from controller.allocator.state import build_allocated_state
from controller.allocator.table import Table
from dra_driver.api.resource_v1 import Device
from tests.support.allocation import (
    DRIVER,
    FakeCompiler,
    a_claim,
    a_device,
    a_problem,
    a_request,
    a_slice,
    devices_of,
    solve,
)

BUDGET = 200
SAME_DOMAIN = [{"matchAttribute": f"{DRIVER}/domain"}]


def in_domains(count: int, size: int) -> list[Device]:
    return [a_device(f"dev-{index}", domain=index // size, index=index) for index in range(count)]


def singles(count: int, **fields: Any) -> list[dict[str, Any]]:
    return [a_request(f"single-{index}", **fields) for index in range(count)]


def shareable(count: int) -> list[Device]:
    policy = {"default": "80Gi", "validRange": {"min": "0", "step": "1Mi"}}
    fields = {"allowMultipleAllocations": True, "capacity": {"memory": {"value": "80Gi", "requestPolicy": policy}}}
    return [a_device(f"dev-{index}", fields) for index in range(count)]


def memory(amount: str) -> dict[str, Any]:
    return {"capacity": {"requests": {"memory": amount}}}


def gpus(count: int, partitions: int, units: int) -> list[Any]:
    """GPUs with partitions of one unit each."""
    devices = [
        a_device(
            f"gpu-{gpu}-{partition}",
            {"consumesCounters": [{"counterSet": f"gpu-{gpu}", "counters": {"units": {"value": "1"}}}]},
        )
        for gpu in range(count)
        for partition in range(partitions)
    ]
    sets = [{"name": f"gpu-{gpu}", "counters": {"units": {"value": str(units)}}} for gpu in range(count)]
    return [a_slice(*devices, name="a", of=2), a_slice(name="b", of=2, sharedCounters=sets)]


PROBLEMS = {
    "32 of 31": a_problem(a_claim(a_request(count=32)), a_slice(*devices_of(31))),
    "8 and 9 of 16": a_problem(a_claim(a_request("a", count=8), a_request("b", count=9)), a_slice(*devices_of(16))),
    "an impossible request after six others": a_problem(
        a_claim(*singles(6), a_request("never", "never")), a_slice(*in_domains(32, 1))
    ),
    "nine of a domain of eight": a_problem(
        a_claim(a_request(count=9), constraints=SAME_DOMAIN), a_slice(*in_domains(32, 8))
    ),
    "three of a domain of two": a_problem(
        a_claim(a_request(count=3), constraints=SAME_DOMAIN), a_slice(*in_domains(128, 2))
    ),
    "five of four values": a_problem(
        a_claim(a_request(count=5), constraints=[{"distinctAttribute": f"{DRIVER}/domain"}]),
        a_slice(*in_domains(32, 8)),
    ),
    "a partition more than counters allow": a_problem(a_claim(a_request(count=29)), gpus(4, 9, 7)),
    "a share more than memory allows": a_problem(a_claim(*singles(17, **memory("30Gi"))), a_slice(*shareable(8))),
    "shares that fit by their sum only": a_problem(a_claim(*singles(9, **memory("50Gi"))), a_slice(*shareable(8))),
    "requests that compete for few devices": a_problem(
        a_claim(*(a_request(f"low-{index}", "low") for index in range(4)), a_request("any", count=14)),
        a_slice(*in_domains(20, 1)),
    ),
}


@pytest.mark.parametrize("problem", [pytest.param(problem, id=name) for name, problem in PROBLEMS.items()])
def test_it_is_refuted(problem: Problem) -> None:
    fields = {name: getattr(problem, name) for name in Problem.__slots__} | {"budget": BUDGET}
    assert solve(Problem(**fields), never=lambda _: False, low=_is_low) == Refused()


def _is_low(candidate: Candidate) -> bool:
    return candidate.id[2] in ("dev-0", "dev-1", "dev-2")


def test_all_without_the_gate_for_counters_is_refused_after_a_search_that_goes_back() -> None:
    """Counting what `All` takes of counters once failed where there are none, since the gate is off."""
    devices = [*in_domains(20, 1), a_device("partition", {"consumesCounters": [TAKES]})]
    claim = a_claim(a_request("never", "never"), a_request("all", allocationMode="All"))
    problem = a_problem(claim, a_slice(*devices), features=Features(partitionable_devices=False), budget=BUDGET)
    table = build_table(problem)
    assert Search(table, build_pruner(table), BUDGET).run() is Outcome.NONE


TAKES = {"counterSet": "gpu", "counters": {"units": {"value": "1"}}}


def build_table(problem: Problem) -> Table:
    pools = gather_pools(problem.node, index_slices(problem.slices), problem.features)
    compiler = FakeCompiler({"never": lambda _: True})
    table = Table(problem.node, problem.features, SelectorCache(compiler), build_allocated_state(()), pools)
    table.plan(problem.claims, problem.classes)
    return table
