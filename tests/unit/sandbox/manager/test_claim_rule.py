"""What becomes of claims as Pods come and go, as kube-controller-manager decides it."""

from typing import Any

import pytest

from dra_driver.api.core_v1 import Pod, PodResourceClaim, PodSpec, PodStatus
from dra_driver.api.meta_v1 import ObjectMeta
from dra_driver.api.resource_v1 import (
    AllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
    ResourceClaimTemplate,
    ResourceClaimTemplateSpec,
)
from dra_driver.pod_claim import FINALIZER
from sandbox.manager.claim_rule import build_claim, find_made_claim, plan_release

ENTRY = PodResourceClaim(name="gpu", resource_claim_template_name="template")
USER = ResourceClaimConsumerReference(resource="pods", name="pod", uid="uid-1")
OTHER = ResourceClaimConsumerReference(resource="pods", name="other", uid="uid-2")


def a_pod(name: str = "pod", uid: str = "uid-1", *, node: str = "", phase: str = "", deleted: bool = False) -> Pod:
    deletion = "2026-01-01T00:00:00Z" if deleted else None
    metadata = ObjectMeta(name=name, namespace="default", uid=uid, deletion_timestamp=deletion)
    return Pod(metadata=metadata, spec=PodSpec(node_name=node), status=PodStatus(phase=phase))


def a_claim(*users: ResourceClaimConsumerReference, finalizer: bool = True, deleted: bool = False) -> ResourceClaim:
    return ResourceClaim(
        metadata=ObjectMeta(
            name="claim",
            namespace="default",
            finalizers=(FINALIZER,) if finalizer else (),
            deletion_timestamp="2026-01-01T00:00:00Z" if deleted else None,
        ),
        status=ResourceClaimStatus(allocation=AllocationResult(), reserved_for=users),
    )


def test_a_claim_from_a_template_belongs_to_its_pod_and_is_found_again() -> None:
    metadata = ObjectMeta(labels={"team": "a"}, annotations={"note": "b"})
    template = ResourceClaimTemplate(spec=ResourceClaimTemplateSpec(metadata=metadata))
    claim = build_claim(a_pod(), ENTRY, template)
    assert (claim.metadata.generate_name, claim.metadata.namespace) == ("pod-gpu-", "default")
    assert claim.metadata.labels == {"team": "a"}
    assert claim.metadata.annotations == {"note": "b", "resource.kubernetes.io/pod-claim-name": "gpu"}
    [owner] = claim.metadata.owner_references
    assert (owner.kind, owner.uid, owner.controller, owner.block_owner_deletion) == ("Pod", "uid-1", True, True)
    assert find_made_claim(a_pod(), ENTRY, [claim]) is claim
    assert find_made_claim(a_pod(uid="uid-2"), ENTRY, [claim]) is None
    assert find_made_claim(a_pod(), PodResourceClaim(name="npu"), [claim]) is None


@pytest.mark.parametrize(
    ("claim", "users", "change"),
    [
        (a_claim(USER), (USER,), None),
        (a_claim(USER, OTHER), (OTHER,), {"reservedFor": [OTHER]}),
        (a_claim(USER), (), {"reservedFor": None, "allocation": None}),
        (a_claim(USER, finalizer=False), (), {"reservedFor": None}),
        (a_claim(), (), None),
        (a_claim(deleted=True), (), {"allocation": None}),
        (a_claim(USER, deleted=True), (USER,), None),
    ],
    ids=["in use", "one left", "last", "not ours", "never reserved", "deleted unused", "deleted in use"],
)
def test_an_allocation_goes_with_its_last_user(
    claim: ResourceClaim, users: tuple[ResourceClaimConsumerReference, ...], change: dict[str, Any] | None
) -> None:
    assert plan_release(claim, users) == change
