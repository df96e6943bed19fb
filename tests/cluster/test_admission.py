"""What a node plugin's token can do: what it needs, and nothing to the slices of other nodes."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.network import CommandError
from tests.cluster.plugin import (
    DRIVER,
    NAMESPACE,
    SERVICE_ACCOUNT,
    apply_chart_without_daemonset,
    render_chart_without_daemonset,
)
from tests.cluster.scenario import Manifest, Workload, a_claim, remove

# Nodes without a kubelet, which would delete slices of a driver that does not run there, or that left a moment ago.
OWN = "node-y"
FOREIGN = "node-z"

OTHER_DRIVER = "net.example.com"

VERSIONS = ("v1", "v1beta2", "v1beta1")
NOT_ITS_OWN = f"the node plugin on node {OWN} may write the slices of its own node only, not those of node {FOREIGN}"


@pytest.fixture(scope="module", autouse=True)
def chart(cluster: Cluster) -> Iterator[None]:
    apply_chart_without_daemonset(cluster)
    cluster.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": OWN}, "spec": {"unschedulable": True}})
    yield
    cluster.delete("node", OWN)
    cluster.kubectl("delete", "resourceslices", "--all")
    remove(cluster, *render_chart_without_daemonset(cluster), namespace=NAMESPACE)


@pytest.fixture(scope="module")
def token(cluster: Cluster, chart: None) -> Path:
    """The plugin's token as a Pod on `OWN` has it, known to work: a new policy holds only after a moment."""
    kubeconfig = cluster.token_for(SERVICE_ACCOUNT, NAMESPACE, OWN)
    foreign = json.dumps(a_slice(FOREIGN))

    def is_refused() -> bool:
        return NOT_ITS_OWN in refusal(cluster, kubeconfig, "create", "--dry-run=server", "-f", "-", stdin=foreign)

    cluster.wait_for("the policy to be in force", is_refused)
    return kubeconfig


@pytest.fixture
def foreign(cluster: Cluster) -> Iterator[Manifest]:
    """A slice of another node, as stored."""
    cluster.apply(a_slice(FOREIGN))
    yield cluster.get("resourceslice", FOREIGN)
    cluster.delete("resourceslice", FOREIGN)


def a_slice(node: str, version: str = "v1", *, driver: str = DRIVER, pool: str = "", **spec: object) -> Manifest:
    """Build a slice with the name of its node, and one device; `spec` replaces the node."""
    attributes = {"attributes": {"model": {"string": "H100"}}}
    device = {"name": "gpu-0", **({"basic": attributes} if version == "v1beta1" else attributes)}
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceSlice",
        "metadata": {"name": node},
        "spec": {
            "driver": driver,
            "pool": {"name": pool or node, "generation": 1, "resourceSliceCount": 1},
            "devices": [device],
            **(spec or {"nodeName": node}),
        },
    }


def refusal(cluster: Cluster, kubeconfig: Path, *arguments: str, stdin: str | None = None) -> str:
    """Say why a command of kubectl is refused; nothing if it is not."""
    try:
        cluster.kubectl_as(kubeconfig, *arguments, stdin=stdin)
    except CommandError as error:
        return str(error.stderr)
    return ""


@pytest.mark.parametrize("version", VERSIONS)
def test_slices_of_another_node_are_out_of_reach(
    cluster: Cluster, token: Path, foreign: Manifest, version: str
) -> None:
    kind = f"resourceslices.{version}.resource.k8s.io"
    changed = a_slice(FOREIGN, version)
    changed["metadata"]["resourceVersion"] = foreign["metadata"]["resourceVersion"]
    changed["spec"]["devices"] = []
    another = a_slice(FOREIGN, version)
    another["metadata"] = {"name": "another"}
    for arguments, manifest in (
        (("create", "--filename", "-"), another),
        (("replace", "--filename", "-"), changed),
        (("patch", kind, FOREIGN, "--type=merge", "--patch", '{"spec": {"devices": []}}'), None),
        (("delete", kind, FOREIGN), None),
    ):
        stdin = json.dumps(manifest) if manifest else None
        assert NOT_ITS_OWN in refusal(cluster, token, *arguments, stdin=stdin), arguments
    assert cluster.list("resourceslices") == [foreign]


