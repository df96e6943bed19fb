"""A device falls ill while Pods use it: nobody new gets it, nobody loses it, and it comes back."""

from collections.abc import Iterator

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.mixture import PARTITION, PROFILE, Held, container_ids, look_at, run_each
from tests.cluster.plugin import DRIVER, PluginProcess
from tests.cluster.scenario import Manifest, Workload, a_claim, a_pod, a_request, device_of, run_plugins, run_workload

ILL = {"unhealthy": {0: {"reason": "xid-79", "message": "fell off the bus"}}}


@pytest.fixture(scope="module")
def plugins(cluster: Cluster) -> Iterator[PluginProcess]:
    with run_plugins(cluster, {"node-a": PROFILE}) as plugins:
        yield plugins["node-a"]


@pytest.fixture
def plugin(plugins: PluginProcess) -> Iterator[PluginProcess]:
    """Of one plugin for all tests, whose devices are well again afterwards."""
    yield plugins
    plugins.override({})
    wait_for_taints(plugins, 0)


@pytest.fixture
def workload(plugin: PluginProcess) -> Iterator[Workload]:
    with run_workload(plugin) as workload:
        yield workload


def the_first_gpu(**capacity: str) -> Manifest:
    selector = f'device.attributes["{DRIVER}"].index == 0'
    return a_request("device", "accelerator.dra-driver.io", selector, capacity=capacity)


def devices(plugin: PluginProcess) -> dict[str, Manifest]:
    return {device["name"]: device for found in plugin.slices() for device in found["spec"].get("devices", ())}


def health_of(workload: Workload, pod: str) -> list[tuple[str, str, str]]:
    """Give what a Pod's status says of its devices: claim, health and message of each."""
    [status] = workload.cluster.get("pod", pod)["status"]["containerStatuses"]
    return [
        (entry["name"], device["health"], device.get("message", ""))
        for entry in status.get("allocatedResourcesStatus", ())
        for device in entry["resources"]
    ]


def wait_for_health(workload: Workload, pod: str, health: str, message: str = "") -> None:
    wanted = [(f"claim:{pod}", health, message)]
    workload.cluster.wait_for(f"{pod} to be told {health}", lambda: health_of(workload, pod) == wanted)


def wait_for_taints(plugin: PluginProcess, count: int) -> dict[str, list[Manifest]]:
    """Wait until so many devices have taints, and return these by device."""

    def tainted() -> dict[str, list[Manifest]]:
        return {name: device["taints"] for name, device in devices(plugin).items() if "taints" in device}

    plugin.cluster.wait_for(f"{count} tainted devices", lambda: len(tainted()) == count)
    return tainted()


def test_an_ill_device_is_given_to_no_new_pod_until_it_is_well_and_stays_with_its_pod(
    plugin: PluginProcess, workload: Workload
) -> None:
    run_each(workload, {"holder": the_first_gpu(memory="8Gi")})
    before, containers = look_at(workload, "holder"), container_ids(workload, "holder")
    _, gpu = device_of(workload.claim("holder"))
    plugin.override(ILL)
    family = [name for name in devices(plugin) if name.startswith(gpu)]
    taints = wait_for_taints(plugin, len(family))
    assert len(family) == 26  # the GPU and all of its partitions
    assert set(taints) == set(family)
    for [taint] in taints.values():
        assert (taint["key"], taint["value"], taint["effect"]) == ("dra-driver.io/unhealthy", "xid-79", "NoSchedule")
        assert taint["timeAdded"]

    # The GPU has room for another share, and only its health is in the way.
    workload.apply(a_claim("next", the_first_gpu(memory="8Gi")), a_pod("next", "next"))
    workload.wait_until_unschedulable("next")
    run_each(workload, {"elsewhere": PARTITION})
    assert not device_of(workload.claim("elsewhere"))[1].startswith(gpu)
    assert look_at(workload, "holder") == before
    assert container_ids(workload, "holder") == containers

    plugin.override({})
    wait_for_taints(plugin, 0)
    workload.wait_for_phase("next", "Running")
    assert device_of(workload.claim("next")) == ("node-a", gpu)
    assert look_at(workload, "holder") == before
    assert container_ids(workload, "holder") == containers


def test_the_container_of_a_pod_on_an_ill_device_starts_again_with_it(
    plugin: PluginProcess, workload: Workload
) -> None:
    run_each(workload, {"holder": the_first_gpu()})
    before: dict[str, Held] = look_at(workload, "holder")
    plugin.override(ILL)
    wait_for_taints(plugin, 26)
    workload.restart_containers("holder")
    assert look_at(workload, "holder") == before


def test_the_status_of_a_pod_says_how_its_device_is(plugin: PluginProcess, workload: Workload) -> None:
    run_each(workload, {"share": the_first_gpu(memory="8Gi"), "partition": PARTITION})
    for pod in ("share", "partition"):
        wait_for_health(workload, pod, "Healthy")
    plugin.override(ILL)
    wait_for_health(workload, "share", "Unhealthy", "xid-79: fell off the bus")
    assert health_of(workload, "partition")[0][1] == "Healthy"
    plugin.override({})
    wait_for_health(workload, "share", "Healthy")


def test_a_device_that_falls_ill_is_told_of_once(plugin: PluginProcess, workload: Workload) -> None:
    plugin.override(ILL)
    wait_for_taints(plugin, 26)

    def told() -> list[Manifest]:
        return plugin.cluster.events(reason="DeviceUnhealthy")

    plugin.cluster.wait_for("an event", told)
    assert all("xid-79" in event["message"] and "fell off the bus" in event["message"] for event in told())
    assert {(event["involvedObject"]["kind"], event["involvedObject"]["name"]) for event in told()} == {
        ("Node", "node-a")
    }
