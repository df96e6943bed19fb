"""Claims that share one device by consumed capacity."""

from collections.abc import Iterator

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.plugin import PluginProcess
from tests.cluster.scenario import (
    SHIM_FOLDER,
    Manifest,
    Workload,
    a_claim,
    a_pod,
    a_request,
    attributes_of,
    results,
    run_plugins,
    write_profile,
)


@pytest.fixture(scope="module", autouse=True)
def plugin(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PluginProcess]:
    """The only GPU of the cluster is an H100 with 81559Mi."""
    profile = write_profile(tmp_path_factory.mktemp("share"), "h100x8", gpus=1)
    with run_plugins(cluster, {"node-a": str(profile)}) as plugins:
        yield plugins["node-a"]


def a_share(name: str, **capacity: str) -> Manifest:
    return a_claim(name, a_request(capacity=capacity))


def test_each_pod_finds_its_own_limits_and_nothing_of_the_others(workload: Workload, plugin: PluginProcess) -> None:
    workload.run(
        a_share("first", memory="8Gi", cores="30"),
        a_share("second", memory="10Gi"),
        a_pod("first", "first"),
        a_pod("second", "second"),
    )
    claims = {name: workload.claim(name) for name in ("first", "second")}
    [first], [second] = map(results, claims.values())
    assert (first["pool"], first["device"]) == (second["pool"], second["device"])
    assert first["shareID"] != second["shareID"]
    assert first["consumedCapacity"] == {"memory": "8Gi", "cores": "30", "slots": "1"}
    identity = attributes_of(plugin, first["device"])["uuid"]
    uids = {name: claim["metadata"]["uid"] for name, claim in claims.items()}
    assert workload.shims("first") == [
        f"shim 1\nclaim {uids['first']}\ndevice {identity} memory=8589934592 cores=30 policy=force\n"
    ]
    assert workload.shims("second") == [
        f"shim 1\nclaim {uids['second']}\ndevice {identity} memory=10737418240 cores=- policy=force\n"
    ]
    mounts = workload.see("first").mounts
    [shim] = [point for point in mounts if point.startswith(SHIM_FOLDER)]
    assert shim == f"{SHIM_FOLDER}/{uids['first']}-{first['device']}-{first['shareID']}"
    assert {"ro", "nosuid", "nodev", "noexec"} <= set(mounts[shim])


@pytest.mark.parametrize(
    "capacity",
    [
        pytest.param({"memory": "20Gi"}, id="memory"),
        pytest.param({"memory": "1Gi", "cores": "30"}, id="cores"),
        pytest.param({}, id="the whole GPU"),
    ],
)
def test_a_third_pod_waits_until_one_of_two_is_gone(workload: Workload, capacity: dict[str, str]) -> None:
    workload.run(
        a_share("big", memory="40Gi", cores="80"),
        a_share("small", memory="30Gi", cores="10") if capacity else a_share("small", memory="1Gi"),
        a_pod("big", "big"),
        a_pod("small", "small"),
    )
    workload.apply(a_share("third", **capacity), a_pod("third", "third"))
    assert "cannot allocate all claims" in workload.wait_until_unschedulable("third")
    assert "allocation" not in workload.claim("third").get("status", {})
    for name in ("big",) if capacity else ("big", "small"):
        workload.delete("pod", name)
    workload.wait_for_phase("third", "Running")


def test_a_claim_of_a_whole_gpu_has_no_limits(workload: Workload) -> None:
    workload.run(a_claim("whole"), a_pod("whole", "whole"))
    assert not [point for point in workload.see("whole").mounts if point.startswith(SHIM_FOLDER)]
