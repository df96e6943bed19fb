"""The plugin is ended, killed, or stays away: Pods keep their devices, others get theirs, nothing is given twice."""

from collections.abc import Callable, Iterator

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.mixture import (
    MIXTURE,
    PROFILE,
    WHOLE,
    apply_each,
    assert_each_has_its_own,
    container_ids,
    look_at,
    published,
    run_mixture,
)
from tests.cluster.plugin import PluginProcess
from tests.cluster.process import Process
from tests.cluster.scenario import Workload, a_claim, a_pod, a_request, plugin_dir, run_plugins, run_workload

# The kubelet takes away the slices of a driver that was not there for 30 seconds.
_AWAY = 60


@pytest.fixture(scope="module")
def plugin(cluster: Cluster) -> Iterator[PluginProcess]:
    with run_plugins(cluster, {"node-a": PROFILE}) as plugins:
        yield plugins["node-a"]


@pytest.fixture
def workload(plugin: PluginProcess) -> Iterator[Workload]:
    with run_workload(plugin) as workload:
        yield workload


@pytest.mark.parametrize("end", [Process.stop, Process.kill], ids=["ended in order", "killed"])
def test_pods_keep_their_devices_over_a_restart_and_a_pod_that_came_meanwhile_gets_one(
    plugin: PluginProcess, workload: Workload, end: Callable[[Process], int]
) -> None:
    before, containers = run_mixture(workload), container_ids(workload, *MIXTURE)
    slices, files = plugin.slices(), plugin.claim_files()
    end(plugin.process)
    apply_each(workload, {"late": WHOLE})
    plugin.cluster.wait_for("allocation", lambda: workload.claim("late").get("status", {}).get("reservedFor"))
    assert plugin.claim_files() == files
    plugin.process.start()
    workload.wait_for_phase("late", "Running")
    assert plugin.slices() == slices  # not written again, so the same to the resource version
    assert look_at(workload, *MIXTURE) == before
    assert container_ids(workload, *MIXTURE) == containers
    assert_each_has_its_own(workload, *MIXTURE, "late")
    assert len(plugin.claim_files()) == len(files) + 1


def test_pods_that_start_while_the_plugin_is_killed_again_and_again_get_one_device_each(
    plugin: PluginProcess, workload: Workload
) -> None:
    before, containers = run_mixture(workload), container_ids(workload, *MIXTURE)
    records = plugin_dir(plugin.node) / "claims"
    pods = [f"pod-{index}" for index in range(5)]
    apply_each(workload, dict.fromkeys(pods, WHOLE))
    for more in (1, 2, 3):
        wanted = len(MIXTURE) + more
        # As soon as a record is there, its claim is being prepared.
        plugin.cluster.wait_for("a record", lambda wanted=wanted: len(list(records.iterdir())) >= wanted)  # type: ignore[misc]
        plugin.process.kill()
        plugin.process.start()
    for pod in pods:
        workload.wait_for_phase(pod, "Running")
    assert look_at(workload, *MIXTURE) == before
    assert container_ids(workload, *MIXTURE) == containers
    assert_each_has_its_own(workload, *MIXTURE, *pods)


def test_a_plugin_that_was_killed_unprepares_what_was_prepared_before(
    plugin: PluginProcess, workload: Workload
) -> None:
    run_mixture(workload)
    plugin.process.kill()
    plugin.cluster.kubectl("delete", "pods", *MIXTURE, "--wait=false")
    plugin.process.start()
    plugin.cluster.wait_for("claims to be unprepared", lambda: not plugin.claim_files())
    workload.run(a_claim("all", a_request("device", "accelerator.dra-driver.io", count=8)), a_pod("all", "all"))
    assert len(workload.see("all").given) == 8


def test_slices_go_with_a_plugin_that_stays_away_and_come_back_with_it(
    plugin: PluginProcess, workload: Workload
) -> None:
    before, containers, slices = run_mixture(workload), container_ids(workload, *MIXTURE), published(plugin)
    plugin.process.stop()
    plugin.cluster.wait_for("the kubelet to delete the slices", lambda: not plugin.slices(), _AWAY)
    apply_each(workload, {"late": WHOLE})
    workload.wait_until_unschedulable("late")
    plugin.process.start()
    workload.wait_for_phase("late", "Running")
    assert published(plugin) == slices
    assert look_at(workload, *MIXTURE) == before
    assert container_ids(workload, *MIXTURE) == containers
    assert_each_has_its_own(workload, *MIXTURE, "late")
