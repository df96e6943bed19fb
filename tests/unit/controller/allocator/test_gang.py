"""Several Pods are placed together or not at all."""

from itertools import count
from typing import Any

from controller.allocator import SelectorCache
from controller.allocator.cluster import Cluster
from controller.allocator.gang import Gathered, Member, Scattered, gather
from dra_driver.api.core_v1 import Node
from dra_driver.api.meta_v1 import ObjectMeta
from tests.support.allocation import FakeCompiler, a_claim, a_class, a_device, a_request, a_slice, devices_of

FUNCTIONS = {"first": lambda candidate: candidate.id[2] == "dev-0"}


def a_cluster(**devices: int) -> Cluster:
    """Nodes by name with so many devices each."""
    numbers = count()
    cluster = Cluster(SelectorCache(FakeCompiler(FUNCTIONS)), lambda: f"share-{next(numbers)}")
    cluster.set_class(a_class())
    for name, size in devices.items():
        cluster.set_node(Node(metadata=ObjectMeta(name=name)))
        cluster.set_slice(a_slice(*devices_of(size), pool=name, nodeName=name))
    return cluster


def members(*counts: int, nodes: tuple[str, ...] = ("a", "b")) -> dict[str, Any]:
    """Pods with one claim of so many devices each."""
    claims = [a_claim(a_request(count=size), name=f"claim-{index}") for index, size in enumerate(counts)]
    pods = [Member(f"pod-{index}", frozenset([index]), nodes) for index in range(len(counts))]
    return {"claims": claims, "members": pods}


def devices(found: Gathered | Scattered) -> list[list[str]]:
    assert isinstance(found, Gathered)
    return [[f"{result.pool}/{result.device}" for result in each.devices.results] for each in found.results]


def test_each_pod_gets_a_node_and_each_claim_devices_of_it() -> None:
    found = gather(a_cluster(a=2, b=2), **members(2, 2))
    assert isinstance(found, Gathered)
    assert found.nodes == {"pod-0": "a", "pod-1": "b"}
    assert devices(found) == [["a/dev-0", "a/dev-1"], ["b/dev-0", "b/dev-1"]]


def test_a_pod_moves_to_make_room_for_another() -> None:
    found = gather(a_cluster(a=2, b=1), **members(1, 2))
    assert isinstance(found, Gathered)
    assert found.nodes == {"pod-0": "b", "pod-1": "a"}


def test_all_or_none() -> None:
    assert gather(a_cluster(a=2, b=2), **members(2, 2, 1)) == Scattered(is_certain=True)


def test_many_alike_pods_that_do_not_fit_are_refused_soon() -> None:
    names = tuple(f"n{index}" for index in range(8))
    cluster = a_cluster(**dict.fromkeys(names, 8))
    assert gather(cluster, **members(*([8] * 9), nodes=names)) == Scattered(is_certain=True)


def test_pods_that_share_a_claim_go_to_one_node() -> None:
    claims = [a_claim(a_request(), name=name) for name in ("own", "shared", "other")]
    pods = [Member("one", frozenset([0, 1]), ("a", "b")), Member("two", frozenset([1, 2]), ("b", "a"))]
    found = gather(a_cluster(a=2, b=3), claims, pods)
    assert isinstance(found, Gathered)
    assert found.nodes == {"one": "b", "two": "b"}


def test_devices_that_several_nodes_reach_are_given_out_once_and_varied() -> None:
    cluster = a_cluster(a=0, b=0)
    everywhere, of_b = {"allNodes": True}, {"nodeName": "b"}
    shared = [a_device("dev-0", everywhere), a_device("dev-1", everywhere), a_device("dev-2", of_b)]
    cluster.set_slice(a_slice(*shared, pool="shared", perDeviceNodeSelection=True))
    claims = [a_claim(a_request(), name="any"), a_claim(a_request("main", "first"), name="first")]
    pods = [Member("any", frozenset([0]), ("a",)), Member("first", frozenset([1]), ("b",))]
    assert devices(gather(cluster, claims, pods)) == [["shared/dev-1"], ["shared/dev-0"]]
    assert not cluster.state.whole


def test_giving_up_is_told() -> None:
    assert gather(a_cluster(a=2, b=2), **members(2, 2, 1), budget=0) == Scattered(is_certain=False)
