"""The patches that are written, each guarded so that it does nothing to an object that has changed meanwhile."""

from typing import Any

import msgspec

from controller.ownership import GATE
from dra_driver.api.core_v1 import Pod
from dra_driver.api.meta_v1 import Time
from dra_driver.api.resource_v1 import AllocationResult, ResourceClaim, ResourceClaimConsumerReference
from dra_driver.pod_claim import FINALIZER


def build_protection(claim: ResourceClaim) -> dict[str, Any]:
    """Add the finalizer that Kubernetes' own controllers remove once the claim is used by nobody."""
    return {"metadata": _guard(claim) | {"finalizers": [*claim.metadata.finalizers, FINALIZER]}}


def build_release(claim: ResourceClaim) -> dict[str, Any]:
    """Remove the finalizer again."""
    return {
        "metadata": _guard(claim) | {"finalizers": [name for name in claim.metadata.finalizers if name != FINALIZER]}
    }


def build_allocation(
    claim: ResourceClaim, allocation: AllocationResult, consumer: ResourceClaimConsumerReference, now: Time
) -> dict[str, Any]:
    """Allocate the claim and reserve it, at once. Without the timestamp kube-scheduler could not bind the Pod."""
    stamped = msgspec.structs.replace(allocation, allocation_timestamp=now)
    return {
        "metadata": _guard(claim),
        "status": {"allocation": stamped, "reservedFor": [consumer]},
    }


def build_reservation(claim: ResourceClaim, consumer: ResourceClaimConsumerReference) -> dict[str, Any]:
    """Let one more Pod use a claim that is allocated."""
    consumers = (*claim.status.reserved_for, consumer)
    return {"metadata": _guard(claim), "status": {"reservedFor": consumers}}


def build_deallocation(claim: ResourceClaim) -> dict[str, Any]:
    """Take back an allocation, and who it was for."""
    return {"metadata": _guard(claim), "status": {"allocation": None, "reservedFor": None}}


def build_ungating(pod: Pod) -> list[dict[str, Any]]:
    """Remove the gate, if it is the one that it was and the Pod the same."""
    index = next(index for index, gate in enumerate(pod.spec.scheduling_gates) if gate.name == GATE)
    path = f"/spec/schedulingGates/{index}"
    return [
        {"op": "test", "path": "/metadata/uid", "value": pod.metadata.uid},
        {"op": "test", "path": f"{path}/name", "value": GATE},
        {"op": "remove", "path": path},
    ]


def _guard(claim: ResourceClaim) -> dict[str, Any]:
    return {"uid": claim.metadata.uid, "resourceVersion": claim.metadata.resource_version}
