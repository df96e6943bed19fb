"""Devices whose shares get along by MPS; the daemons are stand-ins, but real Pods that are really killed."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.image import BUSYBOX
from tests.cluster.plugin import DRIVER, NAMESPACE, PluginProcess
from tests.cluster.scenario import (
    Manifest,
    Workload,
    a_claim,
    a_pod,
    a_request,
    device_of,
    plugin_dir,
    results,
    run_plugins,
    run_workload,
    write_profile,
)

PIPES = "/run/dra-driver/mps"
MPS_ACCOUNT = "dra-mps-daemon"
MEMORY = Path(f"/dev/shm/{DRIVER}-mps")


@pytest.fixture(scope="module", autouse=True)
def plugin(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PluginProcess]:
    """The only two GPUs of the cluster are shared by MPS."""
    profile = write_profile(tmp_path_factory.mktemp("sharing"), "h100x8", gpus=2)
    values = ("mps.enabled=true", f"mps.image={BUSYBOX}")
    flags = {
        "sharing_strategy": "MPS",
        "mps_image": BUSYBOX,
        "mps_namespace": NAMESPACE,
        "mps_service_account": MPS_ACCOUNT,
    }
    with run_plugins(cluster, {"node-a": str(profile)}, values, **flags) as plugins:
        yield plugins["node-a"]


@pytest.fixture
def workload(plugin: PluginProcess) -> Iterator[Workload]:
    """Nothing of any daemon is left once the last claim is gone."""
    with run_workload(plugin) as workload:
        yield workload
    plugin.cluster.wait_for("nothing to be left of MPS", lambda: not left(plugin), 30)


def left(plugin: PluginProcess) -> list[object]:
    """List the daemons, and the folders of the node's devices: `/dev/shm` is that of the machine of the tests."""
    devices = [device["name"] for part in plugin.slices() for device in part["spec"]["devices"]]
    paths = [folder / device for folder in (plugin_dir(plugin.node) / "mps", MEMORY) for device in devices]
    return [*daemons(plugin.cluster), *(path for path in paths if path.exists())]


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
    for device in plugin.slices()[0]["spec"]["devices"]:
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


# Daemons that are lost


def run_clients(workload: Workload, *names: str) -> Manifest:
    """Run Pods with a share of one device each, and give its daemon."""
    for name in names:
        workload.run(a_share(name, memory="8Gi"), a_pod(name, name))
    assert len({device_of(workload.claim(name)) for name in names}) == 1
    [daemon] = daemons(workload.cluster)
    return daemon


def told(cluster: Cluster, reason: str) -> set[tuple[str, str]]:
    """Give kind and name of what was told."""
    found = (event["involvedObject"] for event in cluster.events(reason=reason))
    return {(each["kind"], each["name"]) for each in found}


def wait_until_told(cluster: Cluster, reason: str, *names: str) -> None:
    """Wait until claims and Pods of those names have an Event."""
    wanted = {(kind, name) for kind in ("Pod", "ResourceClaim") for name in names}
    cluster.wait_for(f"{reason} to be told of {names}", lambda: wanted <= told(cluster, reason))


def condition_of(workload: Workload, claim: str) -> tuple[str, str]:
    """Give status and reason of the condition of a claim's device."""
    devices = workload.claim(claim)["status"].get("devices", ())
    return next(((each["status"], each["reason"]) for entry in devices for each in entry["conditions"]), ("", ""))


def wait_for_condition(workload: Workload, claim: str, *wanted: str) -> None:
    workload.cluster.wait_for(f"{claim} to be {wanted}", lambda: condition_of(workload, claim) == wanted)


def wait_for_another(cluster: Cluster, before: Manifest) -> Manifest:
    """Wait until another daemon than that one is ready."""

    def probe() -> Manifest | None:
        found = [pod for pod in daemons(cluster) if pod["metadata"]["uid"] != before["metadata"]["uid"]]
        conditions = [each for pod in found for each in pod["status"].get("conditions", ())]
        ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
        return found[0] if ready else None

    return cluster.wait_for("another daemon", probe)


def check_that_all_goes_on(workload: Workload, *names: str) -> None:
    """New clients come, old ones find the pipes where they were, and conditions are as before."""
    late = f"{names[0]}-late"
    run_clients(workload, late)
    for name in (*names, late):
        wait_for_condition(workload, name, "True", "Prepared")
        assert workload.exec(name, f"test -p {PIPES}/control && touch /dev/shm/x && echo open").strip() == "open"


