"""Which claim an entry of a Pod means, and who may use a claim."""

from typing import Any

import msgspec
import pytest

from dra_driver.api.core_v1 import Pod
from dra_driver.api.resource_v1 import ResourceClaim
from dra_driver.pod_claim import find_claim_name, is_live, is_made_for, is_reserved_for, refer_to
from tests.support.control import a_claim, a_pod
from tests.support.control_object import read


@pytest.mark.parametrize(
    ("pod", "name"),
    [
        (a_pod("pod-1", "claim-1"), "claim-1"),
        (a_pod(templates=["gpu"]), None),
        (a_pod(templates=["gpu"]) | {"status": {"resourceClaimStatuses": [{"name": "gpu"}]}}, None),
        (
            a_pod(templates=["gpu"])
            | {"status": {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "pod-1-gpu-x"}]}},
            "pod-1-gpu-x",
        ),
    ],
    ids=["named", "not made yet", "none needed", "made"],
)
def test_a_claim_has_the_name_that_the_pod_or_its_status_says(pod: dict[str, Any], name: str | None) -> None:
    found = read(pod, Pod)
    assert find_claim_name(found, found.spec.resource_claims[0]) == name


@pytest.mark.parametrize(
    ("change", "is_made"), [({}, True), ({"uid": "uid-other"}, False), ({"controller": False}, False)], ids=str
)
def test_a_claim_is_made_for_the_pod_that_controls_it(change: dict[str, Any], *, is_made: bool) -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "pod-1", "uid": "uid-pod-1", "controller": True}
    claim = read(a_claim("x", ownerReferences=[owner | change]), ResourceClaim)
    assert is_made_for(claim, read(a_pod(), Pod)) is is_made


def test_a_reservation_goes_by_uid() -> None:
    pod = read(a_pod(), Pod)
    claim = a_claim()
    claim["status"] = {"reservedFor": [{"resource": "pods", "name": "pod-1", "uid": "uid-earlier"}]}
    assert not is_reserved_for(read(claim, ResourceClaim), pod)
    claim["status"]["reservedFor"].append(msgspec.to_builtins(refer_to(pod)))
    assert is_reserved_for(read(claim, ResourceClaim), pod)


@pytest.mark.parametrize(
    ("node", "phase", "deleted", "live"),
    [
        ("", "Pending", False, True),
        ("", "", False, True),
        ("", "Pending", True, False),
        ("node-a", "Pending", False, True),
        ("node-a", "Running", True, True),
        ("node-a", "Succeeded", False, False),
        ("", "Failed", False, False),
    ],
)
def test_a_pod_needs_its_claims_until_it_has_ended(node: str, phase: str, *, deleted: bool, live: bool) -> None:
    manifest = a_pod(nodeName=node) | {"status": {"phase": phase}}
    if deleted:
        manifest["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert is_live(read(manifest, Pod)) is live
