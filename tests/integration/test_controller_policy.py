"""Where Pods land: by the policy of their claim, of its class, or of the controller."""

import pytest

from tests.support.control import ControlPlane, Manifest, a_claim, a_class, a_device, a_node, a_pod, a_slice
from tests.support.wait import until


def linked(name: str, domain: str) -> Manifest:
    """Build a device of a link domain."""
    return a_device(name, attributes={"linkDomain": {"string": domain}})


async def place(control: ControlPlane, name: str, *, count: int = 1, policy: str = "") -> str:
    """Let a Pod be allocated, and return its node."""
    annotations = {"dra-driver.io/policy": policy} if policy else {}
    control.put(a_claim(name, count=count, annotations=annotations), a_pod(name, name))
    await until(lambda: not control.is_gated(name))
    return control.devices(name)[0].partition("/")[0]


@pytest.mark.parametrize(
    ("policy", "nodes"),
    [
        ("first-fit", ["node-a", "node-a", "node-b", "node-b"]),
        ("binpack", ["node-c", "node-c", "node-c", "node-a"]),
        ("spread", ["node-a", "node-b", "node-c", "node-a"]),
        ("best-fit", ["node-a", "node-a", "node-b", "node-b"]),
    ],
)
async def test_pods_land_where_the_policy_wants_them(control: ControlPlane, policy: str, nodes: list[str]) -> None:
    control.put_cluster(
        node_a=["gpu-0", "gpu-1"], node_b=["gpu-0", "gpu-1"], node_c=["gpu-0", "gpu-1", "gpu-2", "gpu-3"]
    )
    async with control.controller(policy=policy) as run:
        # One device of the largest node is in use.
        control.put(a_node("node-a", unschedulable=True), a_node("node-b", unschedulable=True))
        assert await place(control, "filler") == "node-c"
        control.put(a_node("node-a"), a_node("node-b"))
        await until(lambda: len([node for node in run.controller.state.nodes.values() if node.spec.unschedulable]) == 0)
        assert [await place(control, f"pod-{number}") for number in range(4)] == nodes


async def test_the_annotation_of_a_claim_beats_that_of_its_class_which_beats_the_setting(control: ControlPlane) -> None:
    control.put_cluster(node_a=["gpu-0", "gpu-1", "gpu-2", "gpu-3"], node_b=["gpu-0", "gpu-1", "gpu-2", "gpu-3"])
    async with control.controller(policy="spread"):
        assert [await place(control, name) for name in ("one", "two")] == ["node-a", "node-b"]
        control.put(a_class(annotations={"dra-driver.io/policy": "first-fit"}))
        assert await place(control, "three") == "node-a"
        assert await place(control, "four") == "node-a"
        assert await place(control, "five", policy="spread") == "node-b"


async def test_topology_takes_the_node_with_the_tightest_domain(control: ControlPlane) -> None:
    wide = [linked(f"gpu-{number}", "wide") for number in range(4)]
    split = [linked("gpu-0", "left"), linked("gpu-1", "left"), linked("gpu-2", "right")]
    control.put(a_class(), a_node("node-a"), a_slice("node-a", *wide), a_node("node-b"), a_slice("node-b", *split))
    async with control.controller(policy="topology"):
        assert await place(control, "two", count=2) == "node-b"
        assert control.devices("two") == ["node-b/gpu-0", "node-b/gpu-1"]
        assert await place(control, "three", count=3) == "node-a"
        assert await place(control, "one") == "node-a"
