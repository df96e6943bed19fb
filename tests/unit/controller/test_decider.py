from typing import Any

import pytest

from controller.allocator import Policy
from controller.decider import Decider
from controller.decision import Code, Leave, Place, Refuse, TakeBack
from dra_driver.api.core_v1 import Pod
from dra_driver.kube.resource import ObjectKey
from tests.support.control import (
    Manifest,
    a_claim,
    a_class,
    a_device,
    a_node,
    a_pod,
    a_slice,
)
from tests.support.control_object import a_state, decide, learn, read


def a_cluster(*manifests: Manifest) -> Decider:
    """Two nodes of two devices, a class of the controller's and one of kube-scheduler's, and more."""
    nodes = [a_node("node-a"), a_node("node-b")]
    slices = [a_slice("node-a", "gpu-0", "gpu-1"), a_slice("node-b", "gpu-0", "gpu-1")]
    return Decider(a_state(a_class(), a_class("nic", labels={}), *nodes, *slices, *manifests))


def allocated(name: str, device: str, *pods: str, node: str = "node-a", **fields: Any) -> Manifest:
    """Build a claim that is allocated, and reserved for Pods."""
    results = [{"request": "r0", "driver": "accel.dra-driver.io", "pool": node, "device": device}]
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]
    allocation = {"devices": {"results": results}, "nodeSelector": {"nodeSelectorTerms": terms}}
    reserved = [{"resource": "pods", "name": pod, "uid": f"uid-{pod}"} for pod in pods]
    return a_claim(name, **fields) | {"status": {"allocation": allocation, "reservedFor": reserved}}


def names(place: object) -> tuple[list[str], list[str], list[str]]:
    """Give the names of the claims that are allocated, reserved and promised."""
    assert isinstance(place, Place), place
    return (
        [claim.metadata.name for claim, _ in place.allocations],
        [claim.metadata.name for claim in place.reservations],
        [claim.metadata.name for claim, _ in place.promises],
    )


@pytest.mark.parametrize(
    "pod",
    [
        a_pod(nodeName="node-a"),
        a_pod(),
        a_pod("pod-1", "nic", gates=()),
        a_pod("pod-1", "claim-1") | {"status": {"phase": "Succeeded"}},
        a_pod("pod-1", "missing", gates=()),
        a_pod("pod-1", "held", gates=()),
    ],
    ids=["bound", "no claims", "kube-scheduler's", "ended", "nothing known, no gate", "all is allocated, no gate"],
)
def test_pods_that_need_nothing_of_the_controller_are_left_alone(pod: Manifest) -> None:
    decider = a_cluster(a_claim(), a_claim("nic", classes=["nic"]), allocated("held", "gpu-0"), pod)
    assert decide(decider) == Leave()


def test_an_ungated_pod_with_an_unallocated_claim_is_served() -> None:
    decider = a_cluster(a_claim(), a_pod("pod-1", "claim-1", gates=()))
    assert names(decide(decider)) == (["claim-1"], [], [])


def test_a_mixture_is_allocated_and_reserved_where_the_allocated_claim_is() -> None:
    decider = a_cluster(a_claim("new"), allocated("old", "gpu-1", node="node-b"), a_pod("pod-1", "new", "old"))
    place = decide(decider)
    assert names(place) == (["new"], ["old"], [])
    assert isinstance(place, Place)
    assert place.node == "node-b"
    assert [result.device for _, each in place.allocations for result in each.devices.results] == ["gpu-0"]


def test_a_pod_whose_claims_are_all_written_only_loses_its_gate() -> None:
    decider = a_cluster(allocated("one", "gpu-0", "pod-1"), a_pod("pod-1", "one"))
    assert decide(decider) == Place("")


def test_what_cannot_be_completed_is_taken_back() -> None:
    part = allocated("one", "gpu-0", "pod-1")
    decider = a_cluster(part, a_claim("two", count=2), a_pod("pod-1", "one", "two"))
    decision = decide(decider)
    assert isinstance(decision, TakeBack)
    assert [claim.metadata.name for claim in decision.claims] == ["one"]


