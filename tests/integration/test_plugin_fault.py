"""A machine that has nothing left: the plugin says so, loses nothing, and goes on when there is again."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubeletplugin.prepare.record import ClaimRef
from tests.support.api_fault import Fault
from tests.support.builder import a_claim, a_ref, a_result
from tests.support.claim import put_claim
from tests.support.fault import (
    EMFILE,
    ENOSPC,
    EROFS,
    beside,
    fill,
    may_mount,
    on_own_disk,
    read_only,
    seen_by,
    without_descriptors,
)
from tests.support.kubelet import Kubelet
from tests.support.plugin import PluginNode, PluginProcess
from tests.support.wait import until

NEWER = "00000000-0000-0000-0000-000000000001"

needs_disks = pytest.mark.skipif(not may_mount(), reason="a process may not mount disks of its own here")


def claims(node: PluginNode) -> Iterator[ClaimRef]:
    """Store a claim for each device."""
    for number, device in enumerate(node.devices()):
        yield put_claim(node.server, a_claim(a_result(device), ref=a_ref(f"uid-{number}", f"claim-{number}")))


async def prepare(kubelet: Kubelet, ref: ClaimRef) -> str:
    return str((await kubelet.prepare(ref))[ref.uid].error)


async def unprepare(kubelet: Kubelet, ref: ClaimRef) -> str:
    return str((await kubelet.unprepare(ref))[ref.uid].error)


async def failures(plugin: PluginProcess, task: str) -> float:
    _, text = await plugin.get("/metrics")
    name = f'dra_kubeletplugin_background_failures_total{{task="{task}"}} '
    return next(float(line.removeprefix(name)) for line in text.splitlines() if line.startswith(name))


def interrupted(plugin: PluginProcess) -> dict[str, str]:
    """Return what the plugin's tasks lacked, as it was told first, by task; each must be told once."""
    lines = [each for each in plugin.events if each["event"] == "background task interrupted"]
    told = {each["task"]: str(each["error"]) for each in lines}
    assert len(told) == len(lines), plugin.text
    return told


async def is_well(plugin: PluginProcess) -> None:
    """Wait until the plugin knows of no trouble."""
    await plugin.logged("background task goes on")
    assert (await plugin.get("/readyz"))[0] == 200


async def test_a_plugin_without_descriptors_goes_on_when_there_are_some(node: PluginNode) -> None:
    plugin = await node.start_ready()
    first, second, third, *_ = claims(node)
    async with Kubelet.registered(node.registrar) as kubelet:
        assert await prepare(kubelet, first) == ""
        with without_descriptors(plugin.pid):
            assert EMFILE in (await prepare(kubelet, second)).lower()
            assert EMFILE in await unprepare(kubelet, first)
            await until(lambda: "upkeep" in interrupted(plugin))
            assert all(EMFILE in error.lower() for error in interrupted(plugin).values()), plugin.text
        assert [await prepare(kubelet, each) for each in (second, third)] == ["", ""]
        assert await unprepare(kubelet, first) == ""
        await is_well(plugin)
    assert await failures(plugin, "upkeep") > 0


async def test_a_plugin_that_lacks_descriptors_while_it_watches_publishes_when_there_are_some(
    node: PluginNode,
) -> None:
    plugin = await node.start_ready()
    devices = node.devices()
    await node.server.stop()
    await plugin.logged("watch interrupted")
    with without_descriptors(plugin.pid):
        await node.server.start()
        for each in node.server.all("resourceslices"):
            node.server.remove("resourceslices", each["metadata"]["name"])
        await until(lambda: any(EMFILE in str(each.get("error")).lower() for each in plugin.events))
    await until(lambda: node.devices() == devices, within_s=30)
    assert not plugin.ended


async def start_on_own_disk(node: PluginNode) -> tuple[PluginProcess, Path]:
    """Start a plugin whose records are on a small disk, and return the folder as the plugin sees it."""
    folder = node.plugin_dir / "claims"
    folder.mkdir(parents=True)
    plugin = await node.start(on_own_disk(folder))
    await plugin.logged("plugin started")
    await plugin.published()
    return plugin, folder


@needs_disks
async def test_a_disk_that_fills_refuses_what_needs_room_and_nothing_else(node: PluginNode) -> None:
    plugin, folder = await start_on_own_disk(node)
    async with Kubelet.registered(node.registrar) as kubelet:
        first, second, third, *_ = claims(node)
        assert [await prepare(kubelet, each) for each in (first, second)] == ["", ""]
        ballast = fill(seen_by(plugin.pid, folder))
        refused = await prepare(kubelet, third)
        assert ENOSPC in refused
        assert str(folder) in refused
        assert await prepare(kubelet, first) == ""
        assert await unprepare(kubelet, second) == ""
        newer = await node.start(beside(plugin.pid), pod_uid=NEWER)
        await newer.logged("plugin started")
        ballast.unlink()
        assert await prepare(kubelet, third) == ""
        assert (await plugin.get("/readyz"))[0] == 200


@needs_disks
async def test_a_state_directory_that_becomes_read_only_loses_nothing(node: PluginNode) -> None:
    plugin, folder = await start_on_own_disk(node)
    async with Kubelet.registered(node.registrar) as kubelet:
        first, second, *_ = claims(node)
        assert await prepare(kubelet, first) == ""
        with read_only(plugin.pid, folder):
            assert EROFS in await prepare(kubelet, second)
            assert await prepare(kubelet, first) == ""
            assert EROFS in await unprepare(kubelet, first)
            await until(lambda: "upkeep" in interrupted(plugin))
            newer = await node.start(beside(plugin.pid), pod_uid=NEWER)
            assert await newer.wait() == 2
            assert f"{folder}: {EROFS}, want a directory that can be written to" in newer.text.splitlines()[-1]
        assert await prepare(kubelet, second) == ""
        assert await unprepare(kubelet, first) == ""
        await is_well(plugin)


BUG = """
import sys
from pathlib import Path
from kubeletplugin.cli import main
from kubeletplugin.prepare.upkeep import Upkeep

work, path = Upkeep.work, Path(sys.argv[1])

async def work_until_the_bug(self):
    if path.exists():
        raise ValueError("nobody foresaw this")
    await work(self)

Upkeep.work = work_until_the_bug
sys.argv[1:] = sys.argv[5:]
main()
"""


async def test_a_bug_in_the_background_ends_the_plugin_once_the_kubelet_is_answered(node: PluginNode) -> None:
    bug = node.folder / "bug"
    plugin = await node.start((sys.executable, "-c", BUG, str(bug)))
    await plugin.logged("plugin started")
    await plugin.published()
    first, *_ = claims(node)
    slow = node.server.inject(Fault("delay", "/resourceclaims/"))
    async with Kubelet.registered(node.registrar) as kubelet:
        call = asyncio.create_task(prepare(kubelet, first))
        await until(lambda: slow.times == 0)
        bug.touch()
        told = await plugin.logged("background task met a bug, plugin is to end")
        assert (told["task"], told["error"]) == ("upkeep", "ValueError('nobody foresaw this')")
        slow.released.set()
        assert await call == ""
    assert await plugin.wait() == 1
    assert "plugin ended" in plugin.events[-1]["event"]
    assert not node.registrar.exists()
    assert node.devices()