def test_a_daemon_that_is_killed_runs_again_and_its_clients_are_told(workload: Workload, cluster: Cluster) -> None:
    daemon = run_clients(workload, "killed-a", "killed-b")
    [status] = daemon["status"]["containerStatuses"]
    cluster.nodes["node-a"].kill_container(status["containerID"])
    wait_until_told(cluster, "MpsDaemonRestarted", "killed-a", "killed-b")
    [again] = daemons(cluster)
    assert again["metadata"]["uid"] == daemon["metadata"]["uid"]
    check_that_all_goes_on(workload, "killed-a", "killed-b")
    assert ("Pod", "killed-a-late") not in told(cluster, "MpsDaemonRestarted")


def test_a_daemon_that_is_deleted_is_replaced(workload: Workload, cluster: Cluster) -> None:
    daemon = run_clients(workload, "deleted")
    cluster.kubectl("delete", "pod", daemon["metadata"]["name"], "--namespace", NAMESPACE)
    wait_for_another(cluster, daemon)
    wait_until_told(cluster, "MpsDaemonRestarted", "deleted")
    check_that_all_goes_on(workload, "deleted")


def test_a_daemon_that_is_deleted_at_once_is_replaced(workload: Workload, cluster: Cluster) -> None:
    daemon = run_clients(workload, "forced")
    flags = ("--namespace", NAMESPACE, "--force", "--grace-period=0")
    cluster.kubectl("delete", "pod", daemon["metadata"]["name"], *flags)
    wait_for_another(cluster, daemon)
    wait_until_told(cluster, "MpsDaemonRestarted", "forced")
    check_that_all_goes_on(workload, "forced")


def test_a_daemon_that_is_deleted_while_no_plugin_runs_is_replaced_by_the_next(
    workload: Workload, plugin: PluginProcess, cluster: Cluster
) -> None:
    daemon = run_clients(workload, "unseen")
    plugin.process.kill()
    cluster.kubectl("delete", "pod", daemon["metadata"]["name"], "--namespace", NAMESPACE)
    plugin.process.start()
    wait_for_another(cluster, daemon)
    wait_until_told(cluster, "MpsDaemonDown", "unseen")
    wait_until_told(cluster, "MpsDaemonRestarted", "unseen")
    check_that_all_goes_on(workload, "unseen")


def test_while_a_daemon_is_down_its_device_is_not_ready_and_no_claim_is_stuck(
    workload: Workload, plugin: PluginProcess, cluster: Cluster
) -> None:
    daemon = run_clients(workload, "down")
    with stopped_kubelet(plugin):
        cluster.kubectl("delete", "pod", daemon["metadata"]["name"], "--namespace", NAMESPACE, "--wait=false")
        wait_until_told(cluster, "MpsDaemonDown", "down")
        wait_for_condition(workload, "down", "False", "MpsDaemonDown")
    wait_for_another(cluster, daemon)
    check_that_all_goes_on(workload, "down")


@contextmanager
def stopped_kubelet(plugin: PluginProcess) -> Iterator[None]:
    """Nothing starts or ends on the node meanwhile, so what the plugin does has no effect."""
    plugin.node.kubelet.stop()
    try:
        yield
    finally:
        plugin.node.kubelet.start()
        plugin.cluster.wait_for("the node to be ready", lambda: plugin.cluster.is_ready("node", "node-a"))


def test_a_daemon_that_is_evicted_is_replaced_as_long_as_it_has_clients(workload: Workload, cluster: Cluster) -> None:
    daemon = run_clients(workload, "evicted")
    name = daemon["metadata"]["name"]
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": NAMESPACE}}
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{name}/eviction"
    cluster.kubectl("create", "--raw", path, "--filename", "-", stdin=json.dumps(eviction))
    wait_for_another(cluster, daemon)
    check_that_all_goes_on(workload, "evicted")


def test_a_drain_ends_clients_and_daemon(workload: Workload, plugin: PluginProcess, cluster: Cluster) -> None:
    run_clients(workload, "drained")
    try:
        cluster.kubectl("drain", "node-a", "--force", "--ignore-daemonsets", "--timeout=60s", timeout=90)
        cluster.wait_for("nothing to be left of MPS", lambda: not left(plugin), 30)
    finally:
        cluster.kubectl("uncordon", "node-a")


def test_a_pod_that_has_claims_of_two_daemons_is_told_so(workload: Workload, cluster: Cluster) -> None:
    both = ("many-a", "many-b")
    workload.run(*(a_share(name, memory="8Gi", cores="80") for name in both), a_pod("many", *both))
    cluster.wait_for("the Pod to be told", lambda: ("Pod", "many") in told(cluster, "SeveralMpsDaemons"))
    assert len({device_of(workload.claim(name)) for name in both}) == 2
