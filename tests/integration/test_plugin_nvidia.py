"""The plugin as a process with the backend `nvidia`, on nodes without NVIDIA's driver and with it."""

import os
import sys
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


async def test_a_node_with_nvidia_publishes_what_the_library_tells(
    node: PluginNode, tmp_path: Path, nvml_library: Path
) -> None:
    library = tmp_path / "driver/usr/lib64/libnvidia-ml.so.1"
    library.parent.mkdir(parents=True)
    os.link(nvml_library, library)
    within = (sys.executable, "-m", "tests.support.nvml.process", str(nvml_library), "h100x8")
    plugin = await node.start(
        within,
        backend="nvidia",
        driver_root=tmp_path / "driver",
        simulated_profile=None,
        simulated_overrides=None,
        simulated_dev_dir=None,
    )
    await plugin.published()
    gpus = [node.devices()[name]["attributes"] for name in node.whole_devices()]
    assert [gpu["resource.kubernetes.io/pciBusID"]["string"] for gpu in gpus] == [
        "0000:1b:00.0",
        "0000:43:00.0",
        "0000:52:00.0",
        "0000:61:00.0",
        "0000:9d:00.0",
        "0000:c3:00.0",
        "0000:d1:00.0",
        "0000:df:00.0",
    ]
    assert {gpu["productName"]["string"] for gpu in gpus} == {"NVIDIA H100 80GB HBM3"}
    assert len({gpu["nvlinkDomain"]["string"] for gpu in gpus}) == 1
    assert len(node.devices()) == 8 + 8 * 25
    assert await plugin.terminate() == 0
