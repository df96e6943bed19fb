"""A cluster that is kept up to date answers as one that is looked at for the first time."""

from dataclasses import replace
from itertools import count
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

from controller.allocator import Allocated, AllocationError, Answer, Features, Refused, SelectorCache, allocate
from controller.allocator.cluster import Cluster, Placed, Unplaced
from dra_driver.api.codec import decode
from dra_driver.api.core_v1 import Node, NodeStatus
from dra_driver.api.meta_v1 import ObjectMeta
from dra_driver.api.resource_v1 import DeviceTaintRule, ResourceClaim
from tests.support.allocation import (
    FakeCompiler,
    a_claim,
    a_class,
    a_device,
    a_holder,
    a_request,
    a_slice,
    chosen,
    devices_of,
)
from tests.support.allocation_strategy import FUNCTIONS, problems


def a_node(name: str) -> Node:
    return Node(metadata=ObjectMeta(name=name, labels={"zone": "a"}))


def a_cluster(*nodes: str, devices: int = 2, compiler: FakeCompiler | None = None) -> Cluster:
    """Nodes with a pool of alike devices each."""
    numbers = count()
    cluster = Cluster(SelectorCache(compiler or FakeCompiler(FUNCTIONS)), lambda: f"share-{next(numbers)}")
    cluster.set_class(a_class())
    for name in nodes:
        cluster.set_node(a_node(name))
        cluster.set_slice(a_slice(*devices_of(devices), pool=name, nodeName=name))
    return cluster


def held(answer: Answer, name: str) -> ResourceClaim:
    """The claim, once it is allocated."""
    assert isinstance(answer, Allocated)
    claim = a_claim(a_request(), name=name)
    return msgspec.structs.replace(claim, status=msgspec.structs.replace(claim.status, allocation=answer.results[0]))


def test_what_is_allocated_is_taken_until_it_is_released() -> None:
    cluster = a_cluster("node-a", devices=1)
    claim = a_claim(a_request())
    answer = cluster.allocate([claim], "node-a")
    cluster.set_claim(held(answer, "one"))
    assert cluster.allocate([claim], "node-a") == Refused()
    cluster.set_claim(held(answer, "one"))
    cluster.remove_claim("default/one")
    assert chosen(cluster.allocate([claim], "node-a")) == ["main=dev-0"]


def test_slices_come_change_and_go() -> None:
    cluster = a_cluster("node-a", devices=1)
    claim = a_claim(a_request(count=2))
    assert cluster.allocate([claim], "node-a") == Refused()
    cluster.set_slice(a_slice(*devices_of(2), pool="node-a"))
    assert chosen(cluster.allocate([claim], "node-a")) == ["main=dev-0", "main=dev-1"]
    cluster.remove_slice("slice-node-a")
    assert cluster.allocate([claim], "node-a") == Refused()


def test_a_newer_generation_elsewhere_ends_a_pool() -> None:
    cluster = a_cluster("node-a", "node-b")
    cluster.set_slice(a_slice(a_device("old"), pool="moving", name="old", of=2))
    cluster.set_slice(a_slice(a_device("more"), pool="moving", name="more", of=2, nodeName="node-b"))
    claim = a_claim(a_request(count=3))
    assert chosen(cluster.allocate([claim], "node-a"))[0] == "main=old"
    cluster.set_slice(a_slice(a_device("new"), pool="moving", name="new", generation=2, nodeName="node-b"))
    assert cluster.allocate([claim], "node-a") == Refused()


def test_a_pool_is_back_once_a_newer_generation_elsewhere_is_gone() -> None:
    cluster = a_cluster("node-a", "node-b")
    cluster.set_slice(a_slice(a_device("old"), pool="moving", name="old"))
    cluster.set_slice(a_slice(pool="moving", name="new", generation=2, of=2, nodeName="node-b"))
    cluster.set_slice(a_slice(a_device("old"), pool="moving", name="old", of=2))
    claim = a_claim(a_request(count=3))
    assert cluster.allocate([claim], "node-a") == Refused()
    cluster.set_slice(a_slice(pool="moving", name="new", generation=1, of=2, nodeName="node-b"))
    assert chosen(cluster.allocate([claim], "node-a"))[0] == "main=old"


def test_a_node_that_learns_to_skip_operations_is_looked_at_again() -> None:
    cluster = Cluster(SelectorCache(FakeCompiler()), lambda: "share", features=Features(optional_node_operations=True))
    cluster.set_class(a_class())
    cluster.set_node(a_node("node-a"))
    cluster.set_slice(a_slice(*devices_of(1), pool="node-a", skipNodeOperations=["*"]))
    claims = [a_claim(a_request())]
    assert cluster.place(claims, ["node-a"]) == Unplaced(tried=1)
    status = NodeStatus(declared_features=("DRAOptionalNodeOperations",))
    cluster.set_node(msgspec.structs.replace(a_node("node-a"), status=status))
    placed = cluster.place(claims, ["node-a"])
    assert isinstance(placed, Placed)


def test_taint_rules_come_and_go() -> None:
    cluster = a_cluster("node-a", devices=1)
    spec = {"deviceSelector": {}, "taint": {"key": "drain", "effect": "NoSchedule"}}
    cluster.set_taint_rule(decode(msgspec.json.encode({"metadata": {"name": "drain"}, "spec": spec}), DeviceTaintRule))
    claim = a_claim(a_request())
    assert cluster.allocate([claim], "node-a") == Refused()
    cluster.remove_taint_rule("drain")
    assert chosen(cluster.allocate([claim], "node-a")) == ["main=dev-0"]


