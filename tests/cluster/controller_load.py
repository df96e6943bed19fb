"""Many Pods of all kinds that come at once, use their devices for a moment, and end."""

from typing import Any

from tests.cluster.controller import DEVICE, PART, gated, of_partition
from tests.cluster.scenario import Manifest, Workload, a_claim, a_pod, a_request

SHARE = {"memory": "8Gi", "cores": "30"}


def a_load(
    prefix: str, count: int, *, gpu: str = DEVICE, part: str = PART, by_controller: bool = True
) -> list[Manifest]:
    """Build Pods that end by themselves, each with a whole GPU, a share or a partition in turn."""
    manifests = []
    for index in range(count):
        name = f"{prefix}-{index}"
        pod = a_pod(name, name, command=["true"])
        manifests += [a_claim(name, _a_request(index, gpu, part)), gated(pod) if by_controller else pod]
    return manifests


def _a_request(index: int, gpu: str, part: str) -> Manifest:
    match index % 4:
        case 0:
            return a_request("device", gpu)
        case 2:
            return a_request("device", part, of_partition("3g.40gb"))
        case _:
            return a_request("device", gpu, capacity=SHARE)


def wait_until_done(workload: Workload, count: int, timeout: float = 120) -> list[dict[str, Any]]:
    """Wait until that many Pods have succeeded, and return them."""

    def done() -> list[dict[str, Any]]:
        pods = workload.cluster.list("pods", workload.namespace)
        succeeded = [pod for pod in pods if pod["status"]["phase"] == "Succeeded"]
        return succeeded if len(succeeded) == count else []

    return workload.cluster.wait_for(f"{count} pods to have succeeded", done, timeout)
