"""Another driver serves the node's cards, too: no Pod gets one of ours until that ends."""

from collections.abc import Iterator

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.plugin import PluginProcess
from tests.cluster.scenario import Manifest, Workload, a_claim, a_pod, a_request, run_plugins, run_workload

NODE = "node-a"
OTHER = "gpu.nvidia.com"


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


def test_a_card_that_another_driver_serves_is_given_to_no_pod_until_that_ends(
    plugin: PluginProcess, workload: Workload, foreign: Manifest
) -> None:
    plugin.cluster.wait_for("taints", lambda: owners(plugin) == [OTHER] * 8)
    workload.apply(a_claim("one", a_request("card", "accelerator.dra-driver.io")), a_pod("one", "one"))
    workload.wait_until_unschedulable("one")
    plugin.cluster.wait_for("an event", lambda: plugin.cluster.events(reason="DevicesInUse"))
    plugin.cluster.kubectl("delete", "resourceslice", foreign["metadata"]["name"], "--ignore-not-found")
    plugin.cluster.wait_for("no taints", lambda: owners(plugin) == [])
    workload.wait_for_phase("one", "Running")