@pytest.mark.parametrize("version", VERSIONS)
def test_slices_of_its_own_node_are_its_to_write(cluster: Cluster, token: Path, version: str) -> None:
    kind = f"resourceslices.{version}.resource.k8s.io"
    cluster.kubectl_as(token, "create", "--filename", "-", stdin=json.dumps(a_slice(OWN, version)))
    cluster.kubectl_as(token, "patch", kind, OWN, "--type=merge", "--patch", '{"spec": {"devices": []}}')
    assert "devices" not in cluster.get("resourceslice", OWN)["spec"]
    cluster.kubectl_as(token, "delete", kind, OWN)
    assert cluster.list("resourceslices") == []


@pytest.mark.parametrize(
    ("manifest", "reason"),
    [
        pytest.param(a_slice(OWN, pool=FOREIGN, nodeName=OWN), f"own node only, not to pool {FOREIGN}", id="pool"),
        pytest.param(a_slice(OWN, driver="other.example.com"), "not of other.example.com", id="driver"),
        pytest.param(a_slice(OWN, allNodes=True), "not those of several nodes", id="all nodes"),
        pytest.param(
            a_slice(OWN, nodeSelector={"nodeSelectorTerms": [{"matchFields": [
                {"key": "metadata.name", "operator": "In", "values": [OWN]}]}]}),
            "not those of several nodes", id="node selector",
        ),
    ],
)  # fmt: skip
def test_slices_that_reach_beyond_its_own_pool_are_refused(
    cluster: Cluster, token: Path, manifest: Manifest, reason: str
) -> None:
    assert reason in refusal(cluster, token, "create", "--filename", "-", stdin=json.dumps(manifest))


def test_a_token_that_is_bound_to_no_node_writes_no_slice(cluster: Cluster, token: Path, foreign: Manifest) -> None:
    unbound = cluster.token_for(SERVICE_ACCOUNT, NAMESPACE)
    create = ("create", "--filename", "-")
    said = refusal(cluster, unbound, *create, stdin=json.dumps(a_slice(OWN)))
    assert "the token of the node plugin is bound to no node" in said
    assert "bound to no node" in refusal(cluster, unbound, "delete", "resourceslice", FOREIGN)
    assert cluster.list("resourceslices") == [foreign]


def test_an_administrator_is_not_confined(cluster: Cluster, token: Path) -> None:
    cluster.apply(a_slice(FOREIGN, driver="other.example.com"))
    cluster.delete("resourceslice", FOREIGN)


def rights(cluster: Cluster, kubeconfig: Path) -> set[tuple[str, str]]:
    """List what roles allow a user in a namespace, as resources and verbs."""
    review = {
        "kind": "SelfSubjectRulesReview",
        "apiVersion": "authorization.k8s.io/v1",
        "spec": {"namespace": "default"},
    }
    command = ("create", "--validate=false", "--output=json", "--filename", "-")
    answer = cluster.kubectl_as(kubeconfig, *command, stdin=json.dumps(review))
    return {
        (f"{resource}.{group}".rstrip("."), verb)
        for rule in json.loads(answer)["status"]["resourceRules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_the_roles_of_its_account_allow_what_it_needs_and_no_more(cluster: Cluster, token: Path) -> None:
    everybody = rights(cluster, cluster.token_for("default", NAMESPACE))
    slices, every = "resourceslices.resource.k8s.io", ("get", "list", "watch", "create", "update", "patch", "delete")
    assert rights(cluster, token) - everybody == {
        *(("nodes", verb) for verb in ("get", "list", "watch")),
        ("resourceclaims.resource.k8s.io", "get"),
        ("resourceclaims/status.resource.k8s.io", "patch"),
        ("resourceclaims/driver.resource.k8s.io", "associated-node:patch"),
        ("events", "create"),
        ("events", "patch"),
        *((slices, verb) for verb in every),
    }


@pytest.mark.parametrize(
    "arguments",
    [
        "get secrets --all-namespaces",
        "get configmaps --namespace kube-system",
        "get pods --all-namespaces",
        "get resourceclaims --all-namespaces",
        "get deviceclasses",
        "get events --all-namespaces",
        f"label node {OWN} owned=yes",
        f"patch node {OWN} --subresource=status --patch {{}}",
        f"taint node {OWN} owned=yes:NoExecute",
        "delete node node-b",
        'patch resourceclaim held --type=merge --patch {"metadata":{"labels":{"a":"b"}}}',
        "delete resourceclaim held",
        "delete deviceclass gpu.dra-driver.io",
        "delete validatingadmissionpolicybinding dra-kubeletplugin",
        "create token dra-kubeletplugin --namespace dra-driver",
        "create clusterrolebinding owned --clusterrole=cluster-admin --serviceaccount=dra-driver:dra-kubeletplugin",
        "run pod --image=busybox",
        "delete --raw /apis/resource.k8s.io/v1/resourceslices",
        "get --raw /api/v1/nodes/node-b/proxy/pods",
    ],
)  # fmt: skip
def test_it_is_refused_what_it_does_not_need(cluster: Cluster, token: Path, workload: Workload, arguments: str) -> None:
    workload.apply(a_claim("held"))
    assert "is forbidden: User" in refusal(cluster, token, *arguments.split())


def test_it_reads_its_node_and_a_claim_and_tells_of_them(cluster: Cluster, token: Path, workload: Workload) -> None:
    workload.apply(a_claim("held"))
    uid = cluster.kubectl_as(token, "get", "resourceclaim", "held", "--output=jsonpath={.metadata.uid}")
    cluster.kubectl_as(token, "get", "node", OWN)
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "told", "namespace": "default"},
        "involvedObject": {
            "kind": "ResourceClaim",
            "name": "held",
            "namespace": "default",
            "uid": uid,
        },
        "reason": "PrepareFailed",
        "message": "told by a test",
        "type": "Warning",
    }
    cluster.kubectl_as(token, "create", "--filename", "-", stdin=json.dumps(event))
    cluster.delete("event", "told")


