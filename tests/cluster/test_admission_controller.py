"""What the controller's token can do to Pods and claims, and which claims nobody may make once it is there."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.plugin import NAMESPACE, apply_chart_without_daemonset, render_chart_without_daemonset
from tests.cluster.scenario import (
    Manifest,
    Workload,
    a_claim,
    a_claim_template,
    a_pod,
    a_request,
    an_alternative,
    remove,
)
from tests.cluster.test_admission import VERSIONS, refusal, rights

SERVICE_ACCOUNT = "dra-controller"
ENABLED = "controller.enabled=true"

GATE = "dra-driver.io/allocation"
KEY = "dra-driver.io/allocator"
GATES = ["first.example.com/gate", GATE, "last.example.com/gate"]
PROTECTION = "resource.kubernetes.io/delete-protection"
ONLY_ITS_GATE = "the controller may only take its gate dra-driver.io/allocation from a Pod, not "
ONLY_ALLOCATE = "the controller may only allocate, reserve and deallocate claims, not "
TOLERATES = "tolerates the taint dra-driver.io/allocator, want only tolerations that name another key"


@pytest.fixture(scope="module", autouse=True)
def chart(cluster: Cluster) -> Iterator[None]:
    apply_chart_without_daemonset(cluster, ENABLED)
    yield
    remove(cluster, *render_chart_without_daemonset(cluster, ENABLED), namespace=NAMESPACE)


@pytest.fixture(scope="module", autouse=True)
def policies(cluster: Cluster, chart: None) -> None:
    """Wait until the policies are in force: a new one holds only after a moment."""

    def are_in_force() -> bool:
        return TOLERATES in create(cluster, cluster.control_plane.admin, with_toleration({"operator": "Exists"}))

    cluster.wait_for("the policies to be in force", are_in_force)


@pytest.fixture(scope="module")
def token(cluster: Cluster, policies: None) -> Path:
    """The controller's token, as its Pod has it."""
    return cluster.token_for(SERVICE_ACCOUNT, NAMESPACE)


@pytest.fixture
def mighty(cluster: Cluster, token: Path) -> Iterator[Path]:
    """The same token while a careless administrator lets it do everything, so that only the policies are left."""
    arguments = ("--clusterrole=cluster-admin", f"--serviceaccount={NAMESPACE}:{SERVICE_ACCOUNT}")
    cluster.kubectl("create", "clusterrolebinding", "careless", *arguments)
    cluster.wait_for("the role to be known", lambda: cluster.kubectl_as(token, "get", "secrets", "-A") is not None)
    yield token
    cluster.kubectl("delete", "clusterrolebinding", "careless")


@pytest.fixture
def gated(workload: Workload) -> Manifest:
    """A Pod with the controller's gate between two others."""
    pod = a_pod("gated")
    pod["metadata"] |= {"labels": {"app": "x"}, "annotations": {"a": "b"}}
    pod["spec"]["schedulingGates"] = [{"name": name} for name in GATES]
    workload.apply(pod)
    return pod


def create(cluster: Cluster, kubeconfig: Path, manifest: Manifest) -> str:
    return refusal(cluster, kubeconfig, "create", "--dry-run=server", "--filename=-", stdin=json.dumps(manifest))


def patch(cluster: Cluster, kubeconfig: Path, kind: str, name: str, value: object, *flags: str) -> str:
    how = "json" if isinstance(value, list) else "merge"
    return refusal(cluster, kubeconfig, "patch", kind, name, f"--type={how}", f"--patch={json.dumps(value)}", *flags)


def ungating(*indexes: int) -> list[dict[str, object]]:
    return [{"op": "remove", "path": f"/spec/schedulingGates/{index}"} for index in indexes]


# Pods


def test_it_takes_its_gate_from_a_pod(cluster: Cluster, token: Path, gated: Manifest) -> None:
    assert patch(cluster, token, "pod", "gated", ungating(1)) == ""
    gates = cluster.get("pod", "gated")["spec"]["schedulingGates"]
    assert [gate["name"] for gate in gates] == [GATES[0], GATES[2]]


