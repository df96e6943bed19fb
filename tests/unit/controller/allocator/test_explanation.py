"""Why claims do not fit: a tree of reasons, and blockers of which none is too many."""

from typing import Any

import pytest
from hypothesis import given, settings

from controller.allocator import AllocationError, ErrorClass, Refused, SelectorCache, allocate
from controller.allocator.blocker import Blocker, BlockerCode
from controller.allocator.explanation import Explanation, explain, fits_without
from controller.allocator.reason import Reason, ReasonCode
from tests.support.allocation import (
    DRIVER,
    FakeCompiler,
    a_claim,
    a_class,
    a_device,
    a_holder,
    a_problem,
    a_request,
    a_slice,
    a_subrequest,
    devices_of,
)
from tests.support.allocation_strategy import FUNCTIONS, problems

NUMA = f'device.attributes["{DRIVER}"].numa'
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


@pytest.mark.parametrize(
    ("request_", "error", "path", "leaves"),
    [
        pytest.param(
            a_request("main", 'device.attribute["x"].y == 1'),
            ErrorClass.COMPILE,
            "default/claim/main",
            {
                (
                    ReasonCode.COMPILE,
                    "claim default/claim: selector #0",
                    "line 1 column 7: device.attribute: no such field",
                    "did you mean 'attributes'?",
                )
            },
            id="compile",
        ),
        pytest.param(
            {"name": "main", "firstAvailable": [a_subrequest("sub", f"{NUMA} == 1")]},
            ErrorClass.RUNTIME,
            "default/claim/main/sub",
            {
                (
                    ReasonCode.ERROR,
                    f"claim default/claim: selector #0 on device {DRIVER}/pool/dev-0",
                    f"'{NUMA} == 1': no such key: numa",
                    f"guard it with has({NUMA}) && …, or read {NUMA.replace('numa', '?numa')}.orValue(…)",
                )
            },
            id="run time",
        ),
        pytest.param(
            a_request(count=33),
            ErrorClass.LIMIT,
            "default/claim/main",
            {
                (
                    ReasonCode.LIMIT,
                    "claim default/claim, request main",
                    "33 devices are too many with 0 before them",
                    "want at most 32 in a claim",
                )
            },
            id="limit",
        ),
        pytest.param(
            a_request(deviceClassName="ani"),
            ErrorClass.OTHER,
            "default/claim/main",
            {
                (
                    ReasonCode.MALFORMED,
                    "claim default/claim, request main",
                    "unknown device class 'ani'",
                    "did you mean 'any'?",
                )
            },
            id="class",
        ),
    ],
)
def test_an_error_has_a_tree_too(request_: Any, error: ErrorClass, path: str, leaves: set[Any]) -> None:
    explanation = explain(a_problem(a_claim(request_), a_slice(*devices_of(1))))
    assert (explanation.error, explanation.blockers) == (error, ())
    (claim,) = explanation.claims
    assert (claim.code, claim.subject) == (ReasonCode.CLAIM, "default/claim")
    (request,) = claim.children
    assert (request.code, request.subject) == (ReasonCode.REQUEST_ERROR, path)
    assert {(leaf.code, leaf.subject, leaf.seen, leaf.wanted) for leaf in request.children} == leaves


def test_all_devices_of_an_incomplete_pool_are_an_error() -> None:
    claim = a_claim(a_request(allocationMode="All"))
    explanation = explained(a_problem(claim, a_slice(a_device("dev"), of=2)))
    assert explanation.error is ErrorClass.INCOMPLETE
    assert explanation.claims[0].children[0].children == (
        Reason(
            ReasonCode.POOL_INCOMPLETE,
            "claim default/claim, request main",
            f"asks for all devices, but pool {DRIVER}/pool is being updated",
            "want all slices of its newest generation",
        ),
    )


def test_an_error_of_a_class_is_about_the_request_that_uses_it() -> None:
    problem = a_problem(a_claim(a_request()), a_slice(*devices_of(1)), classes={"any": a_class("any", "1 +")})
    (claim,) = explain(problem).claims
    assert claim.children[0].subject == "default/claim/main"
    assert claim.children[0].children[0].subject == "class any: selector #0"


def test_an_error_of_no_claim_stands_by_itself() -> None:
    selector = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Near", "values": ["a"]}]}]}
    explanation = explained(a_problem(a_claim(a_request()), a_slice(*devices_of(1), nodeSelector=selector)))
    assert explanation.error is ErrorClass.OTHER
    (reason,) = explanation.claims
    assert (reason.code, reason.subject, reason.children) == (ReasonCode.MALFORMED, "slice slice-pool", ())


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