def an_allocated_claim(cluster: Cluster, workload: Workload, node: str, devices: int = 1) -> Manifest:
    """Store a claim that is allocated on a node: so many devices of the plugin's driver and of another."""
    workload.apply(a_claim("held"))
    results = [
        {"request": "device", "driver": driver, "pool": node, "device": f"gpu-{index}"}
        for driver in (DRIVER, OTHER_DRIVER)
        for index in range(devices)
    ]
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]
    status = {"allocation": {"devices": {"results": results}, "nodeSelector": {"nodeSelectorTerms": terms}}}
    merge = ("--subresource=status", "--type=merge", "--patch", json.dumps({"status": status}))
    cluster.kubectl("patch", "resourceclaim", "held", *merge)
    return cluster.get("resourceclaim", "held", "default")


def refused_status(cluster: Cluster, kubeconfig: Path, **status: object) -> str:
    """Apply a status to the claim, as the plugin does, and say why that is refused, if it is."""
    named = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "held"}}
    applied = json.dumps({**named, "status": status})
    how = ("--server-side", "--subresource=status", "--field-manager=plugin", "--force-conflicts", "--validate=false")
    return refusal(cluster, kubeconfig, "apply", *how, "--filename", "-", stdin=applied)


def a_status(driver: str, node: str, index: int = 0, uuid: str = "GPU-0") -> Manifest:
    return {"driver": driver, "pool": node, "device": f"gpu-{index}", "data": {"uuid": uuid}}


def test_it_tells_of_its_own_devices_in_claims_of_its_own_node(
    cluster: Cluster, token: Path, workload: Workload
) -> None:
    an_allocated_claim(cluster, workload, OWN)
    own, other = a_status(DRIVER, OWN), a_status(OTHER_DRIVER, OWN)
    assert refused_status(cluster, token, devices=[own]) == ""
    assert "changing status.devices requires" in refused_status(cluster, token, devices=[own, other])
    user = {"resource": "pods", "name": "nobody", "uid": "f8a2a0e8-4f1b-4c58-bb38-35a4bc0a2b8c"}
    assert "resourceclaims/binding" in refused_status(cluster, token, devices=[own], reservedFor=[user])
    assert [entry["driver"] for entry in workload.claim("held")["status"]["devices"]] == [DRIVER]


def test_it_tells_nothing_of_claims_of_another_node(cluster: Cluster, token: Path, workload: Workload) -> None:
    an_allocated_claim(cluster, workload, FOREIGN)
    assert "changing status.devices requires" in refused_status(cluster, token, devices=[a_status(DRIVER, FOREIGN)])
    assert "devices" not in workload.claim("held")["status"]


# What holds where Kubernetes does not tell one driver's entries from another's: before 1.36, or with more rights.


@pytest.fixture
def mighty(cluster: Cluster, token: Path) -> Iterator[Path]:
    """The same token while a careless administrator lets it do everything, so that only the policies are left."""
    arguments = ("--clusterrole=cluster-admin", f"--serviceaccount={NAMESPACE}:{SERVICE_ACCOUNT}")
    cluster.kubectl("create", "clusterrolebinding", "careless", *arguments)
    cluster.wait_for("the role to be known", lambda: cluster.kubectl_as(token, "get", "secrets", "-A") is not None)
    yield token
    cluster.kubectl("delete", "clusterrolebinding", "careless")


