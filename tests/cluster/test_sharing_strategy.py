"""Devices whose shares get along by MPS or in turns; the daemons are stand-ins, but real Pods."""

from collections.abc import Iterator

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.image import BUSYBOX
from tests.cluster.plugin import NAMESPACE, PluginProcess
from tests.cluster.scenario import Manifest, Workload, a_claim, a_pod, a_request, results, run_plugins, write_profile

PIPES = "/run/dra-driver/mps"


@pytest.fixture(scope="module", autouse=True)
def plugin(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PluginProcess]:
    """The only card of the cluster is shared by MPS."""
    profile = write_profile(tmp_path_factory.mktemp("sharing"), "h100x8", cards=1)
    values = ("mps.enabled=true", f"mps.image={BUSYBOX}")
    flags = {"sharing_strategy": "MPS", "mps_image": BUSYBOX, "mps_namespace": NAMESPACE}
    with run_plugins(cluster, {"node-a": str(profile)}, values, **flags) as plugins:
        yield plugins["node-a"]


def a_share(name: str, **capacity: str) -> Manifest:
    return a_claim(name, a_request(capacity=capacity))


def daemons(cluster: Cluster) -> list[Manifest]:
    return [
        pod
        for pod in cluster.list("pods", NAMESPACE)
        if pod["metadata"].get("labels", {}).get("app.kubernetes.io/component") == "mps-daemon"
    ]


def test_shares_are_clients_of_one_daemon_that_ends_with_the_last(
    workload: Workload, plugin: PluginProcess, cluster: Cluster
) -> None:
    [device] = plugin.slices()[0]["spec"]["devices"]
    assert device["attributes"]["sharingStrategy"] == {"string": "MPS"}
    assert device["attributes"]["shareEnforcement"] == {"string": "hardware"}
    workload.run(
        a_share("first", memory="8Gi", cores="30"),
        a_share("second", memory="10Gi"),
        a_pod("first", "first"),
        a_pod("second", "second"),
    )
    [first], [second] = (results(workload.claim(name)) for name in ("first", "second"))
    assert first["device"] == second["device"]
    seen = workload.see("first")
    assert {PIPES, "/dev/shm"} <= set(seen.mounts)
    assert seen.environment["CUDA_MPS_PIPE_DIRECTORY"] == PIPES
    assert seen.environment["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] == "0=8192M"
    assert seen.environment["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] == "30"
    assert "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE" not in workload.see("second").environment
    [daemon] = daemons(cluster)
    plugin.restart()
    workload.delete("pod", "first")
    assert [pod["metadata"]["uid"] for pod in daemons(cluster)] == [daemon["metadata"]["uid"]]
    workload.delete("pod", "second")
    cluster.wait_for("the daemon to end", lambda: not daemons(cluster), 30)
