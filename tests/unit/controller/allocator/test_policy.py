"""Which devices a policy chooses where several would do."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

from controller.allocator import AllocationError, Features, Policy, Refused, parse_policy
from controller.allocator.allocation import Problem
from tests.support.allocation import (
    a_claim,
    a_class,
    a_device,
    a_holder,
    a_problem,
    a_request,
    a_slice,
    chosen,
    solve,
)
from tests.support.allocation_strategy import FUNCTIONS, problems

POLICY = {"default": "80Gi", "validRange": {"min": "0", "step": "1Gi"}}
SHAREABLE = {
    "allowMultipleAllocations": True,
    "capacity": {"memory": {"value": "80Gi", "requestPolicy": POLICY}},
}


def a_share(device: str, memory: str) -> Any:
    return a_holder(device, shareID=f"share-{device}", consumedCapacity={"memory": memory})


def wants(memory: str) -> dict[str, Any]:
    return a_request(capacity={"requests": {"memory": memory}})


SHARES: dict[str, Any] = {
    "slices": a_slice(*(a_device(name, SHAREABLE) for name in ("empty", "half", "full"))),
    "allocated": [a_share("half", "40Gi"), a_share("full", "70Gi")],
}


@pytest.mark.parametrize(
    ("policy", "memory", "device"),
    [
        (Policy.FIRST_FIT, "10Gi", "empty"),
        (Policy.BINPACK, "10Gi", "full"),
        (Policy.BINPACK, "20Gi", "half"),
        (Policy.SPREAD, "10Gi", "empty"),
        (Policy.BEST_FIT, "10Gi", "full"),
        (Policy.BEST_FIT, "30Gi", "half"),
    ],
)
def test_shares_go_where_the_policy_wants_them(policy: Policy, memory: str, device: str) -> None:
    assert chosen(solve(a_problem(a_claim(wants(memory)), **SHARES, policy=policy))) == [f"main={device}"]


def in_domains(*domains: str) -> Any:
    """Devices by link domain; "" is outside of any."""
    names = [{"linkDomain": domain} if domain else {} for domain in domains]
    return a_slice(*(a_device(f"{index}{domain}", None, **names[index]) for index, domain in enumerate(domains)))


@pytest.mark.parametrize(
    ("count", "devices"),
    [
        pytest.param(1, ["6"], id="one from outside of any domain"),
        pytest.param(2, ["4b", "5b"], id="two of the smallest domain that has them"),
        pytest.param(3, ["0a", "1a", "2a"], id="three of the larger one"),
        pytest.param(5, ["0a", "1a", "2a", "3a", "4b"], id="no domain has five: as few domains as can be"),
    ],
)
def test_topology_takes_the_smallest_domain_that_fits(count: int, devices: list[str]) -> None:
    slices = in_domains("a", "a", "a", "a", "b", "b", "")
    problem = a_problem(a_claim(a_request(count=count)), slices, policy=Policy.TOPOLOGY)
    assert chosen(solve(problem)) == [f"main={device}" for device in devices]


def test_topology_takes_the_next_domain_before_a_mixture_where_a_later_request_fails() -> None:
    """Once it took one device of each of two domains, since the later request wants the second of the first domain."""
    slices = in_domains("a", "a", "b", "b", "b")
    later = a_request("later", "second")
    problem = a_problem(a_claim(a_request(count=2), later), slices, policy=Policy.TOPOLOGY)
    answer = solve(problem, second=lambda candidate: candidate.id[2] == "1a")
    assert chosen(answer) == ["main=2b", "main=3b", "later=1a"]


def test_topology_mixes_domains_where_none_does_alone() -> None:
    slices = in_domains("a", "a", "b", "b")
    later = [a_request(name, name) for name in ("first", "third")]
    problem = a_problem(a_claim(a_request(count=2), *later), slices, policy=Policy.TOPOLOGY)
    answer = solve(
        problem, first=lambda candidate: candidate.id[2] == "0a", third=lambda candidate: candidate.id[2] == "2b"
    )
    assert chosen(answer) == ["main=1a", "main=3b", "first=0a", "third=2b"]


def test_topology_takes_a_single_device_from_the_domain_that_is_spoilt_least() -> None:
    slices = in_domains("a", "a", "b", "b")
    problem = a_problem(a_claim(a_request()), slices, allocated=[a_holder("3b")], policy=Policy.TOPOLOGY)
    assert chosen(solve(problem)) == ["main=2b"]


def gpus(*sizes: tuple[str, int, int]) -> Any:
    """Partitions as (name, GPU, size) of GPUs with four units."""

    def takes(gpu: int, size: int) -> dict[str, Any]:
        return {"consumesCounters": [{"counterSet": f"gpu-{gpu}", "counters": {"units": {"value": str(size)}}}]}

    devices = [a_device(name, takes(gpu, size)) for name, gpu, size in sizes]
    sets = [{"name": f"gpu-{gpu}", "counters": {"units": {"value": "4"}}} for gpu in range(2)]
    return [a_slice(*devices, name="a", of=2), a_slice(name="b", of=2, sharedCounters=sets)]


def test_best_fit_keeps_large_partitions_whole() -> None:
    slices = gpus(("whole-0", 0, 4), ("small-0", 0, 1), ("whole-1", 1, 4), ("small-1", 1, 1), ("used-1", 1, 2))
    problem = a_problem(a_claim(a_request()), slices, allocated=[a_holder("used-1")], policy=Policy.BEST_FIT)
    assert chosen(solve(problem)) == ["main=small-1"]


def test_best_fit_does_not_ask_for_counters_where_partitions_are_off() -> None:
    takes = {"consumesCounters": [{"counterSet": "set", "counters": {"units": {"value": "1"}}}]}
    devices = a_slice(a_device("part", takes), a_device("whole"))
    features = Features(partitionable_devices=False)
    held = [a_holder("part")]
    problem = a_problem(a_claim(a_request()), devices, policy=Policy.BEST_FIT, features=features, allocated=held)
    assert chosen(solve(problem)) == ["main=whole"]


def test_claims_and_classes_choose_by_annotation() -> None:
    meta = {"annotations": {"dra-driver.io/policy": "binpack"}}
    claim = a_claim(wants("10Gi"))
    annotated = msgspec.structs.replace(claim, metadata=msgspec.structs.replace(claim.metadata, **meta))
    by_class = msgspec.structs.replace(a_class(), metadata=msgspec.structs.replace(a_class().metadata, **meta))
    assert chosen(solve(a_problem(annotated, **SHARES, policy=None))) == ["main=full"]
    assert chosen(solve(a_problem(claim, **SHARES, classes={"any": by_class}, policy=None))) == ["main=full"]
    assert chosen(solve(a_problem(claim, **SHARES, policy=None))) == ["main=empty"]
    assert chosen(solve(a_problem(annotated, **SHARES))) == ["main=empty"]


def test_an_unknown_policy_is_named_with_those_that_there_are() -> None:
    with pytest.raises(ValueError, match="unknown policy 'tight', want one of 'first-fit', 'binpack'"):
        parse_policy("tight")


@settings(max_examples=100, deadline=None)
@given(problems())
def test_a_policy_never_decides_whether_claims_fit(problem: Problem) -> None:
    fields = {name: getattr(problem, name) for name in Problem.__slots__}
    try:
        expected = solve(problem, **FUNCTIONS) == Refused()
        for policy in Policy:
            assert (solve(Problem(**fields | {"policy": policy}), **FUNCTIONS) == Refused()) is expected
    except AllocationError:
        return