def test_it_takes_the_last_gate_from_a_pod(cluster: Cluster, token: Path, workload: Workload) -> None:
    pod = a_pod("single")
    pod["spec"] |= {"schedulingGates": [{"name": GATE}], "nodeSelector": {"no": "such-node"}}
    workload.apply(pod)
    assert patch(cluster, token, "pod", "single", ungating(0)) == ""
    assert "schedulingGates" not in cluster.get("pod", "single")["spec"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        pytest.param(ungating(0), f"change its gates from [first.example.com/gate, {GATE}, ", id="another gate"),
        pytest.param(ungating(2, 1), "to [first.example.com/gate]", id="another gate with its own"),
        pytest.param(
            [{"op": "replace", "path": "/spec/containers/0/image", "value": "evil"}, *ungating(1)],
            "change spec.containers",
            id="image",
        ),
        pytest.param({"spec": {"activeDeadlineSeconds": 1}}, "change spec.activeDeadlineSeconds", id="deadline"),
        pytest.param({"spec": {"nodeSelector": {"zone": "a"}}}, "change spec.nodeSelector", id="node selector"),
        pytest.param(
            [{"op": "add", "path": "/spec/tolerations/-", "value": {"operator": "Exists"}}],
            "change spec.tolerations",
            id="toleration",
        ),
        pytest.param({"metadata": {"labels": {"app": "y"}}}, "change metadata.labels", id="label"),
        pytest.param({"metadata": {"labels": None}}, "change metadata.labels", id="no labels"),
        pytest.param({"metadata": {"annotations": {"c": "d"}}}, "change metadata.annotations", id="annotation"),
        pytest.param({"metadata": {"finalizers": ["a.example.com/b"]}}, "change metadata.finalizers", id="finalizer"),
        pytest.param(
            {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "node-a", "uid": "u"}]}},
            "change metadata.ownerReferences",
            id="owner",
        ),
        pytest.param(
            [*ungating(1), {"op": "add", "path": "/metadata/labels/c", "value": "d"}],
            "change metadata.labels",
            id="label with the gate",
        ),
    ],
)
def test_it_changes_nothing_else_of_a_pod(
    cluster: Cluster, token: Path, gated: Manifest, change: object, problem: str
) -> None:
    before = cluster.get("pod", "gated")
    said = patch(cluster, token, "pod", "gated", change)
    assert ONLY_ITS_GATE in said
    assert problem in said
    assert cluster.get("pod", "gated") == before


def test_even_with_every_role_it_does_nothing_else_to_pods(cluster: Cluster, mighty: Path, gated: Manifest) -> None:
    assert f"{ONLY_ITS_GATE}CREATE pods" in create(cluster, mighty, a_pod("another"))
    assert f"{ONLY_ITS_GATE}DELETE pods" in refusal(cluster, mighty, "delete", "pod", "gated")
    status = {"status": {"phase": "Failed"}}
    assert f"{ONLY_ITS_GATE}UPDATE pods/status" in patch(
        cluster, mighty, "pod", "gated", status, "--subresource=status"
    )
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "gated", "namespace": "default"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "node-a"},
    }
    path = "/api/v1/namespaces/default/pods/gated/binding"
    said = refusal(cluster, mighty, "create", f"--raw={path}", "--filename=-", stdin=json.dumps(binding))
    assert f"{ONLY_ITS_GATE}CREATE pods/binding" in said


def test_others_change_pods_as_before(cluster: Cluster, gated: Manifest) -> None:
    assert patch(cluster, cluster.control_plane.admin, "pod", "gated", {"metadata": {"labels": {"app": "y"}}}) == ""


# Claims


def allocation() -> dict[str, object]:
    result = {"request": "device", "driver": "accel.dra-driver.io", "pool": "node-a", "device": "gpu-0"}
    return {"devices": {"results": [result]}, "allocationTimestamp": "2026-01-01T00:00:00Z"}


def test_it_protects_allocates_reserves_and_deallocates(
    cluster: Cluster, mighty: Path, gated: Manifest, workload: Workload
) -> None:
    # kubectl reads a subresource before it patches it, which the controller's own role does not allow.
    workload.apply(a_claim("held"))
    uid = cluster.get("pod", gated["metadata"]["name"])["metadata"]["uid"]
    status = {"allocation": allocation(), "reservedFor": [{"resource": "pods", "name": "gated", "uid": uid}]}
    assert patch(cluster, mighty, "resourceclaim", "held", {"metadata": {"finalizers": [PROTECTION]}}) == ""
    assert patch(cluster, mighty, "resourceclaim", "held", {"status": status}, "--subresource=status") == ""
    assert cluster.get("resourceclaim", "held")["status"] == status
    back = {"status": {"allocation": None, "reservedFor": None}}
    assert patch(cluster, mighty, "resourceclaim", "held", back, "--subresource=status") == ""
    assert patch(cluster, mighty, "resourceclaim", "held", {"metadata": {"finalizers": []}}) == ""