def test_what_a_pod_holds_whose_other_claim_is_gone_is_taken_back() -> None:
    decision = decide(a_cluster(allocated("one", "gpu-0", "pod-1"), a_pod("pod-1", "one", "two")))
    assert isinstance(decision, TakeBack)
    assert decision.because.code is Code.CLAIM_MISSING


@pytest.mark.parametrize("pods", [(), ("other",), ("pod-1", "other")], ids=str)
def test_what_others_use_or_nobody_reserved_is_not_taken_back(pods: tuple[str, ...]) -> None:
    part = allocated("one", "gpu-0", *pods)
    decider = a_cluster(part, a_claim("two", count=2), a_pod("pod-1", "one", "two"))
    decision = decide(decider)
    assert isinstance(decision, Refuse)
    assert decision.code is Code.DEVICES
    assert decision.misfits == {"node-b": "claim default/one is allocated elsewhere"}


def test_avoided_nodes_come_last_and_are_named() -> None:
    decider = a_cluster(a_claim(), a_pod("pod-1", "claim-1", gates=()))
    place = decide(decider, avoided=["node-a"])
    assert isinstance(place, Place)
    assert place.node == "node-b"
    refusal = decide(decider, avoided=["node-a", "node-b"])
    assert isinstance(refusal, Refuse)
    assert refusal.code is Code.NODE
    assert set(refusal.misfits) == {"node-a", "node-b"}


def test_a_claim_of_kube_scheduler_is_promised_a_device_of_its_own() -> None:
    nic = a_slice("node-b", a_device("nic-0", taints=()), driver="nic.example.com")
    network = a_class("network", labels={}, driver="nic.example.com")
    claims = [a_claim(), a_claim("nic", classes=["network"])]
    decider = a_cluster(nic, network, *claims, a_pod("pod-1", "nic", "claim-1"))
    place = decide(decider)
    assert names(place) == (["claim-1"], [], ["nic"])
    assert isinstance(place, Place)
    assert place.node == "node-b"


def test_what_is_promised_to_a_pod_that_is_gone_is_free_again() -> None:
    nic = a_slice("node-b", a_device("nic-0", taints=()), driver="nic.example.com")
    network = a_class("network", labels={}, driver="nic.example.com")
    claims = [a_claim(), a_claim("nic", classes=["network"])]
    decider = a_cluster(nic, network, *claims, a_pod("pod-1", "nic", "claim-1"))
    place = decide(decider)
    assert isinstance(place, Place)
    decider.state.promise(place.promises)
    assert decider.state.foreign.state.whole
    decider.state.set_pod(ObjectKey("default", "pod-1"), None)
    assert not decider.state.foreign.state.whole


def test_a_pod_that_ends_makes_room_as_one_does_that_goes() -> None:
    state = a_cluster(a_pod("pod-1", nodeName="node-a")).state
    pod = read(a_pod("pod-1", nodeName="node-a") | {"status": {"phase": "Succeeded"}}, Pod)
    assert state.set_pod(ObjectKey("default", "pod-1"), pod).may_help
    assert not state.set_pod(ObjectKey("default", "pod-1"), None).may_help


def test_nothing_is_kept_of_what_pods_requested_on_a_node_once_all_are_gone() -> None:
    decider = a_cluster(a_pod("pod-1", nodeName="node-a"), a_pod("pod-2", nodeName="node-a"))
    assert decider.state.requested["node-a"].pods == 2
    for name in ("pod-1", "pod-2"):
        decider.state.set_pod(ObjectKey("default", name), None)
    assert not decider.state.requested


def test_a_pool_of_the_controller_serves_no_claim_of_kube_scheduler() -> None:
    decider = a_cluster(a_claim(), a_claim("theirs", classes=["nic"]), a_pod("pod-1", "claim-1", "theirs"))
    assert isinstance(decide(decider), Refuse)


