"""The simulated kubelet with the real plugin, over real sockets: it keeps the rules of the real one."""

import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kubeletplugin.kubelet.pod_resource import PodResources
from sandbox.node.driver import HEALTH_VERSIONS
from sandbox.node.health_watch import HealthWatch
from sandbox.node.registration import Registry
from tests.support.api_server import TestApiServer
from tests.support.builder import DRIVER, NODE, a_result, a_share
from tests.support.kube import running
from tests.support.sandbox import KubeletNode, a_node
from tests.support.wait import until


@pytest.fixture
async def up(server: TestApiServer, short_path: Path) -> AsyncIterator[KubeletNode]:
    async with a_node(server, short_path) as node:
        await node.published()
        yield node


async def test_a_pod_runs_with_the_devices_of_its_claim_and_leaves_nothing(up: KubeletNode) -> None:
    device = up.devices()[0]
    pod = up.put_pod("train", "gpu")
    claim = up.put_claim("gpu", a_result(device), pods=[pod])
    await until(lambda: up.phase("train") == "Running")
    config = up.config(pod)
    assert config["process"]["args"] == ["sleep", "1"]
    assert any(entry.startswith("SIMULATED_DEVICE_GPU_") for entry in config["process"]["env"])
    assert up.prepared() == [f"{DRIVER}-claim_{claim['metadata']['uid']}.json"]
    assert (up.pod("train") or {})["status"]["containerStatuses"][0]["ready"]
    up.server.remove("pods", "train", "default")
    await until(lambda: not up.prepared())
    assert list((up.node.folder / "pods").iterdir()) == []


async def test_it_tells_the_plugin_that_no_pod_holds_anything_of_a_device_plugin(up: KubeletNode) -> None:
    pods = PodResources(up.node.folder)
    assert await pods.read_held() == frozenset()
    await up.node.stop_kubelet()
    assert await pods.read_held() is None
    await up.node.start_kubelet()
    assert await pods.read_held() == frozenset()


async def test_a_pod_waits_until_its_claim_is_reserved_for_it(up: KubeletNode) -> None:
    other = {"metadata": {"name": "other", "uid": "uid-other"}}
    up.put_claim("gpu", a_result(up.devices()[0]), pods=[other])
    pod = up.put_pod("train", "gpu")
    await until(lambda: any("not reserved for pod" in each["message"] for each in up.server.all("events")))
    await until(lambda: up.phase("train") == "Pending")
    assert up.prepared() == []
    up.reserve("gpu", pod)
    await until(lambda: up.phase("train") == "Running")


async def test_a_shared_claim_is_unprepared_with_its_last_pod(up: KubeletNode) -> None:
    pods = [up.put_pod(name, "gpu") for name in ("first", "second")]
    up.put_claim("gpu", a_share(up.devices()[0], "0b0a5f5e-0000-4000-8000-000000000001"), pods=pods)
    await until(lambda: {up.phase("first"), up.phase("second")} == {"Running"})
    assert "memory=8589934592" in up.shim(pods[0])
    up.server.remove("pods", "first", "default")
    assert up.node.kubelet is not None
    runtime = up.node.kubelet.runtime
    await until(lambda: not runtime.is_started(pods[0]["metadata"]["uid"], "main"))
    assert len(up.prepared()) == 1
    up.server.remove("pods", "second", "default")
    await until(lambda: not up.prepared())


async def test_a_container_gets_the_devices_of_the_request_that_it_names(up: KubeletNode) -> None:
    big, small = up.devices()[:2]
    containers = [
        {"name": name, "image": "busybox:1", "resources": {"claims": [{"name": "gpus", "request": name}]}}
        for name in ("big", "small")
    ]
    pod = up.put_pod("train", "gpus", containers=containers)
    up.put_claim("gpus", a_result(big, request="big"), a_result(small, request="small/first"), pods=[pod])
    await until(lambda: up.phase("train") == "Running")
    for container, device in (("big", big), ("small", small)):
        names = [entry.partition("=")[0] for entry in up.config(pod, container)["process"]["env"]]
        wanted = f"SIMULATED_DEVICE_{device.upper().replace('-', '_')}"
        assert [name for name in names if name.startswith("SIMULATED_DEVICE_")] == [wanted]


async def test_a_claim_of_the_same_name_waits_until_the_old_one_is_unprepared(up: KubeletNode) -> None:
    device, other = up.devices()[:2]
    old = up.put_pod("old", "gpu")
    before = up.put_claim("gpu", a_result(device), pods=[old])
    await until(lambda: up.phase("old") == "Running")
    up.server.remove("resourceclaims", "gpu", "default")
    new = up.put_pod("new", "gpu")
    after = up.put_claim("gpu", a_result(other), pods=[new])
    await until(lambda: any("is still prepared" in each["message"] for each in up.server.all("events")))
    assert up.prepared() == [f"{DRIVER}-claim_{before['metadata']['uid']}.json"]
    up.server.remove("pods", "old", "default")
    await until(lambda: up.phase("new") == "Running")
    assert up.prepared() == [f"{DRIVER}-claim_{after['metadata']['uid']}.json"]


async def test_a_pod_waits_for_a_driver_that_is_not_registered(up: KubeletNode) -> None:
    await up.node.stop_plugin()
    kubelet = up.node.kubelet
    assert kubelet is not None
    await until(lambda: not kubelet.registry.drivers)
    pod = up.put_pod("train", "gpu")
    up.put_claim("gpu", a_result(up.devices()[0]), pods=[pod])
    await until(lambda: any("not registered on this node" in each["message"] for each in up.server.all("events")))
    await up.node.start_plugin()
    await until(lambda: up.phase("train") == "Running")