@pytest.mark.parametrize(
    ("field", "value"),
    [
        pytest.param("labels", {"a": "b"}, id="label"),
        pytest.param("annotations", {"a": "b"}, id="annotation"),
        pytest.param("finalizers", ["other.example.com/x"], id="finalizer"),
    ],
)
def test_it_changes_nothing_else_of_a_claim(
    cluster: Cluster, token: Path, workload: Workload, field: str, value: object
) -> None:
    workload.apply(a_claim("held"))
    for version in VERSIONS:
        kind = f"resourceclaims.{version}.resource.k8s.io"
        said = patch(cluster, token, kind, "held", {"metadata": {field: value}})
        assert f"{ONLY_ALLOCATE}change metadata.{field}" in said


def test_even_with_every_role_it_writes_no_device_status_and_makes_or_deletes_no_claim(
    cluster: Cluster, mighty: Path, workload: Workload
) -> None:
    workload.apply(a_claim("held"))
    assert f"{ONLY_ALLOCATE}CREATE resourceclaims" in create(cluster, mighty, a_claim("another"))
    assert f"{ONLY_ALLOCATE}DELETE resourceclaims" in refusal(cluster, mighty, "delete", "resourceclaim", "held")
    device = {"driver": "accel.dra-driver.io", "pool": "node-a", "device": "gpu-0", "data": {"a": "b"}}
    status = {"status": {"allocation": allocation(), "devices": [device]}}
    said = patch(cluster, mighty, "resourceclaim", "held", status, "--subresource=status")
    assert f"{ONLY_ALLOCATE}change status.devices" in said


# Who tolerates the taint


def with_toleration(toleration: Manifest, version: str = "v1", **request: Any) -> Manifest:
    """Build a claim with one request that has a toleration."""
    claim = a_claim("tolerant", a_request("device", tolerations=[toleration], **request))
    if version == "v1beta1":
        [one] = claim["spec"]["devices"]["requests"]
        claim["spec"]["devices"]["requests"] = [{"name": one["name"], **one["exactly"]}]
    return {**claim, "apiVersion": f"resource.k8s.io/{version}"}


def as_template(claim: Manifest) -> Manifest:
    return {**claim, "kind": "ResourceClaimTemplate", "spec": {"spec": claim["spec"]}}


TOLERATIONS = [
    pytest.param({"key": KEY, "operator": "Exists"}, id="the key"),
    pytest.param({"key": KEY, "operator": "Equal", "value": "controller"}, id="key and value"),
    pytest.param({"key": KEY, "operator": "Equal", "value": "other"}, id="another value"),
    pytest.param({"key": KEY, "operator": "Exists", "effect": "NoSchedule"}, id="key and effect"),
    pytest.param({"key": KEY, "operator": "Exists", "effect": "NoExecute"}, id="another effect"),
    pytest.param({"operator": "Exists"}, id="everything"),
    pytest.param({"operator": "Exists", "effect": "NoSchedule"}, id="everything of the effect"),
]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("toleration", TOLERATIONS)
def test_no_claim_and_no_template_may_tolerate_the_taint(cluster: Cluster, toleration: Manifest, version: str) -> None:
    admin, claim = cluster.control_plane.admin, with_toleration(toleration, version)
    for manifest in (claim, as_template(claim)):
        assert f"request device: {TOLERATES}" in create(cluster, admin, manifest)


@pytest.mark.parametrize("version", VERSIONS)
def test_no_alternative_may_either(cluster: Cluster, version: str) -> None:
    gpu = "gpu.dra-driver.io"
    alternatives = [an_alternative("a", gpu), an_alternative("b", gpu, tolerations=[{"operator": "Exists"}])]
    claim = a_claim("tolerant", a_request("well"), {"name": "ill", "firstAvailable": alternatives})
    if version == "v1beta1":
        well, ill = claim["spec"]["devices"]["requests"]
        claim["spec"]["devices"]["requests"] = [{"name": well["name"], **well["exactly"]}, ill]
    claim["apiVersion"] = f"resource.k8s.io/{version}"
    for manifest in (claim, as_template(claim)):
        assert f"request ill: {TOLERATES}" in create(cluster, cluster.control_plane.admin, manifest)