@pytest.mark.parametrize(
    ("manifests", "code"),
    [
        ([a_claim(), a_pod("pod-1", "claim-1", gates=["dra-driver.io/allocation", "x"])], Code.GATED),
        ([a_pod("pod-1", "missing")], Code.CLAIM_MISSING),
        ([a_claim(classes=["nic"]), a_pod("pod-1", "claim-1")], Code.NOT_OURS),
        ([a_claim(classes=["gone"]), a_pod("pod-1", "claim-1")], Code.CLASS_MISSING),
        ([a_claim(classes=["gpu", "nic"]), a_pod("pod-1", "claim-1")], Code.MIXED),
        ([a_claim(count=3), a_pod("pod-1", "claim-1")], Code.DEVICES),
        ([a_claim(), a_pod("pod-1", "claim-1", nodeSelector={"x": "y"})], Code.NODE),
        ([a_claim(annotations={"dra-driver.io/policy": "x"}), a_pod("pod-1", "claim-1")], Code.INVALID),
        ([a_claim(count=33), a_pod("pod-1", "claim-1")], Code.INVALID),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_refusal_has_a_code(manifests: list[Manifest], code: Code) -> None:
    decision = decide(a_cluster(*manifests))
    assert isinstance(decision, Refuse)
    assert decision.code is code


def test_without_nodes_or_taints_that_is_said() -> None:
    pod = [a_class(), a_claim(), a_pod("pod-1", "claim-1")]
    for manifests, code in (
        ([a_node(labels={}), a_slice("node-a", "gpu-0")], Code.NO_NODE),
        ([a_node(), a_slice("node-a", a_device("gpu-0", taints=()))], Code.NO_TAINT),
    ):
        decision = decide(Decider(a_state(*pod, *manifests)))
        assert isinstance(decision, Refuse)
        assert decision.code is code


def test_what_is_being_written_is_not_given_away_again_until_it_is_known_not_to_be() -> None:
    decider = a_cluster(a_claim("one", count=2), a_claim("two", count=2), a_claim("three", count=2))
    state = decider.state
    for pod, claim in (("pod-1", "one"), ("pod-2", "two"), ("pod-3", "three")):
        learn(state, a_pod(pod, claim))
    for pod in ("pod-1", "pod-2"):
        place = decide(decider, pod)
        assert isinstance(place, Place)
        state.choose(state.pods[ObjectKey("default", pod)], place.node, place.allocations)
    assert isinstance(decide(decider, "pod-3"), Refuse)
    state.land([ObjectKey("default", "one")])
    place = decide(decider, "pod-3")
    assert isinstance(place, Place)
    assert place.node == "node-a"


def test_what_the_watch_shows_replaces_what_was_decided() -> None:
    decider = a_cluster(a_claim("one"), a_pod("pod-1", "one"))
    state = decider.state
    place = decide(decider)
    assert isinstance(place, Place)
    state.choose(state.pods[ObjectKey("default", "pod-1")], place.node, place.allocations)
    learn(state, allocated("one", "gpu-1", "pod-1", node="node-b"))
    assert list(state.own.state.whole) == [("accel.dra-driver.io", "node-b", "gpu-1")]
    assert not state.flights


def test_a_claim_that_was_made_anew_does_not_hold_what_the_old_one_was_to_get() -> None:
    decider = a_cluster(a_claim("one"), a_pod("pod-1", "one"))
    state = decider.state
    place = decide(decider)
    assert isinstance(place, Place)
    state.choose(state.pods[ObjectKey("default", "pod-1")], place.node, place.allocations)
    learn(state, a_claim("one", uid="uid-new"))
    assert not state.own.state.whole


@pytest.mark.parametrize(
    ("of_class", "of_claim", "node"), [("", "", "node-a"), ("spread", "", "node-b"), ("spread", "binpack", "node-a")]
)
def test_the_policy_of_the_claim_counts_before_that_of_the_class_and_that_before_the_default(
    of_class: str, of_claim: str, node: str
) -> None:
    key = "dra-driver.io/policy"
    claim = a_claim(annotations={key: of_claim} if of_claim else {})
    decider = a_cluster(allocated("held", "gpu-0", "x"), claim, a_pod("pod-1", "claim-1"))
    learn(decider.state, a_class(annotations={key: of_class} if of_class else {}))
    decider.policy = Policy.BINPACK
    place = decide(decider)
    assert isinstance(place, Place)
    assert place.node == node
