"""The API server goes away and comes back: the plugin waits, and then knows what happened."""

from collections.abc import Iterator

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.mixture import MIXTURE, PROFILE, WHOLE, container_ids, look_at, published, run_each, run_mixture
from tests.cluster.plugin import PluginProcess
from tests.cluster.process import Process, wait_until
from tests.cluster.scenario import Workload, run_plugins, run_workload


@pytest.fixture(scope="module")
def plugin(cluster: Cluster) -> Iterator[PluginProcess]:
    with run_plugins(cluster, {"node-a": PROFILE}) as plugins:
        yield plugins["node-a"]


@pytest.fixture
def workload(plugin: PluginProcess) -> Iterator[Workload]:
    with run_workload(plugin) as workload:
        yield workload


@pytest.fixture
def api_server(cluster: Cluster) -> Iterator[Process]:
    """The API server, which runs again afterwards."""
    process = cluster.processes["kube-apiserver"]
    yield process
    if process.returncode is not None:
        process.start()
    cluster.control_plane.wait_until_ready()


def test_after_a_restart_of_the_api_server_slices_are_kept_and_claims_are_prepared(
    plugin: PluginProcess, workload: Workload, api_server: Process
) -> None:
    before, containers, slices = run_mixture(workload), container_ids(workload, *MIXTURE), plugin.slices()
    api_server.kill()
    api_server.start()
    plugin.cluster.control_plane.wait_until_ready()
    run_each(workload, {"next": WHOLE})
    assert plugin.slices() == slices
    assert look_at(workload, *MIXTURE) == before
    assert container_ids(workload, *MIXTURE) == containers

    # That slices are deleted is seen by the watch alone.
    content = published(plugin)
    plugin.cluster.kubectl("delete", "resourceslice", slices[0]["metadata"]["name"])
    plugin.cluster.wait_for("the slice to be there again", lambda: published(plugin) == content)


def test_a_plugin_that_starts_before_the_api_server_waits_for_it_and_serves_then(
    plugin: PluginProcess, workload: Workload, api_server: Process
) -> None:
    before, slices = run_mixture(workload), plugin.slices()
    plugin.process.stop()
    api_server.kill()
    plugin.process.start()

    def waits() -> bool:
        return "pool not published" in plugin.process.tail()

    wait_until("the plugin to say that it waits", waits, 30, check=plugin.process.check)
    api_server.start()
    plugin.wait_until_ready()
    assert plugin.slices() == slices
    run_each(workload, {"next": WHOLE})
    assert look_at(workload, *MIXTURE) == before
