"""Families of small problems that a search alone does not decide: each is decided within a small budget."""

from typing import Any

import pytest

from controller.allocator import AllocationError, Answer, Features, Refused
from controller.allocator.candidate import Candidate
from dra_driver.api.resource_v1 import Device
from tests.support.allocation import (
    DRIVER,
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

BUDGET = 200
DEVICES = 12
LOW = 2
MEMORY = {"value": "40Gi", "requestPolicy": {"default": "20Gi", "validRange": {"min": "1Gi"}}}


def different(**attributes: Any) -> list[Device]:
    """Devices no two of which are alike."""
    return [a_device(f"dev-{index}", index=index, **attributes) for index in range(DEVICES)]


def shareable(**attributes: Any) -> list[Device]:
    """Shareable devices no two of which are alike."""
    fields = {"allowMultipleAllocations": True, "capacity": {"memory": MEMORY}}
    return [a_device(f"dev-{index}", fields, index=index, **attributes) for index in range(DEVICES)]


def singles(count: int, **fields: Any) -> list[dict[str, Any]]:
    return [a_request(f"single-{index}", **fields) for index in range(count)]


def all_of(name: str = "all", *selectors: str) -> dict[str, Any]:
    return a_request(name, *selectors, allocationMode="All")


def memory(amount: str) -> dict[str, Any]:
    return {"requests": {"memory": amount}}


def unlike(attribute: str, *names: str) -> dict[str, Any]:
    """A constraint; by their index it keeps all devices apart, so that no two are interchangeable."""
    return {"distinctAttribute": f"{DRIVER}/{attribute}", "requests": list(names)}


def alike(attribute: str, *names: str) -> dict[str, Any]:
    return {"matchAttribute": f"{DRIVER}/{attribute}", "requests": list(names)}


def first_available(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"name": "listed", "firstAvailable": list(parts)}


def decide(claim: Any, devices: list[Device]) -> Answer:
    problem = a_problem(claim, a_slice(*devices), features=Features(list_type_attributes=True), budget=BUDGET)
    return solve(problem, **FUNCTIONS)


def index_of(candidate: Candidate) -> int:
    return candidate.device.attributes["index"].int or 0


FUNCTIONS: dict[str, Any] = {
    "none": lambda _: False,
    "low": lambda candidate: index_of(candidate) < LOW,
    "highest": lambda candidate: index_of(candidate) == DEVICES - 1,
    "fails on the highest": lambda candidate: dict.fromkeys(range(DEVICES - 1), True)[index_of(candidate)],
}
APART = unlike("index", *(f"single-{index}" for index in range(5)))
REFUSED: dict[str, tuple[Any, list[Device]]] = {
    "all of what is nothing, after others": (
        a_claim(*singles(5), all_of("all", "none"), constraints=[APART]),
        different(),
    ),
    "alternatives none of which can be had alone": (
        a_claim(
            *singles(5),
            first_available(a_subrequest("unlike", count=2), a_subrequest("none", "none")),
            constraints=[APART, unlike("same", "listed/unlike")],
        ),
        different(same=1),
    ),
    "others beside all that there are": (
        a_claim(*singles(5, capacity=memory("25Gi")), all_of(), constraints=[APART]),
        shareable(),
    ),
    "others beside an alternative that is all that there are": (
        a_claim(
            *singles(5, capacity=memory("25Gi")),
            first_available(a_subrequest("unlike", count=2), a_subrequest("all", allocationMode="All")),
            constraints=[APART, unlike("same", "listed/unlike")],
        ),
        shareable(same=1),
    ),
    "devices that must be alike in two ways": (
        a_claim(
            *singles(5), a_request("main", count=4), constraints=[APART, alike("half", "main"), alike("third", "main")]
        ),
        [a_device(f"dev-{index}", index=index, half=index % 2, third=index % 3) for index in range(14)],
    ),
    "requests that must be alike and apart at once": (
        a_claim(
            *singles(5),
            a_request("left"),
            a_request("right"),
            constraints=[APART, alike("half", "left", "right"), unlike("half", "left", "right")],
        ),
        [a_device(f"dev-{index}", index=index, half=index % 2) for index in range(DEVICES)],
    ),
    "lists that cannot but have something in common": (
        a_claim(*singles(5), a_request("main", count=3), constraints=[APART, unlike("links", "main")]),
        [
            *different(links=(1, 2)),
            *(a_device(f"more-{low}", index=low, links=(low, low + 1)) for low in (0, 2)),
        ],
    ),
    "all that violate a constraint, but others cannot but take the first of them": (
        a_claim(
            *(a_request(f"low-{index}", "low") for index in range(LOW)),
            *singles(5),
            all_of(),
            constraints=[APART, alike("index", "all")],
        ),
        different(),
    ),
    "all that violate a constraint, but others need the first of them between them": (
        a_claim(
            *singles(4),
            a_request("left"),
            a_request("right"),
            all_of(),
            constraints=[APART, alike("twin", "left", "right"), alike("index", "all")],
        ),
        [a_device(f"dev-{index}", index=index, twin=max(index, 1)) for index in range(DEVICES)],
    ),
    "a selector that fails on a device that another request cannot but take": (
        a_claim(
            a_request("highest", "highest"),
            *singles(4),
            a_request("failing", "fails on the highest"),
            a_request("none", "none"),
            constraints=[APART],
        ),
        different(),
    ),
}


@pytest.mark.parametrize(("claim", "devices"), [pytest.param(*problem, id=name) for name, problem in REFUSED.items()])
def test_it_is_refused(claim: Any, devices: list[Device]) -> None:
    assert decide(claim, devices) == Refused()


def test_all_that_violate_a_constraint_are_an_error_once_others_have_left_the_first_of_them() -> None:
    claim = a_claim(*singles(4), all_of(), constraints=[APART, alike("index", "all")])
    with pytest.raises(AllocationError, match=r"all devices, but device gpu\.example\.com/pool/dev-1 violates"):
        decide(claim, different())


def test_what_comes_after_all_that_cannot_be_had_is_not_looked_at() -> None:
    claim = a_claim(
        *singles(4),
        all_of(),
        a_request("failing", "fails on the highest"),
        constraints=[APART, alike("index", "all")],
    )
    problem = a_problem(claim, a_slice(*different()), allocated=[a_holder("dev-0")], budget=BUDGET)
    assert solve(problem, **FUNCTIONS) == Refused()


def test_all_are_had_where_others_can_share_what_is_left() -> None:
    claim = a_claim(*singles(4, capacity=memory("20Gi")), all_of(), constraints=[APART])
    answer = decide(claim, shareable())
    assert chosen(answer)[:5] == ["single-0=dev-0", "single-1=dev-1", "single-2=dev-2", "single-3=dev-3", "all=dev-0"]
