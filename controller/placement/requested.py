"""What Pods request of a node: one Pod's requests, and their sum over the Pods of a node.

Source: `PodRequests` of k8s.io/component-helpers and `Resource.Add` of kube-scheduler, without the in-place resizing
of running Pods: until a resize is done, a Pod counts with what its spec says.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from dra_driver.api.core_v1 import Container, Pod, ResourceRequirements
from dra_driver.api.quantity import NANO, Quantity
from dra_driver.pod_claim import FINAL_PHASES

CPU: Final = "cpu"
_MILLI: Final = NANO // 1000


@dataclass(slots=True)
class Requested:
    """What the Pods on one node request, in nano-units a resource, and how many they are.

    Pods that have ended hold nothing: adding or removing one changes nothing.
    """

    resources: dict[str, int] = field(default_factory=dict)
    pods: int = 0

    def add(self, pod: Pod) -> None:
        """Count `pod`."""
        self._count(pod, 1)

    def remove(self, pod: Pod) -> None:
        """Take back what `add` counted for this same object."""
        self._count(pod, -1)

    def _count(self, pod: Pod, sign: int) -> None:
        if pod.status.phase in FINAL_PHASES:
            return
        self.pods += sign
        for name, nanos in sum_requests(pod).items():
            total = self.resources.get(name, 0) + sign * nanos
            if total:
                self.resources[name] = total
            else:
                self.resources.pop(name, None)


def sum_requests(pod: Pod) -> dict[str, int]:
    """Give what `pod` requests, in nano-units a resource, rounded up as kube-scheduler does: cpu to 1m, others to 1.

    Containers and sidecars together, or the largest init container with the sidecars before it if that is more.
    What the Pod asks for as a whole replaces this; the overhead of its runtime comes on top.
    """
    requests = _sum_containers(pod)
    if pod.spec.resources is not None:
        requests |= _pod_level(pod.spec.resources, requests)
    _add(requests, _nanos(pod.spec.overhead))
    return {name: _round_up(name, nanos) for name, nanos in requests.items()}


def _sum_containers(pod: Pod) -> dict[str, int]:
    total: dict[str, int] = {}
    for container in pod.spec.containers:
        _add(total, _container(container))
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in pod.spec.init_containers:
        requests = _container(container)
        if container.restart_policy == "Always":
            _add(total, requests)
            _add(sidecars, requests)
        else:
            _add(requests, sidecars)
            _raise_to(peak, requests)
    _raise_to(total, peak)
    return total


def _container(container: Container) -> dict[str, int]:
    return _nanos(container.resources.limits) | _nanos(container.resources.requests)


def _pod_level(resources: ResourceRequirements, containers: Mapping[str, int]) -> dict[str, int]:
    """Give what replaces the sum of the containers. A limit counts only for what no container requests."""
    limits = {name: nanos for name, nanos in _nanos(resources.limits).items() if name not in containers}
    wanted = limits | _nanos(resources.requests)
    return {name: nanos for name, nanos in wanted.items() if _may_stand_at_pod_level(name)}


def _may_stand_at_pod_level(name: str) -> bool:
    return name in (CPU, "memory") or name.startswith("hugepages-")


def _nanos(quantities: Mapping[str, Quantity]) -> dict[str, int]:
    return {name: quantity.nanos for name, quantity in quantities.items()}


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, nanos in more.items():
        total[name] = total.get(name, 0) + nanos


def _raise_to(total: dict[str, int], floor: Mapping[str, int]) -> None:
    for name, nanos in floor.items():
        total[name] = max(total.get(name, 0), nanos)


def _round_up(name: str, nanos: int) -> int:
    unit = _MILLI if name == CPU else NANO
    return -(-nanos // unit) * unit
