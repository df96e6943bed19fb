from random import Random
from typing import Any

import pytest

from controller.allocator import Policy
from controller.node_order import measure_node, order_nodes
from controller.ranking import Ranking
from controller.state import State
from dra_driver.kube.resource import ObjectKey
from tests.support.control import DRIVER, Manifest, a_claim, a_class, a_device, a_node, a_slice
from tests.support.control_object import a_state, learn

NODES = ("node-a", "node-b", "node-c")
POOLS = (*NODES, "shared")
DEVICES = ("gpu-0", "gpu-1")


def holder(device: str, pool: str = "node-a", **result: Any) -> Manifest:
    """Build a claim that holds a device."""
    results = [{"request": "r0", "driver": DRIVER, "pool": pool, "device": device} | result]
    return a_claim(f"{pool}-{device}") | {"status": {"allocation": {"devices": {"results": results}}}}


def test_a_ranking_follows_what_is_allocated_and_which_nodes_there_are() -> None:
    state = a_state(a_class(), *(a_node(name) for name in ("node-a", "node-b")))
    for name in ("node-a", "node-b"):
        learn(state, a_slice(name, "gpu-0", "gpu-1"))
    ranking = Ranking(state)
    assert ranking.order(Policy.BINPACK, 1) == ["node-a", "node-b"]
    key = learn(state, holder("gpu-0", "node-b"))
    assert ranking.order(Policy.BINPACK, 1) == ["node-b", "node-a"]
    state.set_claim(key, None)
    assert ranking.order(Policy.BINPACK, 1) == ["node-a", "node-b"]
    state.set_node("node-a", None)
    assert ranking.order(Policy.SPREAD, 1) == ["node-b"]
    assert ranking.order(Policy.FIRST_FIT, 1) == ["node-b"]


def test_what_nobody_took_note_of_is_measured_anew() -> None:
    state = a_state(a_class(), *(a_node(name) for name in ("node-a", "node-b")))
    for name in ("node-a", "node-b"):
        learn(state, a_slice(name, "gpu-0"))
    ranking = Ranking(state)
    assert ranking.order(Policy.BINPACK, 1) == ["node-a", "node-b"]
    learn(state, holder("gpu-0", "node-b"))
    state.set_node("node-c", None)
    state.forget_changes()
    assert (state.changed_pools, state.touched_pools, state.touched_nodes) == (set(), set(), set())
    assert ranking.order(Policy.BINPACK, 1) == ["node-b", "node-a"]


def test_what_changes_while_nodes_are_measured_counts() -> None:
    state = a_state(a_class(), *(a_node(f"node-{number:02}") for number in range(20)))
    for number in range(20):
        learn(state, a_slice(f"node-{number:02}", "gpu-0"))
    ranking = Ranking(state)
    steps = ranking.measure(Policy.BINPACK)
    next(steps)
    learn(state, holder("gpu-0", "node-05"))
    state.set_node("node-19", None)
    list(steps)
    names = ranking.order(Policy.BINPACK, 1)
    assert (names[0], len(names)) == ("node-05", 19)


@pytest.mark.parametrize("seed", range(50))
def test_a_ranking_is_always_that_of_one_who_looks_anew(seed: int) -> None:
    random, state = Random(seed), a_state(a_class())
    ranking = Ranking(state)
    for _ in range(60):
        change(state, random)
        if random.random() < 0.5:
            policy = random.choice(list(Policy))
            anew = {name: measure_node(state.own, name) for name in state.own.nodes}
            assert ranking.order(policy, 1) == order_nodes(anew, policy, 1)


def change(state: State, random: Random) -> None:
    """Let something happen: to a node, to a slice of its own or of a pool of all nodes, or to a claim."""
    node, pool, device = random.choice(NODES), random.choice(POOLS), random.choice(DEVICES)
    match random.randrange(7):
        case 0:
            state.set_node(node, None)
        case 1 | 2:
            learn(state, a_node(node, labels=random.choice([{"dra-driver.io/allocator": "controller"}, {}])))
        case 3 | 4:
            learn(state, a_random_slice(node, pool, random))
        case 5:
            state.set_slice(random.choice([f"{node}-{DRIVER}", f"{node}-{pool}"]), None)
        case _:
            key = learn(state, holder(device, pool))
            if random.random() < 0.4:
                state.set_claim(ObjectKey(key.namespace, key.name), None)


def a_random_slice(node: str, pool: str, random: Random) -> Manifest:
    """Build a slice of any generation, for its node or for all, that is the controller's or not."""
    names = random.sample(DEVICES, random.randint(1, 2))
    devices = [name if random.random() < 0.9 else a_device(name, taints=()) for name in names]
    count = random.choice([1, 1, 2])
    manifest = a_slice(node, *devices, name=pool, generation=random.choice([1, 1, 2]), resourceSliceCount=count)
    manifest["metadata"]["name"] = f"{node}-{pool}"
    if random.random() < 0.2:
        del manifest["spec"]["nodeName"]
        manifest["spec"]["allNodes"] = True
    return manifest
