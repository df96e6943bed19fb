"""What people are told: the reason why a Pod waits, on the Pod and on its claims, once, and anew when it changes."""

from dataclasses import replace
from functools import partial

from controller.metric import PodState
from controller.teller import Patience
from tests.support.control import (
    QUICK,
    ControlPlane,
    Manifest,
    Running,
    a_claim,
    a_class,
    a_device,
    a_node,
    a_pod,
    a_slice,
)
from tests.support.wait import until


def unschedulable(pod: Manifest) -> Manifest:
    """Say of a Pod that kube-scheduler found no node for it."""
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
    return pod | {"status": {"phase": "Pending", "conditions": [condition]}}


def has_more_refusals(run: Running, than: float) -> bool:
    return run.value("refusals_total", reason="DevicesDoNotFit") > than


async def test_the_reason_changes_with_what_is_true(control: ControlPlane) -> None:
    control.put_cluster(node_a=["gpu-0"], node_b=["gpu-0"])
    async with control.controller():
        control.put(a_claim(count=2), a_pod("pod-1", "claim-1"))
        await until(lambda: len(control.events("claim-1")) == 1)
        control.put(a_node("node-b", unschedulable=True))
        await until(lambda: len(control.events("claim-1")) == 2)
        control.put(a_slice("node-a", "gpu-0", "gpu-1"))
        await until(lambda: not control.is_gated())
    assert control.events("claim-1") == control.events("pod-1")
    assert control.events("claim-1") == [
        "request r0: 1 of 1 device matches, 1 free, want 2; 1 node: is unschedulable, want a schedulable one",
        "request r0: 2 of 2 devices match, 2 free, at most 1 on a node, want 2",
    ]


async def test_the_same_reason_is_told_once(control: ControlPlane) -> None:
    control.put_cluster(node_a=["gpu-0"])
    async with control.controller() as run:
        control.put(a_claim(count=2), a_pod("pod-1", "claim-1"))
        await until(lambda: control.events("claim-1"))
        for number in range(3):
            refusals = run.value("refusals_total", reason="DevicesDoNotFit")
            node = a_node()
            node["metadata"]["labels"]["round"] = str(number)
            control.put(node)
            await until(partial(has_more_refusals, run, refusals))
        # What comes after is told; so what came before would have been.
        control.put(a_slice("node-a", a_device("gpu-0", taints=())))
        await until(lambda: len(control.events("claim-1")) == 2)
    counts = [event["count"] for event in control.server.all("events")]
    assert set(counts) == {1}


async def test_a_reason_that_passes_at_once_is_not_told(control: ControlPlane) -> None:
    control.put_cluster(node_a=["gpu-0"])
    pace = replace(QUICK, teller=Patience(refused_s=30.0))
    async with control.controller(pace) as run:
        control.put(a_claim(count=2), a_pod("pod-1", "claim-1"))
        await until(lambda: run.controller.leader.queue.sizes()[PodState.REFUSED])
        control.put(a_slice("node-a", "gpu-0", "gpu-1"))
        await until(lambda: not control.is_gated())
    assert control.events("claim-1") == []


async def test_a_class_that_does_not_exist_is_named(control: ControlPlane) -> None:
    control.put_cluster(node_a=["gpu-0"])
    async with control.controller():
        control.put(a_claim(classes=["gpo"]), a_pod("pod-1", "claim-1"))
        await until(lambda: control.events("claim-1"))
        assert control.events("claim-1") == ["claim default/claim-1: class 'gpo' does not exist"]
        control.put(a_class("gpo"))
        await until(lambda: not control.is_gated())


async def test_a_selector_that_does_not_compile_is_told_as_it_is(control: ControlPlane) -> None:
    control.put_cluster(node_a=["gpu-0"])
    broken = a_class("broken")
    broken["spec"]["selectors"][0]["cel"]["expression"] = "device.drivr == 'x'"
    async with control.controller():
        control.put(broken, a_claim(classes=["broken"]), a_pod("pod-1", "claim-1"))
        await until(lambda: control.events("claim-1"))
        [text] = control.events("claim-1")
        assert "drivr" in text
        control.put(a_class("broken"))
        await until(lambda: not control.is_gated())


async def test_an_unknown_policy_is_told_with_those_that_there_are(control: ControlPlane) -> None:
    control.put_cluster(node_a=["gpu-0"])
    async with control.controller():
        control.put(a_claim(annotations={"dra-driver.io/policy": "bestfit"}), a_pod("pod-1", "claim-1"))
        await until(lambda: control.events("claim-1"))
    [text] = control.events("claim-1")
    assert "unknown policy 'bestfit', want one of 'first-fit'" in text


async def test_a_claim_that_kube_scheduler_refuses_is_explained_too(control: ControlPlane) -> None:
    control.put(a_class("nic", labels={}, driver="nic.example.com"), a_node(labels={}))
    control.put(a_slice("node-a", a_device("nic-0", taints=()), driver="nic.example.com"))
    async with control.controller():
        pod = unschedulable(a_pod("pod-1", "claim-1", gates=()))
        control.put(a_claim(classes=["nic"], count=2), pod)
        await until(lambda: control.events("claim-1"))
    assert control.events("claim-1") == ["request r0: 1 of 1 device matches, 1 free, want 2"]
    assert control.events("pod-1") == control.events("claim-1")
    assert control.writes() == []


async def test_what_kube_scheduler_refuses_for_other_reasons_is_not_explained(control: ControlPlane) -> None:
    control.put(a_class("nic", labels={}, driver="nic.example.com"), a_node(labels={}))
    control.put(a_slice("node-a", a_device("nic-0", taints=()), driver="nic.example.com"))
    async with control.controller() as run:
        pod = unschedulable(a_pod("pod-1", "claim-1", gates=()))
        control.put(a_claim(classes=["nic"]), pod)
        control.put(a_claim("two", classes=["nic"], count=2), unschedulable(a_pod("pod-2", "two", gates=())))
        await until(lambda: control.events("pod-2"))
        assert run.controller.leader.queue.sizes()[PodState.REFUSED] == 2
    assert control.events("pod-1") == []
