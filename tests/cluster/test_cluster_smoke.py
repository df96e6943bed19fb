"""The cluster itself: if these fail, so does everything else in this folder."""

import json
import socket
from typing import Any

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.conftest import OneNodeCluster
from tests.cluster.image import BUSYBOX


def a_pod(name: str, node: str, command: str, **container: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "nodeName": node,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {
                    "name": "main",
                    "image": BUSYBOX,
                    "imagePullPolicy": "Never",
                    "command": ["sh", "-c", command],
                    **container,
                }
            ],
        },
    }


@pytest.mark.parametrize("node", ["node-a", "node-b"])
def test_a_pod_runs_on_each_node_and_its_log_is_read(cluster: Cluster, node: str) -> None:
    cluster.apply(a_pod(f"hello-{node}", node, "echo hello from $HOSTNAME"))
    cluster.wait_for_phase(f"hello-{node}", "Succeeded")
    assert cluster.pod_logs(f"hello-{node}") == f"hello from hello-{node}\n"
    cluster.delete("pod", f"hello-{node}")


def test_a_command_is_run_in_a_pod_and_the_pod_reaches_the_api_server(cluster: Cluster) -> None:
    cluster.apply(a_pod("inside", "node-b", "sleep 1000"))
    cluster.wait_for_phase("inside", "Running")
    address = cluster.exec("inside", "sh", "-c", "echo $KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT").strip()
    assert address == "10.96.0.1:443"
    cluster.exec("inside", "sh", "-c", "nc -w 5 $KUBERNETES_SERVICE_HOST $KUBERNETES_SERVICE_PORT </dev/null")
    cluster.delete("pod", "inside")


def test_the_tests_open_sockets_in_the_network_of_the_cluster(cluster: Cluster) -> None:
    assert json.loads(cluster.namespace.http_get("http://127.0.0.1:2379/health"))["health"] == "true"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", 2379))


def test_a_pod_outlives_a_restart_of_its_kubelet_and_its_container_is_started_again(cluster: Cluster) -> None:
    node = cluster.nodes["node-a"]
    cluster.apply(a_pod("survivor", "node-a", "sleep 1000"))
    before = cluster.wait_for_phase("survivor", "Running")["status"]["containerStatuses"][0]["containerID"]
    node.kubelet.restart()
    node.kill_container(before)
    cluster.wait_for_phase("survivor", "Failed")
    cluster.delete("pod", "survivor")


def test_containerd_applies_a_cdi_spec_of_the_node(cluster: Cluster) -> None:
    spec = {
        "cdiVersion": "0.6.0",
        "kind": "test.local/device",
        "devices": [{"name": "one", "containerEdits": {"env": ["GIVEN=one"]}}],
    }
    node = cluster.nodes["node-a"]
    (node.cdi_dir / "test.json").write_text(json.dumps(spec))
    assert "GIVEN=one" in node.run_with_cdi_device("test.local/device=one", "env").splitlines()
    (node.cdi_dir / "test.json").unlink()


def test_a_token_is_bound_to_its_node(cluster: Cluster) -> None:
    kubeconfig = cluster.token_for("default", "default", "node-b")
    review = json.loads(cluster.kubectl_as(kubeconfig, "auth", "whoami", "--output=json"))["status"]["userInfo"]
    assert review["username"] == "system:serviceaccount:default:default"
    assert review["extra"]["authentication.kubernetes.io/node-name"] == ["node-b"]


def test_helm_talks_to_the_cluster(cluster: Cluster) -> None:
    assert json.loads(cluster.helm("list", "--output=json")) == []


def test_feature_gates_reach_the_api_server(one_node_cluster: OneNodeCluster) -> None:
    device = {"name": "gpu-0", "allowMultipleAllocations": True}
    resource_slice = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "shared"},
        "spec": {
            "driver": "test.local",
            "allNodes": True,  # those of a node are deleted by its kubelet when it starts
            "pool": {"name": "shared", "generation": 1, "resourceSliceCount": 1},
            "devices": [device],
        },
    }
    with one_node_cluster({"DRAConsumableCapacity": False}) as cluster:
        cluster.apply(resource_slice)
        assert cluster.get("resourceslice", "shared")["spec"]["devices"] == [{"name": "gpu-0"}]
