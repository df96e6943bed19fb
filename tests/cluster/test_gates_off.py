"""An API server without the feature gates of sharing, partitions or taints: what is published is safe, and said why."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.mixture import run_each
from tests.cluster.plugin import PluginProcess
from tests.cluster.scenario import (
    Manifest,
    Workload,
    a_claim,
    a_pod,
    a_request,
    device_of,
    run_plugins,
    run_workload,
    write_profile,
)

SHARING, PARTITIONS, TAINTS = "DRAConsumableCapacity", "DRAPartitionableDevices", "DRADeviceTaints"

# The second of two GPUs is ill.
GPUS = 2
ILL = {"unhealthy": {1: {"reason": "xid-79", "message": "fell off the bus"}}}


def without(*names: str) -> dict[str, bool]:
    """Give feature gates of which some are off, and those with them that cannot be on without them."""
    dependents = {"DRADeviceTaintRules": False} if TAINTS in names else {}
    return {**dict.fromkeys(names, False), **dependents}


@pytest.fixture(scope="module")
def small_cluster() -> Iterator[Cluster]:
    with Cluster(nodes=("node-a",), feature_gates=without(SHARING, PARTITIONS, TAINTS)) as cluster:
        yield cluster


@pytest.fixture
def lesser(small_cluster: Cluster) -> Cluster:
    """A cluster of one node whose gates the tests change. Nothing has happened in it yet."""
    small_cluster.kubectl("delete", "events", "--all")
    return small_cluster


@pytest.fixture
def profile(tmp_path: Path) -> str:
    return str(write_profile(tmp_path, "a100x8", gpus=GPUS))


def set_gates(cluster: Cluster, gates: dict[str, bool]) -> None:
    if cluster.control_plane.feature_gates != gates:
        cluster.control_plane.restart(gates)


def devices(plugin: PluginProcess) -> list[Manifest]:
    return [device for found in plugin.slices() for device in found["spec"].get("devices", ())]


def partitions(plugin: PluginProcess) -> list[Manifest]:
    return [device for device in devices(plugin) if device["attributes"]["partition"]["bool"]]


def features(plugin: PluginProcess) -> set[str]:
    """Name the gates of which the published slices make use."""
    specs = [found["spec"] for found in plugin.slices()]
    found = {
        SHARING: any("allowMultipleAllocations" in device for device in devices(plugin))
        and any("requestPolicy" in each for device in devices(plugin) for each in device["capacity"].values()),
        PARTITIONS: any("sharedCounters" in spec for spec in specs)
        and any("consumesCounters" in device for device in devices(plugin)),
        TAINTS: any("taints" in device for device in devices(plugin)),
    }
    return {gate for gate, used in found.items() if used}


def wait_until_told(cluster: Cluster, *gates: str) -> None:
    """Wait for an Event on the Node that names these gates and no others."""

    def named(event: Manifest) -> set[str]:
        assert event["involvedObject"]["kind"] == "Node"
        return {gate for gate in (SHARING, PARTITIONS, TAINTS) if gate in event["message"]}

    what = f"an event that names {', '.join(gates)}"
    cluster.wait_for(what, lambda: set(gates) in map(named, cluster.events(reason="FieldsDropped")))


def fall_ill(plugin: PluginProcess) -> None:
    """Make the second GPU ill and wait until the pool is published so."""
    plugin.override(ILL)

    def is_seen() -> bool:
        return TAINTS in features(plugin) or len(devices(plugin)) - len(partitions(plugin)) == GPUS - 1

    plugin.cluster.wait_for("the ill GPU to be tainted or left out", is_seen)


def test_without_all_three_only_whole_healthy_gpus_are_published_each_for_one_claim(
    lesser: Cluster, profile: str
) -> None:
    set_gates(lesser, without(SHARING, PARTITIONS, TAINTS))
    with run_plugins(lesser, {"node-a": profile}) as plugins, run_workload(plugins["node-a"]) as workload:
        plugin = plugins["node-a"]
        fall_ill(plugin)
        [gpu] = devices(plugin)
        assert not gpu["attributes"]["partition"]["bool"]
        assert not {"allowMultipleAllocations", "consumesCounters", "taints"} & gpu.keys()
        assert all(set(capacity) == {"value"} for capacity in gpu["capacity"].values())
        assert not any("sharedCounters" in found["spec"] for found in plugin.slices())

        wait_until_told(lesser, SHARING, PARTITIONS, TAINTS)
        [left_out] = lesser.wait_for("an event", lambda: lesser.events(reason="DeviceLeftOut"))
        assert "xid-79" in left_out["message"]

        assert_one_claim_has_a_gpu_alone(workload, gpu["name"])


def assert_one_claim_has_a_gpu_alone(workload: Workload, device: str) -> None:
    # Without the gate, the API server forgets how much of the GPU the claim asks for.
    share = a_request("device", "accelerator.dra-driver.io", capacity={"memory": "8Gi"})
    run_each(workload, {"alone": share})
    assert workload.see("alone").given == {device} == {device_of(workload.claim("alone"))[1]}
    workload.apply(a_claim("other", share), a_pod("other", "other"))
    workload.wait_until_unschedulable("other")
    workload.delete("pod", "alone")
    workload.wait_for_phase("other", "Running")
    assert workload.see("other").given == {device}


@pytest.mark.parametrize("gate", [SHARING, PARTITIONS, TAINTS])
def test_without_one_of_them_the_others_are_made_use_of(lesser: Cluster, profile: str, gate: str) -> None:
    set_gates(lesser, without(gate))
    with run_plugins(lesser, {"node-a": profile}) as plugins:
        plugin = plugins["node-a"]
        fall_ill(plugin)
        assert features(plugin) == {SHARING, PARTITIONS, TAINTS} - {gate}
        whole = len(devices(plugin)) - len(partitions(plugin))
        assert whole == (GPUS - 1 if gate == TAINTS else GPUS)
        assert bool(partitions(plugin)) == (gate != PARTITIONS)
        wait_until_told(lesser, gate)


def test_gates_that_are_enabled_while_the_plugin_runs_are_made_use_of(lesser: Cluster, profile: str) -> None:
    set_gates(lesser, without(SHARING, PARTITIONS, TAINTS))
    with run_plugins(lesser, {"node-a": profile}) as plugins, run_workload(plugins["node-a"]) as workload:
        plugin = plugins["node-a"]
        run_each(workload, {"before": a_request("device", "accelerator.dra-driver.io")})
        fall_ill(plugin)
        assert features(plugin) == set()
        set_gates(lesser, {})
        lesser.wait_for("all features", lambda: features(plugin) == {SHARING, PARTITIONS, TAINTS})
        assert workload.see("before").given == {device_of(workload.claim("before"))[1]}


def test_without_taints_a_node_of_the_controller_publishes_nothing_until_it_is_kube_schedulers(
    lesser: Cluster, profile: str
) -> None:
    set_gates(lesser, without(TAINTS))
    lesser.kubectl("label", "node", "node-a", "dra-driver.io/allocator=controller")
    try:
        with run_plugins(lesser, {"node-a": profile}) as plugins:
            plugin = plugins["node-a"]
            assert len(plugin.slices()) == 1
            assert devices(plugin) == []
            wait_until_told(lesser, TAINTS)
            [left_out] = lesser.wait_for("an event", lambda: lesser.events(reason="DeviceLeftOut"))
            assert left_out["message"].startswith("left out all devices: the node is labelled dra-driver.io/allocator")
            lesser.kubectl("label", "node", "node-a", "dra-driver.io/allocator-")
            lesser.wait_for("the devices", lambda: len(devices(plugin)) - len(partitions(plugin)) == GPUS)
            lesser.kubectl("label", "node", "node-a", "dra-driver.io/allocator=controller")
            lesser.wait_for("no device", lambda: devices(plugin) == [])
            set_gates(lesser, {})
            lesser.wait_for("the taint", lambda: TAINTS in features(plugin))
    finally:
        lesser.kubectl("label", "node", "node-a", "dra-driver.io/allocator-")
