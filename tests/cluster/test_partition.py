"""Partitions of a GPU by shared counters, and that a GPU is either partitioned, or shared, or held whole."""

from collections.abc import Iterator

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.plugin import PluginProcess
from tests.cluster.scenario import (
    Manifest,
    Workload,
    a_claim,
    a_pod,
    a_request,
    device_of,
    held,
    run_plugins,
    write_profile,
)


@pytest.fixture(scope="module", autouse=True)
def plugin(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PluginProcess]:
    """The only GPU of the cluster is an A100."""
    profile = write_profile(tmp_path_factory.mktemp("partition"), "a100x8", gpus=1)
    with run_plugins(cluster, {"node-a": str(profile)}) as plugins:
        yield plugins["node-a"]


def a_partition(name: str, profile: str) -> Manifest:
    selector = f'device.attributes["accel.dra-driver.io"].partitionProfile == "{profile}"'
    return a_claim(name, a_request("device", "partition.dra-driver.io", selector))


def a_share(name: str) -> Manifest:
    return a_claim(name, a_request(capacity={"memory": "8Gi"}))


def partitions(cluster: Cluster) -> set[str]:
    return {path for path in held(cluster.nodes["node-a"]) if path.startswith("partitions/")}


CLAIMS = {"whole": a_claim("whole"), "share": a_share("share"), "partition": a_partition("partition", "1g.10gb")}


def test_two_partitions_of_one_gpu_run_beside_each_other(workload: Workload, cluster: Cluster) -> None:
    workload.run(
        a_partition("small", "1g.10gb"),
        a_partition("large", "3g.40gb"),
        a_pod("small", "small"),
        a_pod("large", "large"),
        a_pod("plain"),
    )
    small, large = (device_of(workload.claim(name))[1] for name in ("small", "large"))
    assert small.rpartition("-1g-10gb-")[0] == large.rpartition("-3g-40gb-")[0] != ""
    assert partitions(cluster) == {f"partitions/{small}.json", f"partitions/{large}.json"}
    plain = workload.see("plain")
    views = [workload.see(name).beyond(plain) for name in ("small", "large")]
    shared = {"/dev/nvidiactl", "/dev/nvidia-uvm"}
    own = [set(view.devices) - shared for view in views]
    assert all(len(each) == 1 for each in own)
    assert own[0] != own[1]
    assert not any("shim" in point for view in views for point in view.mounts)
    for name, view in zip((small, large), views, strict=True):
        assert view.environment[f"SIMULATED_DEVICE_{name.upper().replace('-', '_')}"].startswith("MIG-")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(first, second, id=f"{first} then {second}")
        for first in CLAIMS
        for second in CLAIMS
        if "partition" in {first, second} and first != second
    ],
)
def test_a_gpu_in_use_is_not_used_in_another_way_until_it_is_free(
    workload: Workload, cluster: Cluster, first: str, second: str
) -> None:
    workload.run(CLAIMS[first], a_pod(first, first))
    workload.apply(CLAIMS[second], a_pod(second, second))
    assert "cannot allocate all claims" in workload.wait_until_unschedulable(second)
    workload.delete("pod", first)
    workload.wait_for_phase(second, "Running")
    assert len(partitions(cluster)) == (second == "partition")
    assert "allocation" not in workload.claim(first).get("status", {})


def test_a_partition_outlives_a_killed_plugin_and_goes_with_its_pod(
    workload: Workload, cluster: Cluster, plugin: PluginProcess
) -> None:
    workload.run(a_partition("small", "1g.10gb"), a_pod("small", "small"))
    made, slices = partitions(cluster), plugin.slices()
    plugin.process.kill()
    plugin.process.start()
    plugin.wait_until_ready()
    assert (partitions(cluster), plugin.slices()) == (made, slices)
    workload.run(a_partition("large", "3g.40gb"), a_pod("large", "large"))
    assert len(partitions(cluster)) == 2
    workload.delete("pod", "small")
    cluster.wait_for("the partition of the Pod that is gone to go", lambda: len(partitions(cluster)) == 1, 30)
    assert not made & partitions(cluster)


def test_an_overlapping_partition_waits_for_its_place(workload: Workload, cluster: Cluster) -> None:
    """The 4g.40gb has but one place, which the 1g.10gb before it takes a part of."""
    workload.run(a_partition("small", "1g.10gb"), a_pod("small", "small"))
    workload.apply(a_partition("wide", "4g.40gb"), a_pod("wide", "wide"))
    assert "cannot allocate all claims" in workload.wait_until_unschedulable("wide")
    workload.delete("pod", "small")
    workload.wait_for_phase("wide", "Running")
    assert len(partitions(cluster)) == 1


def test_a_gpu_has_no_more_partitions_than_its_counters_allow(workload: Workload, cluster: Cluster) -> None:
    workload.run(a_partition("one", "3g.40gb"), a_partition("two", "3g.40gb"), a_pod("one", "one"), a_pod("two", "two"))
    workload.apply(a_partition("three", "1g.10gb"), a_pod("three", "three"))
    assert "cannot allocate all claims" in workload.wait_until_unschedulable("three")
    assert len(partitions(cluster)) == 2
