"""What becomes of claims as Pods come and go. Pure.

Source: kubernetes/kubernetes pkg/controller/resourceclaim/controller.go.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from dra_driver.api.core_v1 import Pod, PodResourceClaim
from dra_driver.api.meta_v1 import ObjectMeta, OwnerReference
from dra_driver.api.resource_v1 import (
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimTemplate,
)
from dra_driver.kube.resource import ObjectKey
from dra_driver.pod_claim import FINALIZER, find_claim_name, is_made_for

CLAIM_NAME_ANNOTATION: Final = "resource.kubernetes.io/pod-claim-name"


def build_claim(pod: Pod, entry: PodResourceClaim, template: ResourceClaimTemplate) -> ResourceClaim:
    """Build the claim that a Pod gets from a template. It goes with the Pod."""
    metadata = template.spec.metadata
    owner = OwnerReference(
        api_version="v1",
        kind="Pod",
        name=pod.metadata.name,
        uid=pod.metadata.uid,
        controller=True,
        block_owner_deletion=True,
    )
    return ResourceClaim(
        metadata=ObjectMeta(
            generate_name=f"{pod.metadata.name}-{entry.name}-",
            namespace=pod.metadata.namespace,
            labels=metadata.labels,
            annotations={**metadata.annotations, CLAIM_NAME_ANNOTATION: entry.name},
            owner_references=(owner,),
        ),
        spec=template.spec.spec,
    )


def find_made_claim(pod: Pod, entry: PodResourceClaim, claims: Iterable[ResourceClaim]) -> ResourceClaim | None:
    """Find the claim that was made for an entry of the Pod already."""
    for claim in claims:
        named = claim.metadata.annotations.get(CLAIM_NAME_ANNOTATION) == entry.name
        if named and claim.metadata.namespace == pod.metadata.namespace and is_made_for(claim, pod):
            return claim
    return None


def list_pod_keys(claim: ResourceClaim) -> frozenset[ObjectKey]:
    """List the Pods that the claim is reserved for, and the one that it was made for."""
    names = {user.name for user in claim.status.reserved_for if user.resource == "pods" and not user.api_group}
    names |= {owner.name for owner in claim.metadata.owner_references if owner.kind == "Pod"}
    return frozenset(ObjectKey(claim.metadata.namespace, name) for name in names)


def list_claim_names(pod: Pod) -> dict[str, str | None]:
    """Give the claims of a Pod by the names that it has for them; None is a claim that is not made yet."""
    return {entry.name: find_claim_name(pod, entry) for entry in pod.spec.resource_claims}


def plan_release(claim: ResourceClaim, users: tuple[ResourceClaimConsumerReference, ...]) -> Mapping[str, Any] | None:
    """Plan the change of status that leaves these users; without users the allocation goes too. None: no change.

    An allocation that was never reserved stays, unless the claim is being deleted: another allocator may be about to
    reserve it.
    """
    has_finalizer = FINALIZER in claim.metadata.finalizers
    if len(users) < len(claim.status.reserved_for):
        status: dict[str, Any] = {"reservedFor": list(users) or None}
        if not users and has_finalizer:
            status["allocation"] = None
        return status
    is_deleted = claim.metadata.deletion_timestamp is not None
    if is_deleted and not users and has_finalizer and claim.status.allocation is not None:
        return {"allocation": None}
    return None