def test_selectors_are_not_evaluated_again_for_one_more_claim() -> None:
    compiler = FakeCompiler({"yes": lambda _: True})
    cluster = a_cluster("node-a", devices=3, compiler=compiler)
    for number in range(3):
        cluster.set_claim(held(cluster.allocate([a_claim(a_request("main", "yes"))], "node-a"), f"claim-{number}"))
    assert compiler.calls == {"yes": 3}


def test_a_claim_is_placed_on_the_first_node_that_fits() -> None:
    cluster = a_cluster("node-a", "node-b")
    claims = [a_claim(a_request(count=2))]
    first = cluster.place(claims, ["node-b", "node-a"])
    assert isinstance(first, Placed)
    assert first.node == "node-b"
    cluster.set_claim(held(first.answer, "one"))
    second = cluster.place(claims, ["node-b", "node-a"])
    assert isinstance(second, Placed)
    assert second.node == "node-a"


def test_of_nodes_that_look_alike_one_is_tried() -> None:
    names = [f"node-{index}" for index in range(20)]
    cluster = a_cluster(*names)
    claims = [a_claim(a_request(count=3))]
    assert cluster.place(claims, names) == Unplaced(tried=1)
    cluster.set_claim(a_holder("dev-0", pool="node-3"))
    assert cluster.place(claims, names) == Unplaced(tried=1)
    assert cluster.place(claims, names) == Unplaced(tried=0)


def test_an_invalid_pool_only_rules_its_node_out() -> None:
    cluster = a_cluster("node-a", "node-b")
    cluster.set_slice(a_slice(a_device("x"), a_device("x"), pool="node-a"))
    placed = cluster.place([a_claim(a_request())], ["node-a", "node-b"])
    assert isinstance(placed, Placed)
    assert placed.node == "node-b"
    nowhere = cluster.place([a_claim(a_request(count=9))], ["node-a", "node-b"])
    assert isinstance(nowhere, Unplaced)
    assert list(nowhere.errors) == ["node-a"]


def test_an_error_of_the_claim_ends_the_search() -> None:
    cluster = a_cluster("node-a", "node-b")
    with pytest.raises(AllocationError, match="unknown device class"):
        cluster.place([a_claim(a_request(deviceClassName="none"))], ["node-a", "node-b"])


@settings(max_examples=100, deadline=None)
@given(problems())
def test_it_answers_as_if_it_saw_everything_for_the_first_time(problem: Any) -> None:
    cluster = Cluster(SelectorCache(FakeCompiler(FUNCTIONS)), problem.new_share_id, features=problem.features)
    cluster.set_node(problem.node)
    cluster.set_class(problem.classes["any"])
    cluster.set_slice(a_slice(a_device("gone"), name="gone"))
    for claim in problem.allocated:
        cluster.set_claim(claim)
    for slice_ in problem.slices:
        cluster.set_slice(slice_)
    cluster.remove_slice("gone")
    assert _outcome(lambda: cluster.allocate(problem.claims, "node-a")) == _outcome(
        lambda: allocate(problem, SelectorCache(FakeCompiler(FUNCTIONS)))
    )


@settings(max_examples=100, deadline=None)
@given(problems())
def test_asked_again_it_answers_what_is_true_now(problem: Any) -> None:
    cluster = Cluster(SelectorCache(FakeCompiler(FUNCTIONS)), problem.new_share_id, features=problem.features)
    cluster.set_node(problem.node)
    cluster.set_class(problem.classes["any"])
    for slice_ in problem.slices:
        cluster.set_slice(slice_)
    devices = [device.name for slice_ in problem.slices for device in slice_.spec.devices]
    for held in ([], devices[:1], devices, devices[1:], []):
        holders = [a_holder(name) for name in held]
        for claim in holders:
            cluster.set_claim(claim)
        now = replace(problem, allocated=holders)
        assert _outcome(lambda: cluster.allocate(problem.claims, "node-a")) == _outcome(
            lambda now=now: allocate(now, SelectorCache(FakeCompiler(FUNCTIONS)))
        )
        for claim in holders:
            cluster.remove_claim(f"{claim.metadata.namespace}/{claim.metadata.name}")


def test_errors_name_the_claim_that_asks_and_not_one_like_it() -> None:
    cluster = a_cluster("node-a")
    with pytest.raises(AllocationError, match="claim default/one: selector #0"):
        cluster.allocate([a_claim(a_request("main", "fails"), name="one")], "node-a")
    with pytest.raises(AllocationError, match="claim default/two: selector #0"):
        cluster.allocate([a_claim(a_request("main", "fails"), name="two")], "node-a")


def test_what_changed_long_ago_is_known_all_the_same() -> None:
    cluster = a_cluster("node-a", devices=4)
    claim = a_claim(a_request())
    assert chosen(cluster.allocate([claim], "node-a")) == ["main=dev-0"]
    cluster.set_claim(a_holder("dev-0", pool="node-a"))
    for number in range(5001):
        cluster.set_claim(a_holder("elsewhere", pool=f"pool-{number % 7}"))
    assert chosen(cluster.allocate([claim], "node-a")) == ["main=dev-1"]


def _outcome(run: Any) -> Any:
    try:
        answer = run()
    except AllocationError as error:
        return error.error_class
    return chosen(answer) if isinstance(answer, Allocated) else answer
