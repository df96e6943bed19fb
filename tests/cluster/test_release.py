"""What is left of a claim when its Pod goes, in order or by force: nothing, and the device is free again."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.plugin import DRIVER, PluginProcess
from tests.cluster.process import Process
from tests.cluster.scenario import (
    Manifest,
    Workload,
    a_claim,
    a_pod,
    a_request,
    device_of,
    held,
    results,
    run_plugins,
    write_profile,
)

PARTITION = 'device.attributes["accel.dra-driver.io"].partitionProfile == "1g.10gb"'

# As the first process of a container it does not react to SIGTERM: the kubelet waits for two seconds and kills it.
DEAF = ["sleep", "3600"]


@pytest.fixture(scope="module", autouse=True)
def plugin(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PluginProcess]:
    """The only GPU of the cluster is an A100."""
    profile = write_profile(tmp_path_factory.mktemp("release"), "a100x8", gpus=1)
    with run_plugins(cluster, {"node-a": str(profile)}) as plugins:
        yield plugins["node-a"]


CLAIMS = {
    "whole": a_claim("first"),
    "share": a_claim("first", a_request(capacity={"memory": "8Gi"})),
    "partition": a_claim("first", a_request("device", "partition.dra-driver.io", PARTITION)),
}


def expected_on_node(kind: str, claim: Manifest) -> set[str]:
    uid = claim["metadata"]["uid"]
    found = {f"cdi/{DRIVER}-claim_{uid}.json", f"claims/{uid}.json"}
    match kind:
        case "share":
            return found | {f"shim/{uid}"}
        case "partition":
            return found | {f"partitions/{device_of(claim)[1]}.json"}
    return found


@pytest.mark.parametrize("force", [pytest.param(False, id="in order"), pytest.param(True, id="by force")])
@pytest.mark.parametrize("kind", CLAIMS)
def test_a_deleted_pod_leaves_nothing_on_the_node(workload: Workload, cluster: Cluster, kind: str, force: bool) -> None:
    node = cluster.nodes["node-a"]
    workload.run(CLAIMS[kind], a_pod("first", "first"))
    assert held(node) == expected_on_node(kind, workload.claim("first"))
    cluster.delete("pod", "first", force=force)
    cluster.wait_for("the node to hold nothing", lambda: not held(node))
    cluster.wait_for("the claim to be free", lambda: "allocation" not in workload.claim("first").get("status", {}))
    workload.run(a_claim("second"), a_pod("second", "second"))


def test_a_pod_that_ended_by_itself_frees_its_device(workload: Workload, cluster: Cluster) -> None:
    workload.apply(a_claim("first"), a_pod("first", "first", command=["true"]))
    workload.wait_for_phase("first", "Succeeded")
    cluster.wait_for("the node to hold nothing", lambda: not held(cluster.nodes["node-a"]))
    workload.run(a_claim("second"), a_pod("second", "second"))


@contextmanager
def suspended(kubelet: Process) -> Iterator[None]:
    """Keep the kubelet from noticing anything."""
    kubelet.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        kubelet.signal(signal.SIGCONT)


def test_a_device_is_not_given_away_while_the_container_of_a_force_deleted_pod_lives(
    workload: Workload, cluster: Cluster
) -> None:
    workload.run(a_claim("first"), a_pod("first", "first", command=DEAF))
    claim = workload.claim("first")
    with suspended(cluster.nodes["node-a"].kubelet):
        cluster.delete("pod", "first", force=True)
        workload.apply(a_claim("second"), a_pod("second", "second"))
        second = cluster.wait_for("the second claim to be allocated", lambda: results(workload.claim("second")))
        assert second[0]["device"] == results(claim)[0]["device"]

    def refusal() -> str | None:
        messages = [event["message"] for event in cluster.events(reason="FailedPrepareDynamicResources")]
        return next((message for message in messages if claim["metadata"]["uid"] in message), None)

    name, uid = f"node-a/{second[0]['device']}", claim["metadata"]["uid"]
    assert f"device {name}: held by claim default/first (UID {uid}" in cluster.wait_for("a refusal", refusal)
    workload.wait_for_phase("second", "Running")
    assert device_of(workload.claim("second")) == ("node-a", second[0]["device"])
