"""The controller dies after any of its requests, and the next one goes on with what it finds.

What must hold at every moment: no device is in two claims, and no Pod loses its gate before all its claims are
allocated and reserved. What must hold in the end: everybody has what they need, and nothing is held for nobody.
"""

import asyncio
from typing import Any

import pytest

from sandbox.api_server.kind import Kind, Object
from sandbox.api_server.refusal import Refusal
from tests.support.api_fault import Fault
from tests.support.control import ControlPlane, a_claim, a_pod
from tests.support.kube import running
from tests.support.wait import until

CLAIMS = ("one", "two", "three")


def put_pods(control: ControlPlane) -> None:
    """Two Pods, of which the first needs a whole node, and devices for both."""
    control.put_cluster(node_a=["gpu-0", "gpu-1"], node_b=["gpu-0", "gpu-1", "gpu-2"])
    control.put(*map(a_claim, CLAIMS), a_pod("pod-1", *CLAIMS))
    control.put(a_claim("four"), a_pod("pod-2", "four"))


async def watch_over(control: ControlPlane) -> None:
    """Check after every write what must hold at any time."""
    while True:
        tick = control.server.tick
        control.check()
        await tick.wait()


class Crash:
    """Kills whoever sends the write number `after` (from 0): before it arrives, or once it was carried out."""

    def __init__(self, control: ControlPlane, after: int, *, arrives: bool) -> None:
        self.happened = asyncio.Event()
        self._left = after
        self._arrives = arrives
        control.server.admission.append(self._count)

    def _count(self, kind: Kind, method: str, wanted: Object) -> None:
        if method != "PATCH" or kind.plural not in ("resourceclaims", "pods") or self.happened.is_set():
            return
        if self._left == 0:
            self.happened.set()
            if not self._arrives:
                raise Refusal(503, "ServiceUnavailable", "crashed")
        self._left -= 1


WRITES = 10
"""Two requests a claim and one a Pod."""


@pytest.mark.parametrize("arrives", [True, False], ids=["after", "before"])
@pytest.mark.parametrize("number", range(WRITES))
async def test_a_controller_that_dies_at_any_write_is_followed_by_one_that_goes_on(
    control: ControlPlane, number: int, *, arrives: bool
) -> None:
    put_pods(control)
    crash = Crash(control, number, arrives=arrives)
    async with running(watch_over(control)) as watching:
        async with control.controller() as first:
            await asyncio.wait_for(crash.happened.wait(), 10)
            await first.kill()
        async with control.controller():
            await until(lambda: not control.is_gated() and not control.is_gated("pod-2"))
        assert not watching.done()
    assert {device for name in CLAIMS for device in control.devices(name)} == {f"node-b/gpu-{n}" for n in range(3)}
    assert control.devices("four") == ["node-a/gpu-0"]


@pytest.mark.parametrize("number", range(WRITES))
@pytest.mark.parametrize("action", ["lose", "reset", "status", "hang"])
async def test_any_write_may_be_lost_refused_or_stay_without_an_answer(
    control: ControlPlane, number: int, action: Any
) -> None:
    put_pods(control)
    seen = 0

    def spoil(kind: Kind, method: str, wanted: Object) -> None:
        nonlocal seen
        if method == "PATCH" and kind.plural in ("resourceclaims", "pods"):
            seen += 1
            if seen == number:
                control.server.inject(Fault(action, path="/default/", method="PATCH", status=500))

    control.server.admission.append(spoil)
    if number == 0:
        control.server.inject(Fault(action, path="/default/", method="PATCH", status=500))
    async with running(watch_over(control)) as watching, control.controller(timeout_s=0.5):
        await until(lambda: not control.is_gated() and not control.is_gated("pod-2"))
        assert not watching.done()
    assert {device for name in CLAIMS for device in control.devices(name)} == {f"node-b/gpu-{n}" for n in range(3)}
    assert control.devices("four") == ["node-a/gpu-0"]


@pytest.mark.parametrize("number", range(7))
async def test_an_allocation_of_a_pod_that_is_gone_is_taken_back(control: ControlPlane, number: int) -> None:
    put_pods(control)
    crash = Crash(control, number, arrives=True)
    async with control.controller() as first:
        await asyncio.wait_for(crash.happened.wait(), 10)
        await first.kill()
    control.server.remove("pods", "pod-1", "default")
    async with control.controller():
        await until(lambda: not control.is_gated("pod-2"))
        await until(lambda: not any(control.devices(name) for name in CLAIMS))
        await until(lambda: not any(control.claim(name)["metadata"].get("finalizers") for name in CLAIMS))
    control.check()


async def test_what_was_allocated_on_a_node_that_is_gone_is_taken_back(control: ControlPlane) -> None:
    control.put_cluster(node_a=["gpu-0"], node_b=["gpu-0", "gpu-1"])
    pod = control.put_one(a_pod("pod-1", "one", "two"))
    one = control.put_one(a_claim("one"))
    control.put(a_claim("two"))
    result = {"request": "r0", "driver": "accel.dra-driver.io", "pool": "node-a", "device": "gpu-0"}
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-a"]}]}]
    one["status"] = {
        "allocation": {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": terms}},
        "reservedFor": [{"resource": "pods", "name": "pod-1", "uid": pod["metadata"]["uid"]}],
    }
    control.put(one)
    async with control.controller():
        await until(lambda: not control.is_gated())
    assert (control.devices("one"), control.devices("two")) == (["node-b/gpu-0"], ["node-b/gpu-1"])
