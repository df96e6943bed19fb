"""The controller on an API server: from a gated Pod to allocated claims and a Pod without the gate."""

from tests.support.control import ControlPlane, a_claim, a_pod
from tests.support.wait import until


async def test_a_gated_pod_gets_its_claim_and_loses_its_gate(control: ControlPlane) -> None:
    control.put_cluster(node_a=["gpu-0", "gpu-1"])
    async with control.controller():
        control.put(a_claim(), a_pod("pod-1", "claim-1"))
        await until(lambda: not control.is_gated())
    assert control.devices() == ["node-a/gpu-0"]
    claim = control.claim()
    assert claim["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]
    assert claim["status"]["allocation"]["allocationTimestamp"]
    assert control.users() == ["pod-1"]
    assert control.writes() == [
        "PATCH default/resourceclaims/claim-1",
        "PATCH default/resourceclaims/claim-1/status",
        "PATCH default/pods/pod-1",
    ]
