"""What a reboot takes from a node, its CDI specs and device nodes, is there again when a container starts."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.mixture import MIXTURE, PROFILE, WHOLE, container_ids, look_at, run_each, run_mixture
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


def empty(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def lose_files(plugin: PluginProcess) -> None:
    """Empty the folders that are in memory on a real node."""
    empty(plugin.node.cdi_dir)
    empty(plugin.node.folder / "dev")


def while_it_runs(plugin: PluginProcess) -> None:
    lose_files(plugin)


def while_the_plugin_is_away(plugin: PluginProcess) -> None:
    plugin.process.stop()
    lose_files(plugin)
    plugin.process.start()


def while_plugin_and_kubelet_are_away(plugin: PluginProcess) -> None:
    plugin.process.kill()
    plugin.node.kubelet.kill()
    lose_files(plugin)
    plugin.node.kubelet.start()
    plugin.process.start()


@pytest.mark.parametrize("lose", [while_it_runs, while_the_plugin_is_away, while_plugin_and_kubelet_are_away])
def test_a_container_that_starts_after_its_cdi_spec_was_lost_has_its_devices_again(
    plugin: PluginProcess, workload: Workload, lose: Callable[[PluginProcess], None]
) -> None:
    before = run_mixture(workload)
    files = {path.name: path.read_bytes() for path in plugin.claim_files()}
    lose(plugin)
    plugin.cluster.wait_for("the CDI specs to be there again", lambda: len(plugin.claim_files()) == len(files))
    assert {path.name: path.read_bytes() for path in plugin.claim_files()} == files
    workload.restart_containers(*MIXTURE)
    assert look_at(workload, *MIXTURE) == before


def test_after_a_reboot_all_containers_start_again_with_their_devices(
    plugin: PluginProcess, workload: Workload
) -> None:
    before, node = run_mixture(workload), plugin.node
    containers = container_ids(workload, *MIXTURE)
    plugin.process.kill()
    node.kubelet.kill()
    for task in node.ctr("tasks", "ls", "--quiet").split():
        node.kill_container(task)
    node.containerd.kill()
    lose_files(plugin)
    node.containerd.start()
    node.wait_for_containerd()
    node.kubelet.start()
    plugin.process.start()
    workload.wait_for_restart(containers)
    assert look_at(workload, *MIXTURE) == before
    run_each(workload, {"next": WHOLE})
