"""What a node plugin's token can do to Pods: MPS daemons on its own node, and nothing else."""

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dra_driver.api import codec
from kubeletplugin.sharing.mps_edits import MpsFolders
from kubeletplugin.sharing.mps_pod import DaemonSettings, build_pod
from tests.cluster.cluster import Cluster
from tests.cluster.image import BUSYBOX
from tests.cluster.plugin import (
    DRIVER,
    NAMESPACE,
    SERVICE_ACCOUNT,
    apply_chart_without_daemonset,
    render_chart_without_daemonset,
)
from tests.cluster.scenario import Manifest, remove
from tests.cluster.test_admission import refusal
from tests.support.builder import a_device

OWN, FOREIGN = "node-y", "node-z"
VALUES = ("mps.enabled=true", f"mps.image={BUSYBOX}")
FOLDERS = MpsFolders(pipes=Path("/var/lib/kubelet/plugins") / DRIVER / "mps", memory=Path(f"/dev/shm/{DRIVER}-mps"))


def a_daemon(node: str = OWN, backend: str = "simulated") -> Manifest:
    settings = DaemonSettings(
        namespace=NAMESPACE, node_name=node, image=BUSYBOX, folders=FOLDERS, service_account="dra-mps-daemon"
    )
    found: Manifest = json.loads(codec.encode(build_pod(a_device(), backend, "uid", settings)))
    return found


def create(cluster: Cluster, token: Path, manifest: Manifest) -> str:
    return refusal(cluster, token, "create", "--dry-run=server", "--filename", "-", stdin=json.dumps(manifest))


@pytest.fixture(scope="module")
def token(cluster: Cluster) -> Iterator[Path]:
    """The plugin's token as a Pod on `OWN` has it, with the policy in force."""
    apply_chart_without_daemonset(cluster, *VALUES)
    cluster.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": OWN}, "spec": {"unschedulable": True}})
    kubeconfig = cluster.token_for(SERVICE_ACCOUNT, NAMESPACE, OWN)
    cluster.wait_for(
        "the policy to be in force", lambda: "own node only" in create(cluster, kubeconfig, a_daemon(FOREIGN))
    )
    yield kubeconfig
    cluster.delete("node", OWN)
    remove(cluster, *render_chart_without_daemonset(cluster, *VALUES), namespace=NAMESPACE)


def test_a_daemon_of_its_own_node_is_its_to_make(cluster: Cluster, token: Path) -> None:
    assert create(cluster, token, a_daemon()) == ""


def _set(path: str, *, to: Any) -> Callable[[Manifest], None]:
    def change(pod: Manifest) -> None:
        *parents, last = (int(part) if part.isdigit() else part for part in path.split("."))
        target: Any = pod
        for part in parents:
            target = target[part]
        target[last] = to

    return change


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param(_set("spec.nodeName", to=FOREIGN), "own node only, not of node 'node-z'", id="another node"),
        pytest.param(_set("spec.nodeName", to=""), "of its own node only, not of node ''", id="any node"),
        pytest.param(_set("metadata.labels", to={}), "may touch MPS daemons only", id="another Pod"),
        pytest.param(_set("spec.containers.0.image", to="evil:1"), "one container of the image", id="image"),
        pytest.param(
            _set("spec.containers.0.envFrom", to=[{"secretRef": {"name": "s"}}]),
            "no values from elsewhere",
            id="secret",
        ),
        pytest.param(_set("spec.hostPID", to=True), "neither a namespace of the host", id="host"),
        pytest.param(_set("spec.automountServiceAccountToken", to=True), "service account's token", id="token"),
        pytest.param(
            _set("spec.serviceAccountName", to=SERVICE_ACCOUNT), "and the account dra-mps-daemon", id="account"
        ),
        pytest.param(_set("spec.volumes.0.hostPath.path", to="/etc"), "has its folders below", id="folder"),
        pytest.param(
            _set("spec.volumes.0.hostPath.path", to=f"{FOLDERS.pipes}/../claims"),
            "has its folders below|must not contain",
            id="dots",
        ),
        pytest.param(
            _set("spec.volumes.0", to={"name": "pipes", "secret": {"secretName": "s"}}), "has its folders", id="volume"
        ),
        pytest.param(
            _set("spec.containers.0.securityContext", to={"privileged": True}), "is not privileged", id="privileged"
        ),
    ],
)
def test_nothing_else_is(cluster: Cluster, token: Path, change: Callable[[Manifest], None], reason: str) -> None:
    pod = copy.deepcopy(a_daemon())
    change(pod)
    refused = create(cluster, token, pod)
    assert any(part in refused for part in reason.split("|")), refused


def test_pods_of_others_are_not_its_to_delete(cluster: Cluster, token: Path) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "other", "namespace": NAMESPACE},
        "spec": {"nodeName": OWN, "containers": [{"name": "main", "image": BUSYBOX}]},
    }
    cluster.apply(pod, NAMESPACE)
    try:
        text = refusal(cluster, token, "delete", "pod", "other", "--namespace", NAMESPACE)
        assert "may touch MPS daemons only" in text
    finally:
        cluster.kubectl("delete", "pod", "other", "--namespace", NAMESPACE, "--force", "--grace-period=0")


def test_what_nvidias_daemon_needs_is_allowed_where_there_are_its_devices(cluster: Cluster, token: Path) -> None:
    daemon = a_daemon(backend="nvidia")
    for problem in ("neither a namespace of the host", "is not privileged", "has its folders below"):
        assert problem in "".join(refusals(cluster, token, daemon)), problem
    apply_chart_without_daemonset(cluster, *VALUES, "nvidia.enabled=true")
    try:
        cluster.wait_for("the daemon to be allowed", lambda: create(cluster, token, daemon) == "")
        daemon["spec"]["hostIPC"] = True
        assert "neither a namespace of the host (but that of its processes)" in create(cluster, token, daemon)
    finally:
        apply_chart_without_daemonset(cluster, *VALUES)


def refusals(cluster: Cluster, token: Path, daemon: Manifest) -> Iterator[str]:
    """Give what is refused of a daemon, one thing after the other: the API server tells only the first."""
    daemon = copy.deepcopy(daemon)
    yield create(cluster, token, daemon)
    daemon["spec"]["hostPID"] = False
    yield create(cluster, token, daemon)
    daemon["spec"]["volumes"] = [volume for volume in daemon["spec"]["volumes"] if volume["name"] != "host"]
    container = daemon["spec"]["containers"][0]
    container["volumeMounts"] = [mount for mount in container["volumeMounts"] if mount["name"] != "host"]
    yield create(cluster, token, daemon)