@pytest.mark.parametrize(
    "toleration",
    [
        pytest.param({"key": "dra-driver.io/unhealthy", "operator": "Exists"}, id="another key"),
        pytest.param({"operator": "Exists", "effect": "NoExecute"}, id="everything of another effect"),
    ],
)
def test_other_tolerations_are_as_they_were(cluster: Cluster, toleration: Manifest) -> None:
    assert create(cluster, cluster.control_plane.admin, with_toleration(toleration)) == ""
    assert create(cluster, cluster.control_plane.admin, as_template(with_toleration(toleration))) == ""


def test_who_only_looks_on_may_tolerate_everything(cluster: Cluster, workload: Workload) -> None:
    labels = {"resource.kubernetes.io/admin-access": "true"}
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "monitors", "labels": labels}})
    claim = with_toleration({"operator": "Exists"}, adminAccess=True)
    claim["metadata"]["namespace"] = "monitors"
    assert create(cluster, cluster.control_plane.admin, claim) == ""
    assert create(cluster, cluster.control_plane.admin, as_template(claim)) == ""
    cluster.kubectl("delete", "namespace", "monitors", "--wait=false")


def test_a_toleration_does_not_come_later(cluster: Cluster, workload: Workload) -> None:
    workload.apply(a_claim("plain"), a_claim_template("plain"))
    path = "/spec/devices/requests/0/exactly/tolerations"
    add = {"op": "add", "value": [{"operator": "Exists"}]}
    admin = cluster.control_plane.admin
    assert "immutable" in patch(cluster, admin, "resourceclaim", "plain", [{**add, "path": path}])
    assert "immutable" in patch(cluster, admin, "resourceclaimtemplate", "plain", [{**add, "path": f"/spec{path}"}])


# Roles


def test_the_roles_of_its_account_allow_what_it_needs_and_no_more(cluster: Cluster, token: Path) -> None:
    everybody = rights(cluster, cluster.token_for("default", NAMESPACE))
    read = ("get", "list", "watch")
    group = "resource.k8s.io"
    readable = ("nodes", "pods", *(f"{kind}.{group}" for kind in ("resourceslices", "deviceclasses", "resourceclaims")))
    assert rights(cluster, token) - everybody == {
        *((kind, verb) for kind in (*readable, f"devicetaintrules.{group}") for verb in read),
        ("pods", "patch"),
        (f"resourceclaims.{group}", "patch"),
        (f"resourceclaims/status.{group}", "patch"),
        (f"resourceclaims/binding.{group}", "patch"),
        ("events", "create"),
        ("events", "patch"),
    }


@pytest.mark.parametrize(
    "arguments",
    [
        "get secrets --all-namespaces",
        "get configmaps --namespace kube-system",
        "get leases --all-namespaces",
        "get lease other --namespace dra-driver",
        "delete lease dra-controller --namespace dra-driver",
        "create lease-in kube-system",
        "delete pod gated",
        "create token dra-controller --namespace dra-driver",
        "label node node-a owned=yes",
        "taint node node-a owned=yes:NoExecute",
        "label deviceclass gpu.dra-driver.io dra-driver.io/allocator=controller",
        "delete resourceclaim held",
        "delete resourceslice some",
        "delete validatingadmissionpolicybinding dra-controller-pods",
        "create clusterrolebinding owned --clusterrole=cluster-admin --serviceaccount=dra-driver:dra-controller",
        "run pod --image=busybox",
    ],
)
def test_it_is_refused_what_it_does_not_need(cluster: Cluster, token: Path, workload: Workload, arguments: str) -> None:
    workload.apply(a_claim("held"))
    if arguments.startswith("create lease-in"):
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "dra-controller", "namespace": "kube-system"},
        }
        said = create(cluster, token, lease)
    else:
        said = refusal(cluster, token, *arguments.split())
    assert "is forbidden: User" in said
