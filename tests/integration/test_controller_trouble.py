"""The controller when others write, too, and when the API server is slow, forgetful or away."""

import asyncio
from dataclasses import dataclass, replace
from typing import Any

from structlog.testing import capture_logs

from controller.app import Pace
from controller.decider import Decider, Steps
from controller.decision import Refuse
from controller.metric import PodState
from dra_driver.api.core_v1 import Pod
from tests.support.api_fault import Fault
from tests.support.control import QUICK, ControlPlane, Manifest, a_claim, a_device, a_node, a_pod
from tests.support.kube import running
from tests.support.wait import until


def allocated(claim: Manifest, device: str, pod: str = "other") -> Manifest:
    """Give the claim a device of node-a, as another controller would."""
    result = {"request": "r0", "driver": "accel.dra-driver.io", "pool": "node-a", "device": device}
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-a"]}]}]
    status = {
        "allocation": {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": terms}},
        "reservedFor": [{"resource": "pods", "name": pod, "uid": f"uid-{pod}"}],
    }
    return claim | {"status": status}


async def test_a_claim_that_somebody_labels_meanwhile_is_read_again(control: ControlPlane) -> None:
    control.put_cluster(node_a=["gpu-0"])
    fault = control.server.inject(Fault("delay", path="claim-1/status", method="PATCH"))
    async with control.controller() as run:
        control.put(a_claim(), a_pod("pod-1", "claim-1"))
        await until(lambda: not fault.times)
        claim = control.claim()
        claim["metadata"]["labels"] = {"team": "red"}
        control.put(claim)
        fault.released.set()
        await until(lambda: not control.is_gated())
        assert run.value("conflicts_total") == 1
    assert control.devices() == ["node-a/gpu-0"]


async def test_a_device_that_another_controller_gave_away_first_is_given_up(control: ControlPlane) -> None:
    control.put_cluster(node_a=["gpu-0", "gpu-1"])
    fault = control.server.inject(Fault("delay", path="claim-1/status", method="PATCH"))
    other = control.put_one(a_claim("other"))
    async with control.controller() as run:
        control.put(a_claim(), a_pod("pod-1", "claim-1"))
        await until(lambda: not fault.times)
        control.put(allocated(other, "gpu-0"))
        fault.released.set()
        await until(lambda: not control.is_gated())
        assert run.value("conflicts_total") == 1
    assert (control.devices("other"), control.devices()) == (["node-a/gpu-0"], ["node-a/gpu-1"])


async def test_a_claim_that_another_controller_allocated_first_is_taken_as_it_is(control: ControlPlane) -> None:
    control.put_cluster(node_a=["gpu-0", "gpu-1"])
    fault = control.server.inject(Fault("delay", path="claim-1/status", method="PATCH"))
    claim = control.put_one(a_claim())
    async with control.controller():
        pod = control.put_one(a_pod("pod-1", "claim-1"))
        await until(lambda: not fault.times)
        theirs = allocated(control.claim(), "gpu-1", "pod-1")
        theirs["status"]["reservedFor"][0]["uid"] = pod["metadata"]["uid"]
        control.put(theirs)
        fault.released.set()
        await until(lambda: not control.is_gated())
    assert control.devices() == ["node-a/gpu-1"]
    assert control.claim()["metadata"]["uid"] == claim["metadata"]["uid"]


async def test_two_controllers_that_both_believe_to_lead_give_nothing_twice(control: ControlPlane) -> None:
    control.put_cluster(**{f"node_{name}": ["gpu-0", "gpu-1"] for name in "abcd"})
    names = [f"pod-{number}" for number in range(10)]

    async def watch_over() -> None:
        """Check that no two Pods without a gate have the same device."""
        while True:
            tick = control.server.tick
            free = [name for name in names if any(pod == name for pod in pods()) and not control.is_gated(name)]
            devices = [device for name in free for device in control.devices(f"claim-{name}")]
            assert len(devices) == len(set(devices)), devices
            await tick.wait()

    def pods() -> list[str]:
        return [pod["metadata"]["name"] for pod in control.server.all("pods")]

    async with (
        running(watch_over()) as watching,
        control.controller(policy="spread") as first,
        control.controller(identity="two") as second,
    ):
        await first.leading()
        await second.leading()
        for name in names:
            control.put(a_claim(f"claim-{name}"), a_pod(name, f"claim-{name}"))
            await asyncio.sleep(0)
        await until(lambda: sum(not control.is_gated(name) for name in names) == 8, within_s=20)
        await until(lambda: sum(bool(control.devices(f"claim-{name}")) for name in names) == 8)
        assert not watching.done()
    control.check()


async def test_watches_that_are_too_old_are_begun_again(control: ControlPlane) -> None:
    control.put_cluster(node_a=["gpu-0", "gpu-1"])
    async with control.controller() as run:
        await run.leading()
        await control.server.stop()
        control.put(a_claim("one"), a_pod("pod-1", "one"))
        control.server.compact()
        await control.server.start()
        await until(lambda: not control.is_gated())
        control.server.send_error(410)
        control.put(a_claim("two"), a_pod("pod-2", "two"))
        await until(lambda: not control.is_gated("pod-2"))
    control.check()


async def test_an_api_server_that_is_busy_is_left_alone_as_long_as_it_asks(control: ControlPlane) -> None:
    control.put_cluster(node_a=["gpu-0"])
    busy = Fault("status", path="claim-1", method="PATCH", times=2, status=429, headers={"Retry-After": "1"})
    control.server.inject(busy)
    async with control.controller():
        started = asyncio.get_running_loop().time()
        control.put(a_claim(), a_pod("pod-1", "claim-1"))
        await until(lambda: not control.is_gated())
        assert asyncio.get_running_loop().time() - started >= 2
    assert len(control.writes()) == 5


async def test_what_the_api_server_refuses_for_good_is_told_and_tried_again_later(control: ControlPlane) -> None:
    control.put_cluster(node_a=["gpu-0", "gpu-1"])
    control.server.inject(Fault("status", path="one/status", method="PATCH", times=2, status=403))
    async with control.controller():
        control.put(a_claim("one"), a_pod("pod-1", "one"), a_claim("two"), a_pod("pod-2", "two"))
        await until(lambda: not control.is_gated("pod-2"))
        await until(lambda: not control.is_gated())
        await until(lambda: control.events("pod-1", "AllocationFailed"))
    control.check()


async def test_a_watch_that_says_nothing_lets_no_pod_go_until_it_is_heard_again(control: ControlPlane) -> None:
    control.put_cluster(node_a=["gpu-0"])
    control.put(a_claim())
    pace = replace(QUICK, watch=replace(QUICK.watch, silence_s=2.0))
    async with control.controller(pace) as run:
        await run.leading()
        for watch in control.server.watches_of("resourceclaims"):
            watch.silent = True
        control.put(a_pod("pod-1", "claim-1"))
        await until(control.devices)
        # By the time that a later Pod is told its reason, the gate would be gone if nothing was waited for.
        control.put(a_pod("pod-2", "missing"))
        await until(lambda: control.events("pod-2"))
        assert control.is_gated()
        await until(lambda: not control.is_gated())


async def test_a_pod_that_is_deleted_while_its_claim_is_written_holds_nothing(control: ControlPlane) -> None:
    control.put_cluster(node_a=["gpu-0"])
    fault = control.server.inject(Fault("delay", path="claim-1/status", method="PATCH"))
    async with control.controller():
        control.put(a_claim(), a_pod("pod-1", "claim-1"), a_claim("two"), a_pod("pod-2", "two"))
        await until(lambda: not fault.times)
        control.server.remove("pods", "pod-1", "default")
        fault.released.set()
        await until(lambda: not control.is_gated("pod-2"))
    assert (control.devices(), control.devices("two")) == ([], ["node-a/gpu-0"])


async def test_a_request_without_an_answer_is_given_up_with_its_pod_but_its_device_is_kept_a_while(
    control: ControlPlane,
) -> None:
    control.put_cluster(node_a=["gpu-0"])
    control.server.inject(Fault("reset", path="claim-1/status", method="PATCH", times=1000))
    pace = replace(QUICK, leader=replace(QUICK.leader, unknown_s=4.0))
    async with control.controller(pace) as run:
        control.put(a_claim(), a_pod("pod-1", "claim-1"))
        await until(lambda: any("claim-1/status" in write for write in control.writes()))
        control.server.remove("pods", "pod-1", "default")
        control.put(a_claim("two"), a_pod("pod-2", "two"))
        await until(lambda: run.value("writes_total", result="error") == 1)
        refusals = run.value("refusals_total", reason="DevicesDoNotFit")
        control.put(a_node("node-b"))
        await until(lambda: run.value("refusals_total", reason="DevicesDoNotFit") > refusals)
        assert control.is_gated("pod-2")
        await until(lambda: not control.is_gated("pod-2"))


async def test_a_standby_takes_over_when_the_leader_ends(control: ControlPlane) -> None:
    control.put_cluster(node_a=["gpu-0", "gpu-1"])
    lease: dict[str, Any] = {
        "leader_elect": True,
        "lease_duration_s": 1.0,
        "renew_deadline_s": 0.6,
        "retry_period_s": 0.1,
    }
    async with control.controller(**lease) as first:
        await first.leading()
        async with control.controller(identity="two", **lease) as second:
            await until(lambda: second.controller.state.nodes)
            control.put(a_claim("one"), a_pod("pod-1", "one"))
            await until(lambda: not control.is_gated())
            assert not second.controller.leader.is_leading
            assert (first.value("leader"), second.value("leader")) == (1, 0)
            first.stop.set()
            await first.end()
            control.put(a_claim("two"), a_pod("pod-2", "two"))
            await until(lambda: not control.is_gated("pod-2"))
    control.check()


async def test_a_search_that_was_given_up_is_done_in_the_background_with_more_effort(control: ControlPlane) -> None:
    devices = [
        a_device(f"gpu-{number}", attributes={"linkDomain": {"string": domain}})
        for number, domain in enumerate(["left", "left", "left", "right", "right"])
    ]
    control.put_cluster(node_a=devices, node_b=["gpu-0"])
    claim = a_claim(classes=["gpu", "gpu"])
    for request, count in zip(claim["spec"]["devices"]["requests"], (2, 3), strict=True):
        request["exactly"]["count"] = count
    attribute = "accel.dra-driver.io/linkDomain"
    claim["spec"]["devices"]["constraints"] = [
        {"requests": [request], "matchAttribute": attribute} for request in ("r0", "r1")
    ]
    async with control.controller(replace(QUICK, budget=1)) as run:
        control.put(claim, a_pod("pod-1", "claim-1"))
        await until(lambda: not control.is_gated())
        assert run.value("decisions_total", result="undecided") >= 1
    assert control.devices() == [f"node-a/gpu-{number}" for number in (3, 4, 0, 1, 2)]


async def test_it_says_whether_it_is_ready_and_how_it_is_doing(control: ControlPlane) -> None:
    control.put_cluster(node_a=["gpu-0"])
    await control.server.stop()
    async with control.controller() as run:
        await until(lambda: run.address)
        assert await run.get("/healthz") == (200, "watches: ok\n")
        status, text = await run.get("/readyz")
        assert status == 503
        assert "not listed yet: nodes, " in text
        await control.server.start()
        await run.leading()
        assert await run.get("/readyz") == (200, "synced: ok\n")
        _, metrics = await run.get("/metrics")
    for series in ('dra_controller_refusals_total{reason="NoNode"} 0.0', "dra_controller_leader 1.0"):
        assert series in metrics


async def test_pods_that_share_a_claim_that_is_being_written_wait_for_what_becomes_of_it(control: ControlPlane) -> None:
    control.put_cluster(node_a=["gpu-0", "gpu-1", "gpu-2"])
    fault = control.server.inject(Fault("delay", path="shared/status", method="PATCH"))
    async with control.controller() as run:
        control.put(a_claim("shared"), a_pod("pod-1", "shared"))
        await until(lambda: not fault.times)
        control.put(a_pod("pod-2", "shared"))
        await until(lambda: run.controller.leader.queue.sizes()[PodState.REFUSED])
        fault.released.set()
        await until(lambda: not control.is_gated() and not control.is_gated("pod-2"))
        assert run.value("conflicts_total") == 0
    assert sorted(control.users("shared")) == ["pod-1", "pod-2"]


@dataclass(slots=True)
class _FaultyDecider(Decider):
    """Fails for one Pod."""

    def decide(self, pod: Pod, **options: Any) -> Steps:
        if pod.metadata.name == "pod-1":
            raise KeyError("a fault")
        return Decider.decide(self, pod, **options)


async def test_a_pod_that_cannot_be_decided_keeps_nobody_waiting(control: ControlPlane) -> None:
    control.put_cluster(node_a=["gpu-0"])
    pace = replace(QUICK, leader=replace(QUICK.leader, refused_s=60.0))
    with capture_logs() as logs:
        await decide_with_a_fault(control, pace)
    assert [line["log_level"] for line in logs if line["event"] == "decision failed"] == ["error"]
    assert control.events("pod-1") == ["the controller cannot decide: KeyError, see its log"]


async def decide_with_a_fault(control: ControlPlane, pace: Pace) -> None:
    async with control.controller(pace) as run:
        run.controller.leader.decider = _FaultyDecider(run.controller.state)
        control.put(a_claim("one"), a_pod("pod-1", "one"), a_claim("two"), a_pod("pod-2", "two"))
        await until(lambda: not control.is_gated("pod-2"))
        await until(lambda: control.events("pod-1"))


async def test_a_refusal_that_cannot_be_explained_keeps_nobody_waiting(control: ControlPlane) -> None:
    control.put_cluster(node_a=["gpu-0"])
    with capture_logs() as logs:
        async with control.controller() as run:
            teller = run.controller.leader.teller
            explain = teller.explain

            def explain_with_a_fault(pod: Pod, refusal: Refuse) -> str:
                if pod.metadata.name == "pod-1":
                    raise KeyError("a fault")
                return explain(pod, refusal)

            teller.explain = explain_with_a_fault
            control.put(a_pod("pod-1", "missing"), a_pod("pod-2", "missing"))
            await until(lambda: control.events("pod-2"))
            control.put(a_claim(), a_pod("pod-3", "claim-1"))
            await until(lambda: not control.is_gated("pod-3"))
    assert [line["work"] for line in logs if line["event"] == "background work failed"] == ["Teller.run"]
