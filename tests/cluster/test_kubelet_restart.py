"""The kubelet is restarted, which takes away its node's slices; containers end and are started again."""

from collections.abc import Iterator

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.mixture import (
    MIXTURE,
    PROFILE,
    WHOLE,
    assert_each_has_its_own,
    container_ids,
    is_complete,
    look_at,
    published,
    run_each,
    run_mixture,
)
from tests.cluster.plugin import PluginProcess
from tests.cluster.scenario import Workload, run_plugins, run_workload


@pytest.fixture(scope="module")
def plugin(cluster: Cluster) -> Iterator[PluginProcess]:
    with run_plugins(cluster, {"node-a": PROFILE}) as plugins:
        yield plugins["node-a"]


@pytest.fixture
def workload(plugin: PluginProcess) -> Iterator[Workload]:
    with run_workload(plugin) as workload:
        yield workload


def restart_kubelet(plugin: PluginProcess) -> None:
    """Restart the kubelet and wait until it has deleted all slices of its node and others have taken their place."""
    before = {found["metadata"]["uid"] for found in plugin.slices()}
    plugin.node.kubelet.restart()

    def probe() -> bool:
        return before.isdisjoint(found["metadata"]["uid"] for found in plugin.slices()) and is_complete(plugin)

    plugin.cluster.wait_for("new slices", probe)


def test_slices_come_back_after_the_kubelet_was_restarted_and_pods_run_on(
    plugin: PluginProcess, workload: Workload
) -> None:
    before, containers, slices = run_mixture(workload), container_ids(workload, *MIXTURE), published(plugin)
    restart_kubelet(plugin)
    assert published(plugin) == slices
    run_each(workload, {"next": WHOLE})
    assert look_at(workload, *MIXTURE) == before
    assert container_ids(workload, *MIXTURE) == containers
    assert_each_has_its_own(workload, *MIXTURE, "next")


def test_a_container_that_was_killed_starts_again_with_the_same_devices(
    plugin: PluginProcess, workload: Workload
) -> None:
    before, files = run_mixture(workload), plugin.claim_files()
    workload.restart_containers(*MIXTURE)
    assert look_at(workload, *MIXTURE) == before
    assert plugin.claim_files() == files


def test_a_container_that_is_killed_after_the_kubelet_was_restarted_has_the_same_devices_again(
    plugin: PluginProcess, workload: Workload
) -> None:
    before, files = run_mixture(workload), plugin.claim_files()
    restart_kubelet(plugin)
    workload.restart_containers(*MIXTURE)
    assert look_at(workload, *MIXTURE) == before
    assert plugin.claim_files() == files


def test_pods_that_are_deleted_while_kubelet_and_plugin_are_away_are_unprepared_when_both_are_back(
    plugin: PluginProcess, workload: Workload
) -> None:
    run_mixture(workload)
    plugin.process.kill()
    plugin.node.kubelet.kill()
    plugin.cluster.kubectl("delete", "pods,resourceclaims", *MIXTURE, "--wait=false")
    plugin.node.kubelet.start()
    plugin.process.start()
    plugin.cluster.wait_for("claims to be unprepared", lambda: not plugin.claim_files())
