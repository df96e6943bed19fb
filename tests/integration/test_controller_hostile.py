"""Objects that the API server takes and that make little sense hurt at most those that they are about."""

from tests.support.api_fault import Fault
from tests.support.control import ControlPlane, a_claim, a_pod, a_slice
from tests.support.wait import until


async def test_a_pod_that_names_a_claim_twice_is_served_changed_and_removed(control: ControlPlane) -> None:
    control.put_cluster(node_a=["gpu-0", "gpu-1"])
    twice = [{"name": "one", "resourceClaimName": "claim-1"}, {"name": "again", "resourceClaimName": "claim-1"}]
    async with control.controller() as run:
        control.put(a_claim(), a_pod("pod-1", resourceClaims=twice))
        await until(lambda: not control.is_gated())
        control.server.remove("pods", "pod-1", "default")
        control.put(a_claim("two"), a_pod("pod-2", "two"))
        await until(lambda: not control.is_gated("pod-2") or run.task.done())
        assert not run.task.done()
    control.check()


async def test_a_slice_that_cannot_be_read_may_come_while_a_claim_is_written(control: ControlPlane) -> None:
    control.put_cluster(node_a=["gpu-0", "gpu-1"])
    fault = control.server.inject(Fault("delay", path="claim-1/status", method="PATCH"))
    broken = a_slice("node-b", "gpu-0", driver="other.example.com")
    requirement = {"key": "zone", "operator": "Gt", "values": ["no number"]}
    del broken["spec"]["nodeName"]
    broken["spec"]["nodeSelector"] = {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}
    async with control.controller() as run:
        control.put(a_claim(), a_pod("pod-1", "claim-1"))
        await until(lambda: not fault.times)
        control.put(broken)
        await until(lambda: broken["metadata"]["name"] in run.controller.state.slices)
        fault.released.set()
        await until(lambda: not control.is_gated() or run.task.done())
        assert not run.task.done()
    control.check()
