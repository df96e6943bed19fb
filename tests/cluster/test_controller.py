"""Pods whose claims the controller allocates, on two nodes that are given to it."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.cluster.claim_history import record_claims
from tests.cluster.cluster import Cluster
from tests.cluster.controller import (
    DEVICE,
    PART,
    ControllerProcess,
    gated,
    give_nodes,
    of_model,
    of_partition,
    told,
    with_policy,
    write_fleet_profile,
)
from tests.cluster.plugin import DRIVER, PluginProcess
from tests.cluster.scenario import (
    Manifest,
    Workload,
    a_claim,
    a_claim_template,
    a_pod,
    a_request,
    attributes_of,
    device_of,
    remove,
    results,
)

OTHER_DRIVER = "other.test.local"
OTHER_DEVICE = ("others", "device")
FINALIZER = "resource.kubernetes.io/delete-protection"


@contextmanager
def publish_other_device(cluster: Cluster) -> Iterator[None]:
    """Publish the only device of a class that is kube-scheduler's, on node-b. Nobody prepares it."""
    selector = {"cel": {"expression": f'device.driver == "{OTHER_DRIVER}"'}}
    meta = {"apiVersion": "resource.k8s.io/v1", "metadata": {"name": OTHER_DRIVER}}
    pool_name, device = OTHER_DEVICE
    pool = {"name": pool_name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": OTHER_DRIVER, "nodeName": "node-b", "pool": pool, "devices": [{"name": device}]}
    manifests = (
        {**meta, "kind": "DeviceClass", "spec": {"selectors": [selector]}},
        {**meta, "kind": "ResourceSlice", "spec": spec},
    )
    cluster.apply(manifests)
    yield
    remove(cluster, *manifests)


@pytest.fixture(scope="module", autouse=True)
def plugins(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, PluginProcess]]:
    """Two nodes with two A100, linked, and two L40S each; whatever happens, nothing is given twice."""
    profile = str(write_fleet_profile(tmp_path_factory.mktemp("fleet")))
    with (
        give_nodes(cluster, {"node-a": profile, "node-b": profile}) as plugins,
        publish_other_device(cluster),
        ControllerProcess(cluster),
        record_claims(cluster) as history,
    ):
        yield plugins
        assert history.assert_no_device_was_given_twice() > 0


def a_gpu(name: str, model: str, **fields: Any) -> Manifest:
    return a_claim(name, a_request("device", DEVICE, of_model(model), **fields))


def node_of(workload: Workload, pod: str) -> str:
    return str(workload.cluster.get("pod", pod)["spec"]["nodeName"])


def wait_until_told(workload: Workload, kind: str, name: str) -> str:
    [text] = workload.cluster.wait_for(f"an event about {name}", lambda: told(workload.cluster, kind, name))
    return text


def test_of_two_pods_that_race_for_the_last_device_one_gets_it_and_the_other_one_when_it_is_free(
    workload: Workload,
) -> None:
    pods = [gated(a_pod(name, name, node="node-a")) for name in ("first", "second", "third")]
    claims = [a_gpu(name, "L40S") for name in ("first", "second", "third")]
    workload.run(claims[0], pods[0])
    workload.apply(*claims[1:], *pods[1:])

    def winner() -> str:
        running = {name: "allocation" in workload.claim(name).get("status", {}) for name in ("second", "third")}
        assert not all(running.values())
        return next((name for name, is_running in running.items() if is_running), "")

    won = workload.cluster.wait_for("one of them to win", winner)
    [lost] = {"second", "third"} - {won}
    workload.wait_for_phase(won, "Running")
    text = wait_until_told(workload, "Pod", lost)
    assert text == wait_until_told(workload, "ResourceClaim", lost)
    pod = workload.cluster.get("pod", lost)
    assert [gate["name"] for gate in pod["spec"]["schedulingGates"]] == ["dra-driver.io/allocation"]
    workload.delete("pod", "first")
    workload.wait_for_phase(lost, "Running")
    assert device_of(workload.claim(won)) != device_of(workload.claim(lost))


def test_what_was_allocated_is_protected_stamped_and_reserved_for_the_pod(workload: Workload) -> None:
    workload.run(a_gpu("one", "L40S"), gated(a_pod("one", "one")))
    claim, pod = workload.claim("one"), workload.cluster.get("pod", "one")
    assert claim["metadata"]["finalizers"] == [FINALIZER]
    assert claim["status"]["allocation"]["allocationTimestamp"]
    [consumer] = claim["status"]["reservedFor"]
    assert consumer == {"resource": "pods", "name": "one", "uid": pod["metadata"]["uid"]}
    assert workload.see("one").given == {device_of(claim)[1]}
    workload.delete("pod", "one")
    workload.cluster.wait_for("the claim to be free", lambda: not workload.claim("one").get("status"))
    assert "finalizers" not in workload.claim("one")["metadata"]


def test_linked_devices_come_from_one_link_domain(workload: Workload, plugins: dict[str, PluginProcess]) -> None:
    workload.run(a_gpu("alone", "A100"), gated(a_pod("alone", "alone", node="node-a")))
    linked = a_claim(
        "linked",
        a_request("devices", DEVICE, count=2),
        constraints=[{"requests": ["devices"], "matchAttribute": f"{DRIVER}/linkDomain"}],
    )
    workload.run(linked, gated(a_pod("linked", "linked")))
    devices = [result["device"] for result in results(workload.claim("linked"))]
    assert node_of(workload, "linked") == "node-b"
    assert workload.see("linked").given == set(devices)
    attributes = [attributes_of(plugins["node-b"], device) for device in devices]
    assert {each["model"] for each in attributes} == {"A100"}
    assert len({each["linkDomain"] for each in attributes}) == 1


