"""Why a node cannot take a Pod, apart from the Pod's claims."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

from controller.placement.affinity import find_affinity_problem, find_selector_problem
from controller.placement.requested import Requested, sum_requests
from controller.placement.toleration import tolerates_unschedulable, untolerated_taint
from dra_driver.api.core_v1 import Node, Pod
from dra_driver.api.name import quote
from dra_driver.api.quantity import Format, Quantity


class MisfitCode(StrEnum):
    """What keeps a Pod off a node."""

    UNSCHEDULABLE = "NodeUnschedulable"
    OTHER_NODE = "OtherNodeWanted"
    TAINT = "NodeTaintNotTolerated"
    NODE_SELECTOR = "NodeSelectorFalse"
    NODE_AFFINITY = "NodeAffinityFalse"
    PODS = "TooManyPods"
    RESOURCES = "ResourcesShort"


@dataclass(frozen=True, slots=True)
class Misfit:
    """One reason, in machine-readable form and in words. `message` does not name the node."""

    code: MisfitCode
    message: str


def find_misfit(
    pod: Pod,
    node: Node,
    requested: Requested,
    *,
    requests: Mapping[str, int] | None = None,
    class_resources: Collection[str] = (),
) -> Misfit | None:
    """Give the first reason why `node` cannot take `pod`, in the order of kube-scheduler's filters; None if it can.

    `requested` is what the node's Pods request, `pod` not among them.
    `requests` is what `sum_requests(pod)` gives, for callers that try many nodes.
    `class_resources` are extended resources that DeviceClasses stand for, see `name_class_resources`: where a node has
    none of its own, they are a matter of devices, and not looked at here.
    """
    return (
        _find_unschedulable(pod, node)
        or _find_other_node(pod, node)
        or _find_taint(pod, node)
        or _find_affinity(pod, node)
        or _find_short(requests if requests is not None else sum_requests(pod), node, requested, class_resources)
    )


def _find_unschedulable(pod: Pod, node: Node) -> Misfit | None:
    if not node.spec.unschedulable or tolerates_unschedulable(pod.spec.tolerations):
        return None
    return Misfit(MisfitCode.UNSCHEDULABLE, "node: is unschedulable, want a schedulable one")


def _find_other_node(pod: Pod, node: Node) -> Misfit | None:
    if pod.spec.node_name in ("", node.metadata.name):
        return None
    return Misfit(MisfitCode.OTHER_NODE, f"node: is {node.metadata.name!r}, want {quote(pod.spec.node_name)}")


def _find_taint(pod: Pod, node: Node) -> Misfit | None:
    taint = untolerated_taint(node.spec.taints, pod.spec.tolerations)
    if taint is None:
        return None
    value = f"={taint.value}" if taint.value else ""
    return Misfit(MisfitCode.TAINT, f"node taint {taint.key}{value}:{taint.effect}: not tolerated, want a toleration")


def _find_affinity(pod: Pod, node: Node) -> Misfit | None:
    problem = find_selector_problem(pod.spec.node_selector, node)
    if problem is not None:
        return Misfit(MisfitCode.NODE_SELECTOR, problem)
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    problem = find_affinity_problem(required, node) if required is not None else None
    return Misfit(MisfitCode.NODE_AFFINITY, problem) if problem is not None else None


def _find_short(
    requests: Mapping[str, int], node: Node, requested: Requested, class_resources: Collection[str]
) -> Misfit | None:
    allowed = _allocatable(node, "pods").value()
    if requested.pods + 1 > allowed:
        return Misfit(MisfitCode.PODS, f"pods: {allowed - requested.pods} of {allowed} left, want 1")
    problems = []
    for name, nanos in sorted(requests.items()):
        allocatable = _allocatable(node, name)
        left = allocatable.nanos - requested.resources.get(name, 0)
        is_of_class = name in class_resources and allocatable.nanos <= 0
        if 0 < nanos > left and not is_of_class:
            problems.append(f"{name}: {_amount(left, name)} left, want {_amount(nanos, name)}")
    return Misfit(MisfitCode.RESOURCES, "; ".join(problems)) if problems else None


def _allocatable(node: Node, name: str) -> Quantity:
    return node.status.allocatable.get(name, Quantity(0))


def _amount(nanos: int, name: str) -> Quantity:
    """Write bytes with a binary suffix, everything else with a decimal one, whatever the node and the Pod use."""
    is_bytes = name in ("memory", "ephemeral-storage") or name.startswith("hugepages-")
    return Quantity(nanos, Format.BINARY_SI if is_bytes else Format.DECIMAL_SI)
