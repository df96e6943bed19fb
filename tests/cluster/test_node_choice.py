"""Pods go to the node whose devices their claims ask for."""

from collections.abc import Iterator

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.plugin import PluginProcess
from tests.cluster.scenario import Workload, a_claim, a_pod, a_request, device_of, held, run_plugins

MODEL = 'device.attributes["accel.dra-driver.io"].model == "{}"'


@pytest.fixture(scope="module", autouse=True)
def plugins(cluster: Cluster) -> Iterator[dict[str, PluginProcess]]:
    with run_plugins(cluster, {"node-a": "l40sx4", "node-b": "ascend910b3x8"}) as plugins:
        yield plugins


@pytest.mark.parametrize(
    ("device_class", "model", "node"),
    [
        ("gpu.dra-driver.io", "L40S", "node-a"),
        ("npu.dra-driver.io", "910B3", "node-b"),
        ("accelerator.dra-driver.io", "910B3", "node-b"),
    ],
)
def test_a_claim_that_one_node_can_serve_is_served_there(
    workload: Workload, plugins: dict[str, PluginProcess], device_class: str, model: str, node: str
) -> None:
    workload.run(a_claim("one", a_request("device", device_class, MODEL.format(model))), a_pod("one", "one"))
    assert workload.cluster.get("pod", "one")["spec"]["nodeName"] == node
    claim = workload.claim("one")
    pool, device = device_of(claim)
    assert pool == node
    published = {each["name"] for part in plugins[node].slices() for each in part["spec"]["devices"]}
    assert device in published
    uid = claim["metadata"]["uid"]
    holders = {
        name for name, each in workload.cluster.nodes.items() if any(uid in path for path in held(each))
    }  # fmt: skip
    assert holders == {node}


def test_a_claim_that_no_node_can_serve_waits(workload: Workload, plugins: dict[str, PluginProcess]) -> None:
    both = [a_request("gpu", "gpu.dra-driver.io"), a_request("npu", "npu.dra-driver.io")]
    workload.apply(a_claim("both", *both), a_pod("both", "both"))
    message = workload.wait_until_unschedulable("both")
    assert "0/2 nodes are available" in message
    assert "cannot allocate all claims" in message
