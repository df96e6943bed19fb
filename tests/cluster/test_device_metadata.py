"""Device metadata files (KEP-5304), as a container finds them."""

import json
from collections.abc import Iterator

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.plugin import DRIVER, PluginProcess
from tests.cluster.scenario import (
    Workload,
    a_claim,
    a_claim_template,
    a_pod,
    a_request,
    attributes_of,
    device_of,
    plugin_dir,
    run_plugins,
    write_profile,
)

FOLDER = "/var/run/kubernetes.io/dra-device-attributes"


@pytest.fixture(scope="module", autouse=True)
def plugin(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PluginProcess]:
    profile = write_profile(tmp_path_factory.mktemp("metadata"), "h100x8", gpus=1)
    with run_plugins(cluster, {"node-a": str(profile)}, device_metadata=True) as plugins:
        yield plugins["node-a"]


def test_a_container_reads_what_its_claim_got(workload: Workload, plugin: PluginProcess) -> None:
    workload.run(a_claim("held", a_request(capacity={"memory": "8Gi"})), a_pod("holder", "held"))
    claim = workload.claim("held")
    path = f"{FOLDER}/resourceclaims/held/device/{DRIVER}-metadata.json"
    newest, older = map(json.loads, workload.exec("holder", f"cat {path}").splitlines())
    assert newest["apiVersion"] == "metadata.resource.k8s.io/v1beta1"
    assert older == {**newest, "apiVersion": "metadata.resource.k8s.io/v1alpha1"}
    assert (newest["metadata"]["uid"], newest["metadata"]["generation"]) == (claim["metadata"]["uid"], 1)
    [device] = newest["requests"][0]["devices"]
    pool, name = device_of(claim)
    assert (device["driver"], device["pool"], device["name"]) == (DRIVER, pool, name)
    assert device["attributes"]["uuid"]["string"] == attributes_of(plugin, name)["uuid"]


def test_a_claim_of_a_template_is_found_by_the_name_in_the_pod(workload: Workload, plugin: PluginProcess) -> None:
    workload.run(a_claim_template("mine", a_request()), a_pod("holder", template="mine"))
    path = f"{FOLDER}/resourceclaimtemplates/mine/device/{DRIVER}-metadata.json"
    newest = json.loads(workload.exec("holder", f"cat {path}").splitlines()[0])
    assert newest["podClaimName"] == "mine"
    assert newest["metadata"]["name"] == workload.claim_of("holder")["metadata"]["name"]
    workload.delete("pod", "holder")
    folder = plugin_dir(plugin.node) / "dra-device-metadata"
    workload.cluster.wait_for("files to be gone", lambda: not any(folder.iterdir()))
