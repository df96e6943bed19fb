"""The plugin as a process with the backend `nvidia`, on a node without NVIDIA's driver."""

from pathlib import Path

from tests.support.kubelet import Kubelet
from tests.support.plugin import PluginNode


async def test_a_node_without_nvidia_starts_cleanly_and_says_so(node: PluginNode, tmp_path: Path) -> None:
    root = tmp_path / "driver"
    root.mkdir()
    plugin = await node.start_ready(
        backend="nvidia", driver_root=root, simulated_profile=None, simulated_overrides=None, simulated_dev_dir=None
    )
    assert node.devices() == {}
    assert plugin.text.count("no NVIDIA devices") == 1
    assert f"libnvidia-ml.so.1: not below '{root}'" in plugin.text
    async with Kubelet.registered(node.registrar) as kubelet:
        assert await kubelet.prepare() == {}
    assert await plugin.terminate() == 0