def test_a_share_is_given_beside_a_share(workload: Workload) -> None:
    for name in ("first", "second"):
        share = a_gpu(name, "L40S", capacity={"memory": "8Gi", "cores": "30"})
        workload.run(with_policy(share, "binpack"), gated(a_pod(name, name)))
    first, second = (workload.claim(name) for name in ("first", "second"))
    assert device_of(first) == device_of(second)
    assert results(first)[0]["shareID"] != results(second)[0]["shareID"]
    for name in ("first", "second"):
        [shim] = workload.shims(name)
        assert "memory=8589934592 cores=30" in shim


def test_a_partition_is_given(workload: Workload) -> None:
    request = a_request("part", PART, of_partition("3g.40gb"))
    workload.run(a_claim("part", request), gated(a_pod("part", "part")))
    _, device = device_of(workload.claim("part"))
    assert "-3g-40gb-" in device
    assert workload.see("part").given == {device}


def test_a_pod_with_three_claims_goes_where_all_of_them_fit(workload: Workload) -> None:
    both = a_claim("both", a_request("device", DEVICE, of_model("L40S"), count=2))
    workload.run(both, gated(a_pod("both", "both", node="node-a")))
    part = a_claim("part", a_request("part", PART, of_partition("1g.10gb")))
    three = gated(a_pod("three", "device", "fast", "part"))
    workload.run(part, a_gpu("fast", "A100"), a_gpu("device", "L40S"), three)
    claims = [workload.claim(name) for name in ("device", "fast", "part")]
    assert {device_of(claim)[0] for claim in claims} == {node_of(workload, "three")} == {"node-b"}
    assert workload.see("three").given == {device_of(claim)[1] for claim in claims}


def test_a_pod_with_a_claim_that_kube_scheduler_allocates_goes_where_that_fits_too(workload: Workload) -> None:
    for name in ("first", "second"):
        foreign = a_claim(f"{name}-foreign", a_request("device", OTHER_DRIVER))
        workload.apply(foreign, a_gpu(name, "L40S"), gated(a_pod(name, name, f"{name}-foreign")))
    cluster = workload.cluster

    def winner() -> str:
        pods = (cluster.get("pod", name) for name in ("first", "second"))
        return next((pod["metadata"]["name"] for pod in pods if pod["spec"].get("nodeName")), "")

    won = cluster.wait_for("a Pod to be bound", winner)
    assert node_of(workload, won) == device_of(workload.claim(won))[0] == "node-b"
    assert device_of(workload.claim(f"{won}-foreign")) == OTHER_DEVICE
    [lost] = {"first", "second"} - {won}
    text = wait_until_told(workload, "Pod", lost)
    assert f"{lost}-foreign" in text, text
    assert not workload.claim(lost).get("status")


def test_a_claim_from_a_template_is_waited_for(workload: Workload) -> None:
    workload.run(
        a_claim_template("devices", a_request("device", DEVICE)),
        gated(a_pod("one", template="devices")),
        gated(a_pod("two", template="devices")),
    )
    devices = {device_of(workload.claim_of(pod)) for pod in ("one", "two")}
    assert len(devices) == 2


def test_a_claim_is_shared_by_pods(workload: Workload) -> None:
    workload.run(a_gpu("shared", "A100"), gated(a_pod("one", "shared")), gated(a_pod("two", "shared")))
    claim = workload.claim("shared")
    assert {consumer["name"] for consumer in claim["status"]["reservedFor"]} == {"one", "two"}
    assert workload.see("one").given == workload.see("two").given == {device_of(claim)[1]}


@pytest.mark.parametrize(("policy", "on_nodes"), [("binpack", [4]), ("spread", [2, 2])])
def test_where_pods_land_shows_the_policy(workload: Workload, policy: str, on_nodes: list[int]) -> None:
    names = [f"{policy}-{index}" for index in range(4)]
    claims = [with_policy(a_claim(name, a_request("device", DEVICE)), policy) for name in names]
    workload.run(*claims, *(gated(a_pod(name, name)) for name in names))
    assert sorted(Counter(node_of(workload, name) for name in names).values()) == on_nodes


def test_a_node_that_is_cordoned_before_the_pod_is_bound_is_left_for_another(workload: Workload) -> None:
    cluster = workload.cluster
    scheduler = cluster.processes["kube-scheduler"]
    scheduler.stop()
    try:
        workload.apply(a_gpu("one", "L40S"), gated(a_pod("one", "one")))
        cluster.wait_for("the gate to be gone", lambda: "schedulingGates" not in cluster.get("pod", "one")["spec"])
        chosen, _ = device_of(workload.claim("one"))
        cluster.kubectl("cordon", chosen)
    finally:
        scheduler.start()  # not merely woken: it has to hear of the node before it hears of the Pod
    try:
        workload.wait_for_phase("one", "Running")
    finally:
        cluster.kubectl("uncordon", chosen)
    [other] = set(cluster.nodes) - {chosen}
    assert node_of(workload, "one") == device_of(workload.claim("one"))[0] == other
    assert workload.see("one").given == {device_of(workload.claim("one"))[1]}


def test_a_pod_that_is_deleted_while_it_waits_leaves_nothing_behind(workload: Workload) -> None:
    never = a_claim("never", a_request("device", DEVICE, of_model("B200")))
    workload.apply(never, gated(a_pod("never", "never")))
    wait_until_told(workload, "Pod", "never")
    workload.delete("pod", "never")
    claim = workload.claim("never")
    assert not claim.get("status")
    assert "finalizers" not in claim["metadata"]
