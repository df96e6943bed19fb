from controller.patch import (
    build_allocation,
    build_deallocation,
    build_protection,
    build_release,
    build_reservation,
    build_ungating,
)
from dra_driver.api import codec
from dra_driver.api.core_v1 import Pod
from dra_driver.api.resource_v1 import AllocationResult, ResourceClaim
from dra_driver.pod_claim import refer_to
from tests.support.control import a_claim, a_pod
from tests.support.control_object import read

GUARD = {"uid": "uid-claim-1", "resourceVersion": "1"}
FINALIZER = "resource.kubernetes.io/delete-protection"


def plain(patch: object) -> object:
    return codec.decode(codec.encode(patch), dict)


def test_every_patch_of_a_claim_is_for_this_version_of_it_only() -> None:
    claim, pod = read(a_claim(finalizers=["x"]), ResourceClaim), refer_to(read(a_pod(), Pod))
    patches = [
        build_protection(claim),
        build_release(claim),
        build_allocation(claim, AllocationResult(), pod, "2026-01-01T00:00:00Z"),
        build_reservation(claim, pod),
        build_deallocation(claim),
    ]
    for patch in patches:
        assert {name: patch["metadata"][name] for name in GUARD} == GUARD


def test_protecting_and_releasing_leave_other_finalizers() -> None:
    claim = read(a_claim(finalizers=["x", "y"]), ResourceClaim)
    assert build_protection(claim)["metadata"]["finalizers"] == ["x", "y", FINALIZER]
    protected = read(a_claim(finalizers=["x", FINALIZER, "y"]), ResourceClaim)
    assert build_release(protected)["metadata"]["finalizers"] == ["x", "y"]


def test_allocation_timestamp_and_reservation_are_one_patch() -> None:
    claim, pod = read(a_claim(), ResourceClaim), read(a_pod(), Pod)
    patch = build_allocation(claim, AllocationResult(), refer_to(pod), "2026-01-01T00:00:00Z")
    assert plain(patch["status"]) == {
        "allocation": {"devices": {}, "allocationTimestamp": "2026-01-01T00:00:00Z"},
        "reservedFor": [{"resource": "pods", "name": "pod-1", "uid": "uid-pod-1"}],
    }


def test_one_more_reservation_keeps_the_others() -> None:
    claim = a_claim() | {"status": {"reservedFor": [{"resource": "pods", "name": "first", "uid": "uid-first"}]}}
    patch = build_reservation(read(claim, ResourceClaim), refer_to(read(a_pod("second"), Pod)))
    assert [entry.name for entry in patch["status"]["reservedFor"]] == ["first", "second"]


def test_the_gate_is_removed_from_this_very_pod_and_place() -> None:
    pod = read(a_pod(gates=["example.com/other", "dra-driver.io/allocation"]), Pod)
    assert build_ungating(pod) == [
        {"op": "test", "path": "/metadata/uid", "value": "uid-pod-1"},
        {"op": "test", "path": "/spec/schedulingGates/1/name", "value": "dra-driver.io/allocation"},
        {"op": "remove", "path": "/spec/schedulingGates/1"},
    ]
