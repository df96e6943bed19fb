"""The sandbox as a whole: what a user applies becomes prepared containers, and what is deleted leaves nothing."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from dra_driver.kube.resource import NODES, RESOURCE_CLAIMS
from tests.support.manifest import example_names, read_example
from tests.support.sandbox import Cluster, Manifest, a_cluster, a_pod
from tests.support.wait import until


def a_request(name: str = "gpu", class_name: str = "gpu.dra-driver.io", **fields: Any) -> Manifest:
    return {"name": name, "exactly": {"deviceClassName": class_name, **fields}}


def a_claim(name: str, *requests: Manifest, constraints: list[Manifest] | None = None) -> Manifest:
    devices = {"requests": list(requests or (a_request(),)), "constraints": constraints or []}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": devices},
    }


def a_template(name: str, *requests: Manifest) -> Manifest:
    claim = a_claim(name, *requests)
    return claim | {"kind": "ResourceClaimTemplate", "spec": {"spec": claim["spec"]}}


def a_pod_of(name: str, *claims: str, template: str = "") -> Manifest:
    """Build a Pod that nobody has bound yet."""
    pod = a_pod(name, *(claims or ("gpu",)))
    del pod["spec"]["nodeName"]
    if template:
        pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": template}]
    return pod


@pytest.fixture
async def cluster(short_path: Path) -> AsyncIterator[Cluster]:
    """Give two nodes, with eight H100 and four L40S."""
    async with a_cluster(short_path, "h100x8", "l40sx4") as cluster:
        yield cluster


async def test_each_pod_gets_a_claim_of_its_own_from_a_template_that_goes_with_it(cluster: Cluster) -> None:
    await cluster.apply(a_template("one"), a_pod_of("first", template="one"), a_pod_of("second", template="one"))
    await cluster.running("first", "second")
    claims = cluster.view.claims.list()
    assert sorted(claim.metadata.owner_references[0].name for claim in claims) == ["first", "second"]
    assert all(claim.metadata.generate_name.endswith("-gpu-") for claim in claims)
    assert {claim.metadata.annotations["resource.kubernetes.io/pod-claim-name"] for claim in claims} == {"gpu"}
    assert len(set(cluster.devices_in_use())) == 2
    await cluster.delete_pods("first", "second")
    await until(lambda: not cluster.view.claims.list())
    await until(lambda: not cluster.left())


async def test_a_pod_waits_for_its_template(cluster: Cluster) -> None:
    await cluster.apply(a_pod_of("early", template="late"))
    await until(lambda: "not made from its template yet" in cluster.refusal("early"))
    await cluster.apply(a_template("late"))
    await cluster.running("early")


async def test_a_claim_is_kept_while_one_pod_uses_it_and_deallocated_after_the_last(cluster: Cluster) -> None:
    await cluster.apply(a_claim("gpu"), a_pod_of("first"), a_pod_of("second"))
    await cluster.running("first", "second")
    [device] = cluster.devices_in_use()
    await cluster.delete_pods("first")
    await until(lambda: "first" not in cluster.phases())
    await until(lambda: len(cluster.view.claims.list()[0].status.reserved_for) == 1)
    assert cluster.devices_in_use() == [device]
    await cluster.sandbox.client.delete(RESOURCE_CLAIMS, "gpu", namespace="default")
    [claim] = cluster.view.claims.list()
    assert claim.status.allocation is not None  # its finalizer protects it
    await cluster.delete_pods("second")
    await until(lambda: not cluster.view.claims.list())
    await until(lambda: not cluster.left())


async def test_a_claim_that_does_not_fit_says_why_and_is_served_once_devices_are_free(cluster: Cluster) -> None:
    linked = [{"matchAttribute": "accel.dra-driver.io/linkDomain"}]
    await cluster.apply(a_claim("one"), a_pod_of("one", "one"))
    await cluster.running("one")
    await cluster.apply(a_claim("eight", a_request(count=8), constraints=linked), a_pod_of("eight", "eight"))
    await until(lambda: cluster.refusal("eight").startswith("0/2 nodes are available: request gpu: "))
    await cluster.delete_pods("one")
    await cluster.running("eight")
    assert len(cluster.devices_in_use()) == 8


async def test_all_claims_of_a_pod_are_allocated_on_one_node(cluster: Cluster) -> None:
    model = 'device.attributes["accel.dra-driver.io"].model == "L40S"'
    await cluster.apply(
        a_claim("any"),
        a_claim("l40s", a_request(selectors=[{"cel": {"expression": model}}])),
        a_pod_of("both", "any", "l40s"),
    )
    await cluster.running("both")
    assert {device.split("/")[0] for device in cluster.devices_in_use()} == {"node-b"}


async def test_a_node_that_is_deleted_takes_its_slices_and_pods_with_it(cluster: Cluster) -> None:
    await cluster.apply(a_claim("gpu"), a_pod_of("one"))
    await cluster.running("one")
    node = cluster.sandbox.nodes["node-a"]
    await node.stop()
    await cluster.sandbox.client.delete(NODES, "node-a")
    await until(lambda: not cluster.phases())
    await until(lambda: {each.spec.node_name for each in cluster.view.slices.list()} == {"node-b"})
    await until(lambda: not cluster.devices_in_use())


async def test_a_plugin_that_starts_anew_under_load_loses_no_claim(cluster: Cluster) -> None:
    names = [f"pod-{index:02}" for index in range(24)]
    capacity = {"requests": {"memory": "1Gi"}}
    await cluster.apply(a_template("share", a_request(capacity=capacity)))
    node = cluster.sandbox.nodes["node-a"]
    for index, name in enumerate(names):
        await cluster.apply(a_pod_of(name, template="share"))
        if index % 8 == 4:
            await node.stop_plugin()
            await node.start_plugin()
    await cluster.running(*names)
    await cluster.delete_pods(*names[:12])
    await node.stop_plugin()
    await cluster.delete_pods(*names[12:])
    await node.start_plugin()
    await until(lambda: not cluster.phases())
    await until(lambda: not cluster.left())
    await until(lambda: not cluster.view.claims.list())


async def test_a_kubelet_that_starts_anew_under_load_loses_no_pod(cluster: Cluster) -> None:
    names = [f"pod-{index:02}" for index in range(10)]
    await cluster.apply(a_template("one"))
    node = cluster.sandbox.nodes["node-a"]
    for index, name in enumerate(names):
        await cluster.apply(a_pod_of(name, template="one"))
        if index % 3 == 2:
            await node.stop_kubelet()
            await node.start_kubelet()
    await cluster.running(*names)
    assert len(set(cluster.devices_in_use())) == len(names)
    await cluster.delete_pods(*names[:5])
    await node.stop_kubelet()
    await node.start_kubelet()
    await cluster.delete_pods(*names[5:])
    await until(lambda: not cluster.phases())
    await until(lambda: not cluster.left())


async def test_objects_outlive_the_sandbox_in_a_file(short_path: Path) -> None:
    data = short_path / "state.sqlite"
    async with a_cluster(short_path, "l40sx4", data=data) as cluster:
        await cluster.apply(a_claim("gpu"), a_pod_of("one"))
        await cluster.running("one")
        before = cluster.devices_in_use()
    async with a_cluster(short_path, "l40sx4", data=data) as cluster:
        await cluster.running("one")
        assert cluster.devices_in_use() == before
        await cluster.delete_pods("one")
        await until(lambda: not cluster.left())


async def test_every_example_with_pods_runs(short_path: Path) -> None:
    async with a_cluster(short_path, "a100x8", "mixed") as cluster:
        for name in example_names():
            objects = read_example(name)
            if name == "controller" or {each["kind"] for each in objects} & {"Deployment", "Namespace"}:
                continue
            await cluster.apply(*objects)
            pods = [each["metadata"]["name"] for each in objects if each["kind"] == "Pod"]
            assert pods
            await cluster.running(*pods)
            await cluster.delete_pods(*pods)
            await until(lambda: not cluster.left())


async def test_the_controller_allocates_on_the_nodes_that_it_was_given(short_path: Path) -> None:
    async with a_cluster(short_path, "h100x8", labels={"dra-driver.io/allocator": "controller"}) as cluster:
        await cluster.apply(a_claim("gpu"), a_pod_of("other"))
        await cluster.apply(*read_example("controller"))
        await cluster.running("controller")
        assert len(set(cluster.devices_in_use())) == 2
        await until(lambda: "tainted dra-driver.io/allocator=controller:NoSchedule" in cluster.refusal("other"))
        await cluster.delete_pods("controller", "other")
        await until(lambda: not cluster.left())
        await until(lambda: not cluster.devices_in_use())


async def test_fifty_nodes_live_in_one_process(short_path: Path) -> None:
    async with a_cluster(short_path, *["l40sx4"] * 50) as cluster:
        assert len(cluster.view.slices.list()) == 50
        await cluster.apply(a_template("all", a_request(count=4)))
        names = [f"pod-{index:02}" for index in range(50)]
        for name in names:
            await cluster.apply(a_pod_of(name, template="all"))
        await cluster.running(*names, within_s=40)
        assert len(set(cluster.devices_in_use())) == 200
