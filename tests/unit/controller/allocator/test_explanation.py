"""Why claims do not fit: a tree of reasons, and blockers of which none is too many."""

from typing import Any

import pytest
from hypothesis import given, settings

from controller.allocator import AllocationError, Refused, SelectorCache, allocate
from controller.allocator.blocker import Blocker, BlockerCode
from controller.allocator.explanation import Explanation, explain, fits_without
from controller.allocator.reason import Reason, ReasonCode
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
    devices_of,
)
from tests.support.allocation_strategy import FUNCTIONS, problems

TAINTED = {"taints": [{"key": "hot", "value": "x", "effect": "NoSchedule"}]}


def explained(problem: Any, **functions: Any) -> Explanation:
    return explain(problem, SelectorCache(FakeCompiler(functions)))


def reasons(explanation: Explanation) -> set[tuple[ReasonCode, str, str, str]]:
    return {
        (reason.code, reason.subject, reason.seen, reason.wanted)
        for claim in explanation.claims
        for reason in claim.walk()
    }


def test_each_device_has_its_reason_with_what_was_seen_and_wanted() -> None:
    policy = {"default": "80Gi", "validRange": {"min": "0", "step": "1Gi"}}
    memory = {"memory": {"value": "80Gi", "requestPolicy": policy}}
    devices = [
        a_device("used", {"capacity": memory}),
        a_device("tainted", TAINTED | {"capacity": memory}),
        a_device("small", {"capacity": {"memory": {"value": "8Gi"}}}),
        a_device("shared", {"capacity": memory, "allowMultipleAllocations": True}),
        a_device("other", {"capacity": memory}, model="A"),
    ]
    held = [a_holder("used"), a_holder("shared", shareID="share", consumedCapacity={"memory": "78Gi"})]
    claim = a_claim(a_request("main", "right", capacity={"requests": {"memory": "10Gi"}}))
    explanation = explained(
        a_problem(claim, a_slice(*devices), allocated=held), right=lambda candidate: candidate.id[2] != "other"
    )
    assert reasons(explanation) == {
        (ReasonCode.CLAIM, "default/claim", "", ""),
        (ReasonCode.TOO_FEW_DEVICES, "default/claim/main", "0", "1"),
        (ReasonCode.IN_USE, f"{DRIVER}/pool/used", "", ""),
        (ReasonCode.TAINT, f"{DRIVER}/pool/tainted", "hot=x:NoSchedule", "a toleration"),
        (ReasonCode.CAPACITY, f"{DRIVER}/pool/small", "capacity 'memory': want 10Gi, has 8Gi", "memory 10Gi"),
        (ReasonCode.ROOM, f"{DRIVER}/pool/shared", "memory 2Gi", "memory 10Gi"),
        (ReasonCode.REQUEST_SELECTOR, f"{DRIVER}/pool/other", "false", "right"),
    }
    assert explanation.blockers == (Blocker(BlockerCode.IN_USE, device=f"{DRIVER}/pool/shared"),)


@pytest.mark.parametrize(
    ("problem", "blockers"),
    [
        pytest.param(
            a_problem(a_claim(a_request()), a_slice(a_device("dev", TAINTED)), allocated=[a_holder("dev")]),
            {
                Blocker(BlockerCode.IN_USE, device=f"{DRIVER}/pool/dev"),
                Blocker(BlockerCode.TAINT, "default/claim/main", f"{DRIVER}/pool/dev"),
            },
            id="in use and tainted",
        ),
        pytest.param(
            a_problem(a_claim(a_request(count=3)), a_slice(*devices_of(2))),
            {Blocker(BlockerCode.REQUEST, "default/claim/main")},
            id="more than there is",
        ),
        pytest.param(
            a_problem(
                a_claim(a_request(count=2), constraints=[{"matchAttribute": f"{DRIVER}/numa"}]),
                a_slice(a_device("a", numa=0), a_device("b", numa=1)),
            ),
            {Blocker(BlockerCode.CONSTRAINT, "default/claim", constraint=0)},
            id="constraint",
        ),
        pytest.param(
            a_problem(a_claim(a_request()), a_slice(a_device("dev"), of=2)),
            {Blocker(BlockerCode.POOL_INCOMPLETE, pool=f"{DRIVER}/pool")},
            id="incomplete pool",
        ),
    ],
)
def test_blockers_are_what_a_person_would_remove(problem: Any, blockers: set[Blocker]) -> None:
    assert set(explained(problem).blockers) == blockers


def test_alternatives_have_reasons_of_their_own() -> None:
    request = {"name": "main", "firstAvailable": [a_subrequest("two", count=2), a_subrequest("one", "never")]}
    (claim,) = explained(a_problem(a_claim(request), a_slice(*devices_of(1))), never=lambda _: False).claims
    (main,) = claim.children
    assert main.code is ReasonCode.NO_ALTERNATIVE
    assert [(child.subject, child.code) for child in main.children] == [
        ("default/claim/main/two", ReasonCode.TOO_FEW_DEVICES),
        ("default/claim/main/one", ReasonCode.TOO_FEW_DEVICES),
    ]


def test_what_fits_has_no_reasons() -> None:
    assert explained(a_problem(a_claim(a_request()), a_slice(*devices_of(1)))) == Explanation("node-a", (), ())


@settings(max_examples=150, deadline=None)
@given(problems())
def test_blockers_are_irreducible(problem: Any) -> None:
    selectors = SelectorCache(FakeCompiler(FUNCTIONS))
    try:
        answer = allocate(problem, selectors)
    except AllocationError:
        return
    if answer != Refused():
        return
    blockers = frozenset(explain(problem, selectors).blockers)
    assert fits_without(problem, blockers, selectors)
    for blocker in blockers:
        assert not fits_without(problem, blockers - {blocker}, selectors)


def test_a_tree_can_be_walked() -> None:
    leaf = Reason(ReasonCode.IN_USE, "dev")
    assert [reason.subject for reason in Reason(ReasonCode.CLAIM, "claim", children=(leaf,)).walk()] == ["claim", "dev"]
