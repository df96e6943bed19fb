"""Shares and partitions: devices that several allocations draw from."""

from typing import Any

import pytest

from controller.allocator import Allocated, Features, Refused
from tests.support.allocation import (
    DRIVER,
    a_claim,
    a_device,
    a_holder,
    a_problem,
    a_request,
    a_slice,
    chosen,
    devices_of,
    quantities,
    solve,
)

MEMORY = {"value": "40Gi", "requestPolicy": {"default": "40Gi", "validRange": {"min": "0", "step": "1Gi"}}}
SHAREABLE = {"allowMultipleAllocations": True, "capacity": {"memory": MEMORY, "slots": {"value": "16"}}}


def memory(amount: str, name: str = "main", **fields: Any) -> dict[str, Any]:
    return a_request(name, capacity={"requests": {"memory": amount, "slots": "1"}}, **fields)


def a_share(amount: str, share_id: str = "share") -> Any:
    return a_holder("dev", shareID=share_id, consumedCapacity={"memory": amount, "slots": "1"})


def test_a_share_has_an_id_and_all_capacities() -> None:
    answer = solve(a_problem(a_claim(memory("1500Mi")), a_slice(a_device("dev", SHAREABLE))))
    assert isinstance(answer, Allocated)
    (result,) = answer.results[0].devices.results
    assert result.share_id == "share-0"
    assert result.consumed_capacity == quantities(memory="2Gi", slots="1")


def test_shares_are_given_out_until_nothing_is_left() -> None:
    slices = a_slice(a_device("dev", SHAREABLE))
    assert chosen(solve(a_problem(a_claim(memory("30Gi")), slices, allocated=[a_share("10Gi")]))) == ["main=dev"]
    assert solve(a_problem(a_claim(memory("30Gi")), slices, allocated=[a_share("11Gi")])) == Refused()


def test_one_request_never_takes_a_device_twice_but_two_may() -> None:
    slices = a_slice(a_device("dev", SHAREABLE))
    assert solve(a_problem(a_claim(memory("1Gi", count=2)), slices)) == Refused()
    assert chosen(solve(a_problem(a_claim(memory("1Gi", "a"), memory("1Gi", "b")), slices))) == ["a=dev", "b=dev"]


def test_an_exclusive_device_has_capacity_enough_or_not_and_no_share() -> None:
    slices = a_slice(a_device("dev", {"capacity": {"memory": {"value": "40Gi"}}}))
    answer = solve(a_problem(a_claim(a_request(capacity={"requests": {"memory": "30Gi"}})), slices))
    assert isinstance(answer, Allocated)
    (result,) = answer.results[0].devices.results
    assert (result.share_id, result.consumed_capacity) == (None, {})
    assert solve(a_problem(a_claim(a_request(capacity={"requests": {"memory": "50Gi"}})), slices)) == Refused()


def test_shares_of_a_device_that_is_no_longer_shareable_keep_it_in_use() -> None:
    problem: dict[str, Any] = {"slices": a_slice(*devices_of(1)), "allocated": [a_holder("dev-0", shareID="share")]}
    assert solve(a_problem(a_claim(a_request()), **problem)) == Refused()
    assert chosen(solve(a_problem(a_claim(a_request()), **problem, refuses_stale_shares=False))) == ["main=dev-0"]


def test_without_the_gate_a_share_is_the_whole_device() -> None:
    features = Features(consumable_capacity=False)
    slices = a_slice(a_device("dev", SHAREABLE))
    problem = a_problem(a_claim(a_request()), slices, allocated=[a_share("1Gi")], features=features)
    assert solve(problem) == Refused()


def a_gpu(partitions: int, units: int, *, driver: str = DRIVER, pool: str = "pool", groups: Any = ()) -> list[Any]:
    """Partitions of one GPU, each of which takes one of its units."""
    counters = {"name": "gpu", "counters": {"units": {"value": str(units)}}}
    devices = [
        a_device(
            f"dev-{index}",
            {
                "consumesCounters": [
                    {"counterSet": "gpu", "counters": {"units": {"value": "1"}}}
                    | ({"compatibilityGroups": groups[index]} if groups else {})
                ]
            },
        )
        for index in range(partitions)
    ]
    return [
        a_slice(*devices, pool=pool, name=f"{pool}-a", of=2, driver=driver),
        a_slice(pool=pool, name=f"{pool}-b", of=2, driver=driver, sharedCounters=[counters]),
    ]


def test_counters_bound_what_is_given_out_together() -> None:
    assert chosen(solve(a_problem(a_claim(a_request(count=2)), a_gpu(4, 2)))) == ["main=dev-0", "main=dev-1"]
    assert solve(a_problem(a_claim(a_request(count=3)), a_gpu(4, 2))) == Refused()
    problem = a_problem(a_claim(a_request(count=2)), a_gpu(4, 2), allocated=[a_holder("dev-3")])
    assert solve(problem) == Refused()


def test_pools_of_equal_names_have_counters_of_their_own() -> None:
    slices = a_gpu(2, 1) + a_gpu(2, 1, driver="other.example.com")
    assert chosen(solve(a_problem(a_claim(a_request(count=2)), slices))) == ["main=dev-0", "main=dev-0"]


def test_shares_of_a_device_are_charged_for_its_counters_once() -> None:
    fields = {"consumesCounters": [{"counterSet": "gpu", "counters": {"units": {"value": "1"}}}]}
    counters = {"name": "gpu", "counters": {"units": {"value": "1"}}}
    slices = [
        a_slice(a_device("dev", SHAREABLE | fields), name="a", of=2),
        a_slice(name="b", of=2, sharedCounters=[counters]),
    ]
    problem = a_problem(a_claim(memory("1Gi", "a"), memory("1Gi", "b")), slices, allocated=[a_share("1Gi")])
    assert chosen(solve(problem)) == ["a=dev", "b=dev"]


@pytest.mark.parametrize(
    ("groups", "devices"),
    [
        pytest.param((["x"], ["y"], ["x"]), ["main=dev-0", "main=dev-2"], id="one in common"),
        pytest.param(([], ["y"], []), ["main=dev-0", "main=dev-2"], id="none with none"),
        pytest.param((["x"], ["y"], []), None, id="nothing in common"),
    ],
)
def test_devices_of_a_counter_set_have_a_group_in_common(groups: Any, devices: list[str] | None) -> None:
    features = Features(compatibility_groups=True)
    answer = solve(a_problem(a_claim(a_request(count=2)), a_gpu(3, 3, groups=groups), features=features))
    assert answer == Refused() if devices is None else chosen(answer) == devices


def test_without_the_gate_a_pool_with_groups_is_incomplete() -> None:
    assert solve(a_problem(a_claim(a_request()), a_gpu(2, 2, groups=(["x"], ["x"])))) == Refused()
