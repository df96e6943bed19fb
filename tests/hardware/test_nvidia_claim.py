"""Claims for the real GPUs, from the allocation over the CDI spec to a container, and back."""

import ctypes
import os
import re
import stat
from pathlib import Path

import pytest

import cdi
from cdi import ContainerEdits
from dra_driver.devices.model import Device
from tests.hardware.conftest import Gpus
from tests.hardware.container import find_runtime, run_in_container
from tests.support.builder import DRIVER, a_claim, a_ref, a_result
from tests.support.prepare_node import open_preparer


class Node:
    """The plugin's folders, and what prepares claims in them."""

    def __init__(self, gpus: Gpus, folder: Path) -> None:
        self.folder = folder
        self.preparer = open_preparer(folder, gpus.backend)

    def prepare(self, device: Device) -> ContainerEdits:
        """Prepare a claim for a whole GPU, and return what a container runtime makes of its spec."""
        ref = a_ref()
        self.preparer.prepare(ref, a_claim(a_result(device.name), ref=ref))
        return cdi.Resolver([self.folder / "cdi"]).resolve([f"{DRIVER}/claim={ref.uid}-{device.name}"]).edits

    def files(self) -> list[str]:
        return sorted(path.name for path in self.folder.rglob("*.json"))


@pytest.fixture
def node(gpus: Gpus, tmp_path: Path) -> Node:
    if not (gpus.root.proc / "driver/nvidia/version").exists():
        pytest.skip("the kernel shows nothing of NVIDIA's driver in /proc, as in a sandbox, so there are no numbers")
    folder = tmp_path / "plugin"
    folder.mkdir()
    return Node(gpus, folder)


@pytest.fixture
def device(gpus: Gpus) -> Device:
    for device in gpus.devices:
        if device.offered_whole:
            return device
    pytest.skip("no GPU here that is offered whole: all are in MIG mode")


def test_a_claim_comes_and_goes_and_leaves_nothing(node: Node, device: Device) -> None:
    edits = node.prepare(device)
    assert f"/dev/nvidia{device.minor}" in [each.path for each in edits.device_nodes]
    assert node.files() != []
    for _ in range(2):
        node.preparer.unprepare(a_ref())
    assert node.files() == []


def test_the_nodes_of_a_claim_are_those_that_the_host_has(node: Node, device: Device) -> None:
    """The numbers come from the kernel; the nodes in `/dev` were made by others, with the same numbers."""
    compared = 0
    for each in node.prepare(device).device_nodes:
        path = Path(each.path)
        if path.exists():
            found = path.stat()
            assert stat.S_ISCHR(found.st_mode)
            assert (os.major(found.st_rdev), os.minor(found.st_rdev)) == (each.major, each.minor), path
            compared += 1
    assert compared > 0


def test_the_libraries_of_a_claim_can_be_loaded_and_are_of_one_version(node: Node, gpus: Gpus, device: Device) -> None:
    files = {Path(mount.host_path) for mount in node.prepare(device).mounts if ".so." in mount.host_path}
    libraries = {path.name.partition(".so.")[0]: path for path in files}
    versions = {path.name.partition(".so.")[2] for name, path in libraries.items() if name != "libnvidia-nvvm70"}
    assert versions == {gpus.root.read_module_version()}
    assert "libnvidia-ml" in libraries
    assert ctypes.CDLL(str(libraries["libcuda"])).cuInit is not None


def test_a_container_sees_the_gpu_of_its_claim_and_no_other(node: Node, gpus: Gpus, device: Device) -> None:
    runtime = find_runtime()
    if runtime is None or os.geteuid() != 0:
        pytest.skip("starts a container, want root, and runc or crun")
    program = gpus.root.find_program("nvidia-smi")
    path = gpus.root.find(program) if program else None
    if path is None:
        pytest.skip("no nvidia-smi below the driver's root")
    edits = node.prepare(device)
    printed = run_in_container(runtime, node.folder / "bundle", edits, ("/usr/bin/nvidia-smi", "-L"), like=path)
    assert re.findall(r"GPU-[0-9a-f-]+", printed) == [device.uuid]