async def test_a_pod_waits_while_the_kubelet_cannot_write_its_state(up: KubeletNode) -> None:
    in_the_way = up.node.folder / "dra_manager_state"
    in_the_way.mkdir()
    pod = up.put_pod("train", "gpu")
    up.put_claim("gpu", a_result(up.devices()[0]), pods=[pod])
    await until(lambda: any("is a directory" in each["message"] for each in up.server.all("events")))
    in_the_way.rmdir()
    await until(lambda: up.phase("train") == "Running")


async def test_a_kubelet_that_starts_again_goes_on_with_what_runs_and_clears_what_went(up: KubeletNode) -> None:
    first, second = up.devices()[:2]
    stays, goes = (up.put_pod(name, name) for name in ("stays", "goes"))
    kept = up.put_claim("stays", a_result(first), pods=[stays])
    up.put_claim("goes", a_result(second), pods=[goes])
    await until(lambda: {up.phase("stays"), up.phase("goes")} == {"Running"})
    await up.node.stop_kubelet()
    up.server.remove("pods", "goes", "default")
    await up.node.start_kubelet()
    await until(lambda: up.prepared() == [f"{DRIVER}-claim_{kept['metadata']['uid']}.json"])
    await up.published()
    assert up.phase("stays") == "Running"
    assert up.config(stays)["hostname"] == "stays"


async def test_a_pod_that_ends_by_itself_succeeds_and_frees_its_devices(up: KubeletNode) -> None:
    pod = up.server.put(
        "pods",
        {
            "metadata": {
                "name": "job",
                "namespace": "default",
                "annotations": {"sandbox.dra-driver.io/run-for": "0.05"},
            },
            "spec": {
                "nodeName": "node-a",
                "containers": [{"name": "main", "image": "busybox:1", "resources": {"claims": [{"name": "gpu"}]}}],
                "resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}],
            },
        },
    )
    up.put_claim("gpu", a_result(up.devices()[0]), pods=[pod])
    await until(lambda: up.phase("job") == "Succeeded")
    assert up.prepared() == []


async def test_slices_of_a_driver_that_stays_away_are_deleted(server: TestApiServer, short_path: Path) -> None:
    async with a_node(server, short_path, wipe_after_s=0.1) as up:
        await up.published()
        await up.node.stop_plugin()
        await until(lambda: not up.devices())
        await up.node.start_plugin()
        await until(up.devices)


def health_of(up: KubeletNode, pod: str) -> list[tuple[str, str, str, str]]:
    """Give claim, CDI device, health and message of each device of a Pod's container, as its status says."""
    statuses = (up.pod(pod) or {}).get("status", {}).get("containerStatuses", ())
    return [
        (entry["name"], device["resourceID"], device["health"], device.get("message", ""))
        for status in statuses
        for entry in status.get("allocatedResourcesStatus", ())
        for device in entry["resources"]
    ]


async def test_the_status_of_a_pod_says_how_its_device_is(up: KubeletNode) -> None:
    ill, well = up.devices()[:2]
    names = {}
    for name, device in (("first", ill), ("second", well)):
        claim = up.put_claim(name, a_result(device), pods=[up.put_pod(name, name)])
        names[name] = (f"claim:{name}", f"{DRIVER}/claim={claim['metadata']['uid']}-{device}")
    for name, told in names.items():
        await until(lambda name=name, told=told: health_of(up, name) == [(*told, "Healthy", "")])  # type: ignore[misc]
    started = (up.pod("first") or {})["status"]["containerStatuses"][0]["state"]
    up.node.overrides.write_text("unhealthy: {0: {reason: xid-79, message: fell off the bus}}")
    sick = [(*names["first"], "Unhealthy", "xid-79: fell off the bus")]
    await until(lambda: health_of(up, "first") == sick)
    assert health_of(up, "second") == [(*names["second"], "Healthy", "")]
    assert (up.pod("first") or {})["status"]["containerStatuses"][0]["state"] == started
    up.node.overrides.write_text("{}")
    await until(lambda: health_of(up, "first") == [(*names["first"], "Healthy", "")])


async def test_a_kubelet_that_starts_again_knows_health_again(up: KubeletNode) -> None:
    pod = up.put_pod("train", "gpu")
    up.put_claim("gpu", a_result(up.devices()[0]), pods=[pod])
    await until(lambda: [entry[2] for entry in health_of(up, "train")] == ["Healthy"])
    await up.node.stop_kubelet()
    up.node.overrides.write_text("unhealthy: {0: {reason: xid-79, message: fell off the bus}}")
    await up.node.start_kubelet()
    await until(lambda: [entry[2] for entry in health_of(up, "train")] == ["Unhealthy"])


@pytest.mark.parametrize("version", HEALTH_VERSIONS)
async def test_health_is_followed_in_each_version_until_the_driver_goes(up: KubeletNode, version: str) -> None:
    told: list[tuple[str, str, str]] = []

    def changed() -> None:
        watch.changed.set()

    registry = Registry(
        up.node.plugin_settings.registry_dir,
        health_versions=(version,),
        look_every_s=0.02,
        changed=changed,
    )
    watch = HealthWatch(registry, told.extend, reopen_s=0.01)
    key = (DRIVER, NODE, up.devices()[0])
    async with running(registry.run()), running(watch.run()):
        await until(lambda: watch.cache.find(key, time.monotonic()) == ("Healthy", ""))
        assert registry.drivers[DRIVER].health_version == version
        assert key in told
        await up.node.stop_plugin()
        await until(lambda: watch.cache.find(key, time.monotonic()) == ("Unknown", ""))
        await up.node.start_plugin()
        await until(lambda: watch.cache.find(key, time.monotonic()) == ("Healthy", ""))
