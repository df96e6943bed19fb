import asyncio

from controller.allocator import Policy
from controller.decision import Code, Refuse
from controller.effort import Effort
from controller.state import State
from dra_driver.kube.resource import ObjectKey
from tests.support.control import a_claim, a_class, a_node, a_pod, a_slice
from tests.support.control_object import a_state, learn
from tests.support.kube import running
from tests.support.wait import until

KEY = ObjectKey("default", "pod-1")


def a_cluster() -> State:
    """Two nodes of one device each, and a Pod that wants one."""
    nodes = [a_node("node-a"), a_node("node-b")]
    slices = [a_slice("node-a", "gpu-0"), a_slice("node-b", "gpu-0")]
    return a_state(a_class(), *nodes, *slices, a_claim(), a_pod("pod-1", "claim-1"))


def undecided(state: State, *nodes: str) -> Refuse:
    return Refuse(Code.UNDECIDED, "", (state.claims[ObjectKey("default", "claim-1")],), undecided=nodes)


async def test_a_node_that_went_meanwhile_is_passed_over() -> None:
    state, found = a_cluster(), asyncio.Event()
    effort = Effort(state, Policy.FIRST_FIT, 1000, lambda _: found.set())
    refusal = undecided(state, "node-a", "node-b")
    state.set_node("node-a", None)
    async with running(effort.run()):
        effort.add(state.pods[KEY], refusal)
        await until(found.is_set)
    assert effort.hints[KEY].node == "node-b"


def test_what_was_found_before_a_change_is_told_from_what_is_now() -> None:
    state = a_cluster()
    versions = [state.version_of("node-a")]
    for change in (a_class(), a_slice("node-a", "gpu-1")):
        learn(state, change)
        versions.append(state.version_of("node-a"))
    assert len(set(versions)) == len(versions)
    assert state.version_of("node-a") == state.version_of("node-a")
    assert state.version_of("node-c") is None
