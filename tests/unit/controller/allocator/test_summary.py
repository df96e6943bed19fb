"""What is said about claims that fit nowhere: one line, true, and the same for the same state."""

from itertools import count
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

from controller.allocator import (
    Allocated,
    AllocationError,
    CelCompiler,
    Problem,
    ReasonCode,
    Refused,
    SelectorCache,
    explain_nodes,
    fits_without,
    summarize,
)
from controller.allocator.cluster import Cluster
from controller.allocator.joining import Joined
from controller.allocator.search import Outcome
from controller.allocator.summary import SIZE_MAX
from dra_driver.api.core_v1 import Node
from dra_driver.api.meta_v1 import ObjectMeta
from dra_driver.api.resource_v1 import ResourceClaim
from tests.support.allocation import (
    DRIVER,
    FakeCompiler,
    a_claim,
    a_class,
    a_device,
    a_holder,
    a_request,
    a_slice,
    a_subrequest,
    devices_of,
)
from tests.support.allocation_strategy import FUNCTIONS, clusters
from tests.support.recount import CONSTRAINT, TALLY, answer_of, check_constraint, check_tally

H100 = f'device.attributes["{DRIVER}"].model == "H100"'
B200 = f'device.attributes["{DRIVER}"].model == "B200"'
TAINTED = {"taints": [{"key": "hot", "value": "x", "effect": "NoSchedule"}]}


def a_cluster(**nodes: Any) -> Cluster:
    """Nodes with a pool each."""
    numbers = count()
    cluster = Cluster(SelectorCache(CelCompiler()), lambda: f"share-{next(numbers)}")
    cluster.set_class(a_class())
    for name, devices in nodes.items():
        cluster.set_node(Node(metadata=ObjectMeta(name=name)))
        cluster.set_slice(a_slice(*devices, pool=name, nodeName=name))
    return cluster


def hold(cluster: Cluster, pool: str, *devices: str) -> None:
    """Give devices away."""
    for device in devices:
        holder = a_holder(device, pool=pool)
        meta = msgspec.structs.replace(holder.metadata, namespace=pool)
        cluster.set_claim(msgspec.structs.replace(holder, metadata=meta))


def three_nodes() -> Cluster:
    """Two nodes of one H100 each, both in use, and one with three A100."""
    cluster = a_cluster(
        a=[a_device("g0", model="H100")], b=[a_device("g0", model="H100")], c=devices_of(3, model="A100")
    )
    hold(cluster, "a", "g0")
    hold(cluster, "b", "g0")
    return cluster


def said(cluster: Cluster, *claims: ResourceClaim, **options: Any) -> str:
    return summarize(cluster.explain(claims, cluster.nodes), **options)


@pytest.mark.parametrize(
    ("requests", "text"),
    [
        ([a_request("gpu", H100)], 'request gpu: 2 of 5 devices match, all in use; 3 have model "A100"'),
        ([a_request("gpu", B200)], 'request gpu: none of 5 devices matches: 3 have model "A100", 2 have model "H100"'),
        (
            [a_request("gpu", count=4)],
            "request gpu: 5 of 5 devices match, 2 in use, 3 free, at most 3 on a node, want 4",
        ),
        (
            [a_request("gpu", H100), a_request("more", count=4)],
            'request gpu: 2 of 5 devices match, all in use; 3 have model "A100"',
        ),
        (
            [a_request("a", count=2), a_request("b", count=2)],
            "2 nodes: request a: 2 of 2 devices match, all in use, want 2; 1 node: would fit without request a",
        ),
        (
            [{"name": "gpu", "firstAvailable": [a_subrequest("h", H100), a_subrequest("b", B200)]}],
            (
                'request gpu: none of 2 alternatives; h: 2 of 5 devices match, all in use; 3 have model "A100"; '
                'b: none of 5 devices matches: 3 have model "A100", 2 have model "H100"'
            ),
        ),
        ([a_request("gpu", deviceClassName="x")], "claim default/claim, request gpu: unknown device class 'x'"),
    ],
    ids=["in use", "none", "too few", "the first", "competing", "alternatives", "error"],
)
def test_the_reason_is_one_line(requests: Any, text: str) -> None:
    assert said(three_nodes(), a_claim(*requests)) == text


def test_a_pool_of_which_more_is_held_than_there_is_has_no_device_free_that_takes_counters() -> None:
    sets = [{"name": name, "counters": {"units": {"value": "3"}}} for name in ("x", "y")]
    takes = {"x1": ("x", "1"), "y1": ("y", "2"), "y2": ("y", "2")}
    devices = [
        a_device(name, {"consumesCounters": [{"counterSet": counters, "counters": {"units": {"value": amount}}}]})
        for name, (counters, amount) in takes.items()
    ]
    numbers = count()
    cluster = Cluster(SelectorCache(CelCompiler()), lambda: f"share-{next(numbers)}")
    cluster.set_class(a_class())
    cluster.set_node(Node(metadata=ObjectMeta(name="a")))
    cluster.set_slice(a_slice(*devices, pool="a", name="devices", of=2, nodeName="a"))
    cluster.set_slice(a_slice(pool="a", name="sets", of=2, nodeName="a", sharedCounters=sets))
    hold(cluster, "a", "y1", "y2")
    assert said(cluster, a_claim(a_request("gpu"))) == (
        "request gpu: 3 of 3 devices match, 2 in use, 1 with counters short (y/units -1, want y/units 0)"
    )


