"""Which claims the simulated kubelet lets a Pod use, and which devices a container gets."""

import pytest

from dra_driver.api.core_v1 import PodResourceClaim, PodResourceClaimStatus
from dra_driver.api.meta_v1 import ObjectMeta, OwnerReference
from dra_driver.api.resource_v1 import (
    AllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from sandbox.node.claim_record import ClaimRecord, PreparedDevice
from sandbox.node.claim_rule import collect_cdi_ids, explain_refusal, find_claim_name
from sandbox.node.error import NodeError
from sandbox.node.pod import Container, ContainerClaim, ContainerResources, Pod, PodStatus

POD = Pod(metadata=ObjectMeta(name="pod", namespace="default", uid="uid-pod"))
NAMED = PodResourceClaim(name="gpu", resource_claim_name="claim")
MADE = PodResourceClaim(name="gpu", resource_claim_template_name="template")
OWNER = OwnerReference(api_version="v1", kind="Pod", name="pod", uid="uid-pod", controller=True)


def a_claim(*, owner: bool = False, allocated: bool = True, user: str = "uid-pod") -> ResourceClaim:
    return ResourceClaim(
        metadata=ObjectMeta(name="claim", namespace="default", owner_references=(OWNER,) if owner else ()),
        status=ResourceClaimStatus(
            allocation=AllocationResult() if allocated else None,
            reserved_for=(ResourceClaimConsumerReference(resource="pods", name="pod", uid=user),),
        ),
    )


@pytest.mark.parametrize(
    ("entry", "claim", "problem"),
    [
        (NAMED, a_claim(), None),
        (MADE, a_claim(owner=True), None),
        (MADE, a_claim(), "was not made for pod default/pod"),
        (NAMED, a_claim(allocated=False), "not allocated"),
        (NAMED, a_claim(user="uid-other"), "not reserved for pod default/pod"),
    ],
    ids=["ok", "own", "of another pod", "not allocated", "reserved for another"],
)
def test_a_pod_may_use_claims_that_are_allocated_and_reserved_for_it(
    entry: PodResourceClaim, claim: ResourceClaim, problem: str | None
) -> None:
    found = explain_refusal(POD, entry, claim)
    assert found == (problem and f"claim default/claim: {problem}")


def test_the_claim_of_a_template_has_the_name_that_the_status_says() -> None:
    with pytest.raises(NodeError, match="not made from its template yet"):
        find_claim_name(POD, MADE)
    statuses = (PodResourceClaimStatus(name="gpu", resource_claim_name="pod-gpu-x"),)
    assert find_claim_name(Pod(status=PodStatus(resource_claim_statuses=statuses)), MADE) == "pod-gpu-x"


@pytest.mark.parametrize(
    ("request_name", "ids"),
    [("", ("id-a", "id-b", "id-all")), ("a", ("id-a", "id-all")), ("c", ("id-all",))],
    ids=["all", "one", "none of it"],
)
def test_a_container_gets_the_devices_of_the_request_it_names(request_name: str, ids: tuple[str, ...]) -> None:
    devices = (
        PreparedDevice(requests=("a",), pool="p", device="a", cdi_ids=("id-a",)),
        PreparedDevice(requests=("b",), pool="p", device="b", cdi_ids=("id-b",)),
        PreparedDevice(pool="p", device="all", cdi_ids=("id-all",)),
    )
    record = ClaimRecord(uid="uid", namespace="default", name="claim", devices={"driver": devices})
    uses = (ContainerClaim(name="gpu", request=request_name),)
    container = Container(name="main", resources=ContainerResources(claims=uses))
    assert collect_cdi_ids(container, {"gpu": record}) == ids
