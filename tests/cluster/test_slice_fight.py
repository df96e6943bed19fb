"""Others change, empty and delete the node's slices on a real API server: they come back, and nobody is flooded."""

import json
from collections.abc import Iterator

import pytest

from kubeletplugin.publish.diff import LAST_GENERATION
from tests.cluster.cluster import Cluster
from tests.cluster.plugin import PluginProcess
from tests.cluster.scenario import Manifest, run_plugins

NODE = "node-a"
ROUNDS = 30


@pytest.fixture
def plugin(cluster: Cluster) -> Iterator[PluginProcess]:
    with run_plugins(cluster, {NODE: "h100x8"}) as plugins:
        yield plugins[NODE]


def patch(plugin: PluginProcess, change: Manifest) -> None:
    """Change each of the node's slices. One that is gone meanwhile is nobody's concern."""
    for name in names(plugin):
        script = f"kubectl patch resourceslice {name} --type=merge --patch '{json.dumps(change)}' || true"
        plugin.cluster.shell(script)


def names(plugin: PluginProcess) -> list[str]:
    return [found["metadata"]["name"] for found in plugin.slices()]


def devices(plugin: PluginProcess) -> list[str]:
    return [device["name"] for found in plugin.slices() for device in found["spec"].get("devices", ())]


def generations(plugin: PluginProcess) -> set[int]:
    return {found["spec"]["pool"]["generation"] for found in plugin.slices()}


def writes(plugin: PluginProcess) -> int:
    return plugin.process.log.read_text().count('"event": "pool published"')


def test_slices_that_are_emptied_and_deleted_again_and_again_come_back_by_fewer_writes(plugin: PluginProcess) -> None:
    before, wrote = devices(plugin), writes(plugin)
    for index in range(ROUNDS):
        if index % 2 and (found := names(plugin)):
            plugin.cluster.kubectl("delete", "resourceslices", *found, "--ignore-not-found", "--wait=false")
        else:
            patch(plugin, {"spec": {"devices": []}})
    plugin.cluster.wait_for("the slices as before", lambda: devices(plugin) == before)
    assert 0 < writes(plugin) - wrote < ROUNDS


def test_after_the_last_generation_of_all_the_pool_can_still_change(plugin: PluginProcess) -> None:
    patch(plugin, {"spec": {"pool": {"generation": LAST_GENERATION}}})
    plugin.cluster.wait_for("the last generation", lambda: generations(plugin) == {LAST_GENERATION})
    plugin.override({"added": 60})
    plugin.cluster.wait_for("two slices", lambda: len(devices(plugin)) == 68)
    assert generations(plugin) == {1}
