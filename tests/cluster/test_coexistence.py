"""Another driver serves the node's devices, too: no Pod gets one of ours until that ends."""

from collections.abc import Iterator

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.device_plugin import VARIABLE, run_device_plugin
from tests.cluster.plugin import PluginProcess
from tests.cluster.process import Process
from tests.cluster.scenario import Manifest, Workload, a_claim, a_pod, a_request, run_plugins, run_workload

NODE = "node-a"
OTHER = "gpu.nvidia.com"
RESOURCE = "nvidia.com/gpu"
COUNTED = "nvidia.com_gpu"


@pytest.fixture(scope="module")
def plugin(cluster: Cluster) -> Iterator[PluginProcess]:
    with run_plugins(cluster, {NODE: "h100x8"}) as plugins:
        yield plugins[NODE]


@pytest.fixture
def workload(plugin: PluginProcess) -> Iterator[Workload]:
    with run_workload(plugin) as workload:
        yield workload


@pytest.fixture
def foreign(cluster: Cluster) -> Iterator[Manifest]:
    """A slice of the vendor's own driver; the kubelet lets it be for half a minute."""
    pool = {"name": NODE, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": OTHER, "nodeName": NODE, "pool": pool, "devices": [{"name": "gpu-0"}]}
    slice_: Manifest = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "foreign"},
        "spec": spec,
    }
    cluster.apply(slice_)
    yield slice_
    cluster.kubectl("delete", "resourceslice", "foreign", "--ignore-not-found")


def owners(plugin: PluginProcess) -> list[str]:
    return [
        taint["value"]
        for found in plugin.slices()
        for device in found["spec"].get("devices", ())
        for taint in device.get("taints", ())
        if taint["key"] == "dra-driver.io/in-use-by"
    ]


def test_a_device_that_another_driver_serves_is_given_to_no_pod_until_that_ends(
    plugin: PluginProcess, workload: Workload, foreign: Manifest
) -> None:
    plugin.cluster.wait_for("taints", lambda: owners(plugin) == [OTHER] * 8)
    workload.apply(a_claim("one", a_request("device", "accelerator.dra-driver.io")), a_pod("one", "one"))
    workload.wait_until_unschedulable("one")
    plugin.cluster.wait_for("an event", lambda: plugin.cluster.events(reason="DevicesInUse"))
    plugin.cluster.kubectl("delete", "resourceslice", foreign["metadata"]["name"], "--ignore-not-found")
    plugin.cluster.wait_for("no taints", lambda: owners(plugin) == [])
    workload.wait_for_phase("one", "Running")


def a_counted_pod(name: str) -> Manifest:
    """A Pod that asks the device plugin for a device."""
    pod = a_pod(name, node=NODE, resources={"limits": {RESOURCE: "1"}})
    del pod["spec"]["resourceClaims"]
    return pod


def counted(plugin: PluginProcess) -> str:
    """What the kubelet counts on the node."""
    return str(plugin.cluster.get("node", plugin.node.name)["status"]["allocatable"].get(RESOURCE, "0"))


@pytest.fixture
def device_plugin(cluster: Cluster) -> Iterator[Process]:
    with run_device_plugin(cluster, NODE, RESOURCE, 8) as process:
        yield process


def test_devices_that_a_device_plugin_counts_are_given_to_no_pod_until_it_ends(
    plugin: PluginProcess, workload: Workload, device_plugin: Process
) -> None:
    plugin.cluster.wait_for("the kubelet to count devices", lambda: counted(plugin) == "8")
    plugin.cluster.wait_for("taints", lambda: owners(plugin) == [COUNTED] * 8)
    workload.apply(a_claim("one", a_request("device", "accelerator.dra-driver.io")), a_pod("one", "one"))
    workload.wait_until_unschedulable("one")
    plugin.process.kill()
    plugin.process.start()
    plugin.wait_until_ready()
    assert owners(plugin) == [COUNTED] * 8
    device_plugin.kill()
    plugin.cluster.wait_for("the kubelet to count none", lambda: counted(plugin) == "0")
    plugin.cluster.wait_for("no taints", lambda: owners(plugin) == [])
    plugin.cluster.wait_for("an event", lambda: plugin.cluster.events(reason="DevicesNotInUse"))
    workload.wait_for_phase("one", "Running")


def test_a_device_that_a_pod_has_of_a_device_plugin_is_given_to_no_other_until_that_pod_ends(
    plugin: PluginProcess, workload: Workload, device_plugin: Process
) -> None:
    plugin.cluster.wait_for("the kubelet to count devices", lambda: counted(plugin) == "8")
    workload.run(a_counted_pod("theirs"))
    assert workload.exec("theirs", f"echo ${VARIABLE}").startswith(RESOURCE)
    device_plugin.kill()
    plugin.cluster.wait_for("the kubelet to count none", lambda: counted(plugin) == "0")
    workload.apply(a_claim("one", a_request("device", "accelerator.dra-driver.io")), a_pod("one", "one"))
    workload.wait_until_unschedulable("one")
    assert owners(plugin) == [COUNTED] * 8
    workload.delete("pod", "theirs")
    workload.wait_for_phase("one", "Running")
    assert owners(plugin) == []


def test_a_kubelet_that_starts_anew_and_counts_nothing_yet_frees_no_device(plugin: PluginProcess) -> None:
    cluster, node = plugin.cluster, "node-b"
    with (
        PluginProcess(cluster, node, "h100x8", recovery_hold=120) as patient,
        run_device_plugin(cluster, node, RESOURCE, 8) as device_plugin,
    ):
        cluster.wait_for("taints", lambda: owners(patient) == [COUNTED] * 8)
        device_plugin.kill()
        patient.node.kubelet.restart()
        cluster.wait_for("the kubelet to count none", lambda: counted(patient) == "0")
        patient.override({"added": 1})
        cluster.wait_for("one device more, tainted", lambda: owners(patient) == [COUNTED] * 9)
