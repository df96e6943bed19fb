from typing import Any

import pytest

from controller.pod_claim import find_claims, find_keys, is_pending, is_reserved_only_for
from dra_driver.api.core_v1 import Pod
from dra_driver.api.resource_v1 import ResourceClaim, ResourceClaimStatus
from dra_driver.kube.resource import ObjectKey, key_of
from dra_driver.pod_claim import refer_to
from tests.support.control import Manifest, a_claim, a_pod
from tests.support.control_object import read


def known(*claims: Manifest) -> dict[ObjectKey, ResourceClaim]:
    return {key_of(claim): claim for claim in (read(each, ResourceClaim) for each in claims)}


def templated(status: list[dict[str, Any]]) -> Pod:
    return read(a_pod(templates=["gpu"]) | {"status": {"resourceClaimStatuses": status}}, Pod)


def test_claims_are_found_each_once_in_the_pods_order() -> None:
    found = find_claims(read(a_pod("pod-1", "b", "a", "b"), Pod), known(a_claim("a"), a_claim("b")))
    assert [claim.metadata.name for claim in found.claims] == ["b", "a"]
    assert found.missing == ()


def test_a_claim_that_a_pod_names_twice_is_one() -> None:
    keys = tuple(find_keys(read(a_pod("pod-1", "b", "a", "b"), Pod)))
    assert keys == (ObjectKey("default", "b"), ObjectKey("default", "a"))


def test_what_is_missing_is_said_of_each() -> None:
    deleted = a_claim("b", deletionTimestamp="2026-01-01T00:00:00Z")
    found = find_claims(read(a_pod("pod-1", "a", "b", templates=["t"]), Pod), known(deleted))
    assert found.missing == (
        "claim default/a: does not exist yet",
        "claim default/b: is being deleted",
        "claim 't': not made from its template yet",
    )


def test_a_claim_that_is_being_deleted_serves_a_pod_that_has_it_already() -> None:
    claim = a_claim("a", deletionTimestamp="2026-01-01T00:00:00Z")
    claim["status"] = {"reservedFor": [{"resource": "pods", "name": "pod-1", "uid": "uid-pod-1"}]}
    assert find_claims(read(a_pod("pod-1", "a"), Pod), known(claim)).missing == ()


@pytest.mark.parametrize(
    ("status", "missing"),
    [
        ([], ("claim 'gpu': not made from its template yet",)),
        ([{"name": "other", "resourceClaimName": "x"}], ("claim 'gpu': not made from its template yet",)),
        ([{"name": "gpu"}], ()),
        ([{"name": "gpu", "resourceClaimName": "x"}], ("claim default/x: does not exist yet",)),
    ],
    ids=["no status", "another's status", "none needed", "made and not seen"],
)
def test_a_claim_of_a_template_is_named_by_the_status(status: list[dict[str, Any]], missing: tuple[str, ...]) -> None:
    assert find_claims(templated(status), {}).missing == missing


@pytest.mark.parametrize(
    ("change", "is_ours"), [({}, True), ({"uid": "uid-other"}, False), ({"controller": False}, False)], ids=str
)
def test_a_claim_of_a_template_must_be_made_for_this_very_pod(change: dict[str, Any], *, is_ours: bool) -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "pod-1", "uid": "uid-pod-1", "controller": True}
    pod = templated([{"name": "gpu", "resourceClaimName": "x"}])
    found = find_claims(pod, known(a_claim("x", ownerReferences=[owner | change])))
    assert bool(found.claims) is is_ours


def test_a_claim_may_be_reserved_for_one_pod_only() -> None:
    pod, other = read(a_pod(), Pod), read(a_pod("other"), Pod)
    one = ResourceClaim(status=ResourceClaimStatus(reserved_for=(refer_to(pod),)))
    two = ResourceClaim(status=ResourceClaimStatus(reserved_for=(refer_to(pod), refer_to(other))))
    assert is_reserved_only_for(one, pod)
    assert not is_reserved_only_for(one, other)
    assert not is_reserved_only_for(two, pod)


@pytest.mark.parametrize(
    ("node", "phase", "pending"),
    [("", "Pending", True), ("node-a", "Pending", False), ("", "Failed", False)],
    ids=["waits", "has a node", "has failed"],
)
def test_a_pod_is_pending_until_it_has_a_node(node: str, phase: str, *, pending: bool) -> None:
    assert is_pending(read(a_pod(nodeName=node) | {"status": {"phase": phase}}, Pod)) is pending