def test_other_nodes_are_counted_by_what_is_in_their_way() -> None:
    misfits = [("d", "unschedulable"), ("e", "cpu: want 4, has 2"), ("f", "unschedulable")]
    assert said(three_nodes(), a_claim(a_request("gpu", H100)), misfits=misfits).endswith(
        '; 3 have model "A100"; 2 nodes: unschedulable; 1 node: cpu: want 4, has 2'
    )
    assert summarize(Joined(0, (), ()), misfits) == "2 nodes: unschedulable; 1 node: cpu: want 4, has 2"
    assert summarize(Joined(0, (), ())) == "there are no nodes"


@pytest.mark.parametrize(
    ("constraint", "far"),
    [
        pytest.param({"matchAttribute": f"{DRIVER}/numa"}, "at most 2 free devices have it in common", id="match"),
        pytest.param({"distinctAttribute": f"{DRIVER}/numa"}, "at most 2 free devices differ in it", id="distinct"),
    ],
)
def test_a_constraint_is_named_with_how_far_devices_are_from_it(constraint: dict[str, str], far: str) -> None:
    devices = [a_device(f"g{index}", numa=index // 2) for index in range(4)]
    claim = a_claim(a_request("gpu", count=3), constraints=[constraint])
    (name,) = constraint
    text = f"would fit without {name} {DRIVER}/numa ({far}, want 3)"
    assert said(a_cluster(a=devices), claim) == text
    cluster = a_cluster(a=devices, b=devices, c=devices[::2])
    hold(cluster, "a", "g0")
    assert said(cluster, claim) == f"1 node: request gpu: 2 of 2 devices match, 2 free, want 3; 2 nodes: {text}"


def test_requests_that_share_a_constraint_are_not_counted() -> None:
    devices = [a_device(f"g{index}", numa=index // 2) for index in range(4)]
    claim = a_claim(a_request("a", count=2), a_request("b"), constraints=[{"matchAttribute": f"{DRIVER}/numa"}])
    assert said(a_cluster(a=devices), claim) == f"would fit without matchAttribute {DRIVER}/numa"


def test_what_devices_lack_is_said_once() -> None:
    memory = {"requestPolicy": {"default": "80Gi", "validRange": {"min": "0", "step": "1Gi"}}, "value": "80Gi"}
    devices = [
        a_device("tainted", TAINTED | {"capacity": {"memory": memory}}),
        a_device("small", {"capacity": {"memory": {"value": "8Gi"}}}),
        a_device("shared", {"capacity": {"memory": memory}, "allowMultipleAllocations": True}),
    ]
    cluster = a_cluster(a=devices)
    cluster.set_claim(a_holder("shared", pool="a", shareID="s", consumedCapacity={"memory": "78Gi"}))
    assert said(cluster, a_claim(a_request("gpu", capacity={"requests": {"memory": "10Gi"}}))) == (
        "request gpu: 2 of 3 devices match, 1 tainted hot=x:NoSchedule, 1 with too little left (memory 2Gi, want "
        "memory 10Gi); 1 is too small (capacity 'memory': want 10Gi, has 8Gi)"
    )


def test_a_device_of_which_nothing_is_left_is_in_use() -> None:
    memory = {"requestPolicy": {"default": "80Gi", "validRange": {"min": "0", "step": "1Gi"}}, "value": "80Gi"}
    shared = {"capacity": {"memory": memory}, "allowMultipleAllocations": True}
    cluster = a_cluster(a=[a_device("full", shared), a_device("part", shared)])
    for device, amount in (("full", "80Gi"), ("part", "8Gi")):
        cluster.set_claim(a_holder(device, pool="a", shareID="s", consumedCapacity={"memory": amount}))
    text = "request gpu: 2 of 2 devices match, 1 in use, 1 with too little left (memory 72Gi, want memory 80Gi)"
    assert said(cluster, a_claim(a_request("gpu"))) == text


def test_what_the_class_does_not_mean_is_said_by_the_name_of_the_class() -> None:
    devices = [a_device(f"g{index}", numa=index, size=index) for index in range(3)]
    cluster = a_cluster(a=devices)
    attributes = f'device.attributes["{DRIVER}"]'
    cluster.set_class(a_class("any", f"{attributes}.numa > 5 || {attributes}.size > 5"))
    text = "request gpu: none of 3 devices matches: all are not of class any"
    assert said(cluster, a_claim(a_request("gpu"))) == text


def test_a_device_that_several_nodes_have_counts_once() -> None:
    cluster = a_cluster(a=(), b=(), c=())
    cluster.set_slice(a_slice(*devices_of(2), pool="shared", allNodes=True))
    hold(cluster, "shared", "dev-0")
    assert said(cluster, a_claim(a_request(count=2))) == (
        "request main: 2 of 2 devices match, 1 in use, 1 free, at most 1 on a node, want 2"
    )


def test_an_error_is_told_from_refusals_and_counted() -> None:
    cluster = a_cluster(a=[a_device("g0", numa=1)], b=[a_device("g0")], c=[a_device("g0")])
    joined = cluster.explain([a_claim(a_request("gpu", f'device.attributes["{DRIVER}"].numa == 2'))], cluster.nodes)
    assert [(reason.code, reason.count) for reason in joined.claims] == [(ReasonCode.CLAIM, 2), (ReasonCode.CLAIM, 1)]
    assert summarize(joined).startswith(f"claim default/claim: selector #0 on device {DRIVER}/b/g0: ")
    assert "no such key: numa; guard it with has(" in summarize(joined)


def test_it_is_short_and_one_line_whatever_users_write() -> None:
    selector = f'{H100} || "\n{"ü" * 2000}" == ""'
    text = said(three_nodes(), a_claim(a_request("gpu", selector)), misfits=[("x", "\r\n" + "é" * 3000)])
    assert len(text.encode()) <= SIZE_MAX
    assert text.isprintable()


def test_thousands_of_nodes_are_examined_by_kind() -> None:
    devices = devices_of(8)
    cluster = a_cluster(**{f"node-{index:04}": devices for index in range(1500)})
    joined = cluster.explain([a_claim(a_request(count=9))], cluster.nodes)
    assert [(kind.node, kind.count) for kind in joined.kinds] == [("node-0000", 1500)]
    assert summarize(joined).startswith("request main: 12000 of 12000 devices match, 12000 free, at most 8 on a node")


def test_nodes_of_too_many_kinds_are_left_out_and_counted() -> None:
    nodes = {f"node-{index:03}": devices_of(1, model=f"M{index}") for index in range(300)}
    joined = a_cluster(**nodes).explain([a_claim(a_request("gpu", H100))], nodes)
    assert len(joined.kinds) + joined.skipped == 300
    assert summarize(joined).startswith("request gpu: none of 256 devices matches: all have another model")
    assert summarize(joined).endswith("44 nodes more: not looked into")
    assert len([*joined.claims[0].walk()]) < 100


@settings(max_examples=60, deadline=None)
@given(clusters())
def test_what_is_said_is_true(problems: list[Problem]) -> None:
    selectors = SelectorCache(FakeCompiler(FUNCTIONS))
    joined = explain_nodes(problems, selectors)
    outcomes = {problem.node.metadata.name: answer_of(problem) for problem in problems}
    if AllocationError in outcomes.values():
        return
    text = summarize(joined)
    assert sum(kind.count for kind in joined.kinds if kind.outcome is Outcome.FOUND) == sum(
        isinstance(outcome, Allocated) for outcome in outcomes.values()
    )
    refusing = [problem for problem in problems if outcomes[problem.node.metadata.name] == Refused()]
    found = TALLY.match(text)
    if found is not None:
        check_tally(refusing, found)
    for found in CONSTRAINT.finditer(text):
        check_constraint(refusing, found)
    for kind in joined.kinds:
        problem = next(problem for problem in problems if problem.node.metadata.name == kind.node)
        if kind.blockers:
            blockers = frozenset(kind.blockers)
            assert fits_without(problem, blockers, selectors)
            for blocker in blockers:
                assert not fits_without(problem, blockers - {blocker}, selectors)


@settings(max_examples=60, deadline=None)
@given(clusters())
def test_the_same_state_gives_the_same_line(problems: list[Problem]) -> None:
    first = problems[0]
    cluster = Cluster(SelectorCache(FakeCompiler(FUNCTIONS)), first.new_share_id)
    for problem in reversed(problems):
        cluster.set_node(problem.node)
    for slice_ in reversed(first.slices):
        cluster.set_slice(slice_)
    for claim in first.allocated:
        holder = msgspec.structs.replace(claim.metadata, namespace=claim.status.allocation.devices.results[0].pool)  # type: ignore[union-attr]
        cluster.set_claim(msgspec.structs.replace(claim, metadata=holder))
    cluster.set_class(first.classes["any"])
    text = summarize(cluster.explain(first.claims, [problem.node.metadata.name for problem in problems]))
    assert text == summarize(explain_nodes(problems, SelectorCache(FakeCompiler(FUNCTIONS))))
    assert text == summarize(explain_nodes(problems[::-1], SelectorCache(FakeCompiler(FUNCTIONS))))
