"""An API server that does not tell one driver's part of a claim's status from another's, as before Kubernetes 1.36.

There only the chart's policy keeps a plugin to its own devices.
"""

from collections.abc import Iterator

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.plugin import DRIVER, NAMESPACE, SERVICE_ACCOUNT, PluginProcess
from tests.cluster.scenario import Workload, a_claim, a_pod, run_plugins
from tests.cluster.test_admission import OTHER_DRIVER, a_status, an_allocated_claim, refused_status

GATES = {"DRAResourceClaimGranularStatusAuthorization": False}
OWN, FOREIGN = "node-a", "node-z"


@pytest.fixture(scope="module")
def older() -> Iterator[Cluster]:
    with Cluster(nodes=(OWN,), feature_gates=GATES) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def plugin(older: Cluster) -> Iterator[PluginProcess]:
    with run_plugins(older, {OWN: "h100x8"}) as plugins:
        yield plugins[OWN]


@pytest.fixture
def workload(plugin: PluginProcess) -> Iterator[Workload]:
    workload = Workload(plugin.cluster)
    yield workload
    workload.remove()


def test_the_plugin_tells_of_its_devices(workload: Workload) -> None:
    workload.run(a_claim("told"), a_pod("told", "told"))

    def conditions() -> list[str]:
        entries = workload.claim("told")["status"].get("devices", ())
        return [condition["reason"] for entry in entries for condition in entry["conditions"]]

    workload.cluster.wait_for("the claim to say that it is prepared", lambda: conditions() == ["Prepared"])


def test_it_tells_of_no_others(older: Cluster, workload: Workload) -> None:
    kubeconfig = older.token_for(SERVICE_ACCOUNT, NAMESPACE, OWN)
    an_allocated_claim(older, workload, OWN)
    own, other = a_status(DRIVER, OWN), a_status(OTHER_DRIVER, OWN)
    only = (
        "the node plugin on node node-a may tell of devices of driver accel.dra-driver.io in the pool of its own node"
    )
    assert f"{only} only, not of {OTHER_DRIVER} {OWN}/gpu-0" in refused_status(older, kubeconfig, devices=[own, other])
    user = {"resource": "pods", "name": "nobody", "uid": "f8a2a0e8-4f1b-4c58-bb38-35a4bc0a2b8c"}
    assert "not status.reservedFor" in refused_status(older, kubeconfig, devices=[own], reservedFor=[user])
    assert refused_status(older, kubeconfig, devices=[own]) == ""


def test_it_tells_nothing_of_claims_of_another_node(older: Cluster, workload: Workload) -> None:
    kubeconfig = older.token_for(SERVICE_ACCOUNT, NAMESPACE, OWN)
    an_allocated_claim(older, workload, FOREIGN)
    refused = refused_status(older, kubeconfig, devices=[a_status(DRIVER, FOREIGN)])
    assert f"own node only, not of {DRIVER} {FOREIGN}/gpu-0" in refused