def replaced_status(cluster: Cluster, kubeconfig: Path, version: str = "v1", **status: object) -> str:
    """Replace parts of the claim's status, and say why that is refused, if it is."""
    merge = ("--subresource=status", "--type=merge", "--patch-file=/dev/stdin")
    kind, patch = f"resourceclaims.{version}.resource.k8s.io", json.dumps({"status": status})
    return refusal(cluster, kubeconfig, "patch", kind, "held", *merge, stdin=patch)


def tell(cluster: Cluster, *devices: Manifest) -> None:
    assert replaced_status(cluster, cluster.control_plane.admin, devices=list(devices)) == ""


@pytest.mark.parametrize("version", VERSIONS)
def test_a_policy_keeps_it_to_its_own_devices(cluster: Cluster, mighty: Path, workload: Workload, version: str) -> None:
    an_allocated_claim(cluster, workload, OWN)
    own, other = a_status(DRIVER, OWN), a_status(OTHER_DRIVER, OWN)
    told = f"in the pool of its own node only, not of {OTHER_DRIVER} {OWN}/gpu-0"
    assert told in replaced_status(cluster, mighty, version, devices=[own, other])
    assert replaced_status(cluster, mighty, version, devices=[own]) == ""
    tell(cluster, own, other)
    for changed in ([own], [own, {**other, "data": {"uuid": "GPU-1"}}], []):
        assert told in replaced_status(cluster, mighty, version, devices=changed)
    assert replaced_status(cluster, mighty, version, devices=[other, {**own, "data": {"uuid": "GPU-1"}}]) == ""
    assert replaced_status(cluster, mighty, version, devices=[other]) == ""


def test_a_policy_keeps_it_to_the_pool_of_its_own_node(cluster: Cluster, mighty: Path, workload: Workload) -> None:
    an_allocated_claim(cluster, workload, FOREIGN)
    told = f"not of {DRIVER} {FOREIGN}/gpu-0"
    assert told in refused_status(cluster, mighty, devices=[a_status(DRIVER, FOREIGN)])
    tell(cluster, a_status(DRIVER, FOREIGN))
    assert told in replaced_status(cluster, mighty, devices=None)


def test_a_policy_keeps_it_off_everything_else_in_the_status(
    cluster: Cluster, mighty: Path, workload: Workload
) -> None:
    an_allocated_claim(cluster, workload, OWN)
    user = {"resource": "pods", "name": "nobody", "uid": "f8a2a0e8-4f1b-4c58-bb38-35a4bc0a2b8c"}
    only = "may change only status.devices of a claim, not status."
    assert f"{only}reservedFor" in replaced_status(cluster, mighty, reservedFor=[user])
    assert f"{only}allocation" in replaced_status(cluster, mighty, allocation=None)
    own = a_status(DRIVER, OWN)
    assert f"{only}reservedFor" in refused_status(cluster, mighty, devices=[own], reservedFor=[user])
    assert refused_status(cluster, mighty, devices=[own]) == ""


def test_a_policy_can_afford_to_look_at_the_largest_status(cluster: Cluster, mighty: Path, workload: Workload) -> None:
    most = 16  # of each of two drivers: 32 devices a claim, 10 KiB of data each
    an_allocated_claim(cluster, workload, OWN, most)
    long, other_long = "x" * 9000, "y" * 9000
    others = [a_status(OTHER_DRIVER, OWN, index, long) for index in range(most)]
    tell(cluster, *(a_status(DRIVER, OWN, index, long) for index in range(most)), *others)
    own = [a_status(DRIVER, OWN, index, other_long) for index in range(most)]
    assert refused_status(cluster, mighty, devices=own) == ""
    changed = [a_status(OTHER_DRIVER, OWN, index, other_long) for index in range(most)]
    assert f"not of {OTHER_DRIVER} {OWN}/gpu-0, " in refused_status(cluster, mighty, devices=[*own, *changed])


def test_a_token_that_is_bound_to_no_node_tells_nothing_of_claims(
    cluster: Cluster, mighty: Path, workload: Workload
) -> None:
    an_allocated_claim(cluster, workload, OWN)
    unbound = cluster.token_for(SERVICE_ACCOUNT, NAMESPACE)
    assert "bound to no node" in refused_status(cluster, unbound, devices=[a_status(DRIVER, OWN)])
