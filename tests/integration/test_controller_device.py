"""Devices that are allocated, and then vanish or fall ill; nodes, classes and rules that change under way."""

from tests.support.control import TAINT, ControlPlane, a_claim, a_class, a_device, a_node, a_pod, a_slice
from tests.support.wait import until

UNHEALTHY = {"key": "dra-driver.io/unhealthy", "value": "xid-79", "effect": "NoSchedule"}


async def test_an_allocated_device_that_falls_ill_is_told_on_its_claim(control: ControlPlane) -> None:
    control.put_cluster(node_a=["gpu-0", "gpu-1"])
    async with control.controller():
        control.put(a_claim(), a_pod("pod-1", "claim-1"))
        await until(lambda: not control.is_gated())
        control.put(a_slice("node-a", a_device("gpu-0", taints=(TAINT, UNHEALTHY)), "gpu-1"))
        await until(lambda: control.events("claim-1", "DeviceUnhealthy"))
        control.put(a_slice("node-a", "gpu-1"))
        await until(lambda: control.events("claim-1", "DeviceGone"))
    assert control.events("claim-1", "DeviceUnhealthy") == [
        "device node-a/gpu-0: allocated to this claim, and unhealthy: xid-79"
    ]
    assert control.events("claim-1", "DeviceGone") == [
        "device node-a/gpu-0: allocated to this claim, and no longer published"
    ]
    assert control.devices() == ["node-a/gpu-0"]


async def test_a_device_that_is_ill_is_not_given_away(control: ControlPlane) -> None:
    control.put(a_class(), a_node(), a_slice("node-a", a_device("gpu-0", taints=(TAINT, UNHEALTHY)), "gpu-1"))
    async with control.controller():
        control.put(a_claim(), a_pod("pod-1", "claim-1"))
        await until(lambda: not control.is_gated())
    assert control.devices() == ["node-a/gpu-1"]


async def test_a_taint_rule_keeps_devices_back_until_it_is_gone(control: ControlPlane) -> None:
    control.put_cluster(node_a=["gpu-0"])
    rule = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "broken"},
        "spec": {
            "deviceSelector": {"pool": "node-a"},
            "taint": {"key": "x.example.com/broken", "effect": "NoSchedule"},
        },
    }
    control.put(rule)
    async with control.controller():
        control.put(a_claim(), a_pod("pod-1", "claim-1"))
        await until(lambda: control.events("claim-1"))
        control.server.remove("devicetaintrules", "broken")
        await until(lambda: not control.is_gated())


async def test_a_class_that_is_edited_is_what_counts(control: ControlPlane) -> None:
    control.put_cluster(node_a=["gpu-0"])
    control.put(a_class(driver="other.example.com"))
    async with control.controller():
        control.put(a_claim(), a_pod("pod-1", "claim-1"))
        await until(lambda: control.events("claim-1"))
        control.put(a_class())
        await until(lambda: not control.is_gated())


async def test_a_node_that_is_deleted_is_not_chosen(control: ControlPlane) -> None:
    control.put_cluster(node_a=["gpu-0"], node_b=["gpu-0"])
    async with control.controller() as run:
        await run.leading()
        control.server.remove("nodes", "node-a")
        await until(lambda: "node-a" not in run.controller.state.nodes)
        control.put(a_claim(), a_pod("pod-1", "claim-1"))
        await until(lambda: not control.is_gated())
    assert control.devices() == ["node-b/gpu-0"]
