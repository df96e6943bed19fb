"""What a plugin process makes of the XIDs that are noted on its node, on a library with the functions of NVIDIA's."""

import json
import os
import sys
from pathlib import Path

import pytest

from kubeletplugin.boot import read_boot_id
from tests.support.builder import NODE
from tests.support.plugin import PluginNode, PluginProcess
from tests.support.wait import until


class NvidiaPlugin:
    """A node whose plugins find eight H100s."""

    def __init__(self, node: PluginNode, folder: Path, library: Path) -> None:
        self.node = node
        self.root = folder / "driver"
        self.library = library
        found = self.root / "usr/lib64/libnvidia-ml.so.1"
        found.parent.mkdir(parents=True)
        os.link(library, found)

    async def start(self, **flags: object) -> PluginProcess:
        within = (sys.executable, "-m", "tests.support.nvml.process", str(self.library), "h100x8")
        simulated = dict.fromkeys(("simulated_profile", "simulated_overrides", "simulated_dev_dir"))
        plugin = await self.node.start(
            within, backend="nvidia", driver_root=self.root, partitions="none", **simulated, **flags
        )
        await plugin.published()
        return plugin

    def note(self, device: str, *xids: int) -> Path:
        """Note XIDs of a device, as a process did that NVML told of them."""
        path = self.node.plugin_dir / "nvidia/xid" / f"{device}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"boot": read_boot_id(), "xids": xids}))
        return path

    def taints(self) -> dict[str, str]:
        devices = self.node.devices().items()
        return {name: taint["value"] for name, device in devices for taint in device.get("taints", ())}

    def told_healthy(self) -> list[str]:
        """What Events say of devices that are well again."""
        events = self.node.server.all("events", "default")
        return [event["message"] for event in events if event["reason"] == "DeviceHealthy"]


@pytest.fixture
def nvidia(node: PluginNode, tmp_path: Path, nvml_library: Path) -> NvidiaPlugin:
    return NvidiaPlugin(node, tmp_path, nvml_library)


async def test_an_xid_outlives_the_plugin_until_it_is_ignored(nvidia: NvidiaPlugin) -> None:
    plugin = await nvidia.start(recovery_hold=3600)
    first, second, *_ = nvidia.node.devices()
    nvidia.note(first, 48)
    nvidia.note(second, 48, 79)
    await until(lambda: nvidia.taints() == {first: "xid-48", second: "xid-48"})
    await plugin.kill()

    plugin = await nvidia.start(recovery_hold=3600)
    assert nvidia.taints() == {first: "xid-48", second: "xid-48"}
    await plugin.kill()

    await nvidia.start(recovery_hold=3600, ignore_xids=48)
    await until(lambda: nvidia.taints() == {second: "xid-79"})
    await until(nvidia.told_healthy)
    assert [message.split(":")[0] for message in nvidia.told_healthy()] == [f"device {NODE}/{first}"]


async def test_an_xid_is_over_when_its_note_is_removed(nvidia: NvidiaPlugin) -> None:
    await nvidia.start(recovery_hold=0)
    first = next(iter(nvidia.node.devices()))
    note = nvidia.note(first, 48)
    await until(lambda: nvidia.taints() == {first: "xid-48"})
    note.unlink()
    await until(lambda: not nvidia.taints())
