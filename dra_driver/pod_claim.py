"""A Pod and its claims: which claim an entry of the Pod means, and who may use a claim. Pure.

Source: k8s.io/dynamic-resource-allocation/resourceclaim, and the ResourceClaim controller of kube-controller-manager.
"""

from typing import Final

from dra_driver.api.core_v1 import Pod, PodResourceClaim
from dra_driver.api.resource_v1 import ResourceClaim, ResourceClaimConsumerReference
from dra_driver.kube.resource import KubernetesObject

FINALIZER: Final = "resource.kubernetes.io/delete-protection"
"""Kept on an allocated claim until nobody uses it any more; Kubernetes' ResourceClaim controller removes it then."""

FINAL_PHASES: Final = ("Succeeded", "Failed")
"""The phases of Pods whose containers have ended for good."""


def find_claim_name(pod: Pod, entry: PodResourceClaim) -> str | None:
    """Give the name of the claim that an entry of the Pod means; None where a template made none, or none yet."""
    if entry.resource_claim_name:
        return entry.resource_claim_name
    made = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
    return made.get(entry.name) or None


def refer_to(pod: Pod) -> ResourceClaimConsumerReference:
    """Give the entry of reservedFor that means the Pod."""
    return ResourceClaimConsumerReference(resource="pods", name=pod.metadata.name, uid=pod.metadata.uid)


def is_reserved_for(claim: ResourceClaim, pod: KubernetesObject) -> bool:
    """Tell whether the Pod may use the claim."""
    return any(entry.uid == pod.metadata.uid for entry in claim.status.reserved_for)


def is_made_for(claim: ResourceClaim, pod: KubernetesObject) -> bool:
    """Tell whether the claim was made for the Pod, from a template."""
    return any(owner.controller and owner.uid == pod.metadata.uid for owner in claim.metadata.owner_references)


def is_live(pod: Pod) -> bool:
    """Tell whether the Pod will still use its claims: not once it has ended, or is deleted before it had a node."""
    is_cancelled = pod.metadata.deletion_timestamp is not None and not pod.spec.node_name
    return pod.status.phase not in FINAL_PHASES and not is_cancelled
