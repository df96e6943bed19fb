import os
from dataclasses import replace
from pathlib import Path

import pytest

import cdi
from cdi import ContainerEdits, Hook
from dra_driver.devices.model import Device, DeviceType
from dra_driver.devices.nvidia.edits import NvidiaEdits
from dra_driver.devices.nvidia.node import MigInstance
from dra_driver.errors import DeviceError
from tests.support.driver_tree import DEVICES, DriverTree

GPU = Device(vendor="nvidia", type=DeviceType.GPU, identity="GPU-1", model="H100", minor=3)
MULTIARCH = f"/usr/lib/{os.uname().machine}-linux-gnu"
CONTROL = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset")


@pytest.fixture
def tree(tmp_path: Path) -> DriverTree:
    tree = DriverTree(tmp_path, "/run/nvidia/driver")
    tree.add_libraries("/usr/lib64", "550.54.15")
    tree.add_program("/usr/bin/nvidia-smi")
    return tree


def node_paths(edits: ContainerEdits) -> tuple[str, ...]:
    return tuple(node.path for node in edits.device_nodes)


def numbers(edits: ContainerEdits) -> dict[str, tuple[int, int]]:
    return {node.path: (node.major, node.minor) for node in edits.device_nodes}


def test_a_gpu_gets_its_own_node_and_the_shared_ones_by_number(tree: DriverTree) -> None:
    edits = NvidiaEdits(tree.root).render(GPU)
    assert numbers(edits) == {
        "/dev/nvidiactl": (195, 255),
        "/dev/nvidia-uvm": (511, 0),
        "/dev/nvidia-uvm-tools": (511, 1),
        "/dev/nvidia-modeset": (195, 254),
        "/dev/nvidia3": (195, 3),
    }
    assert all((node.type, node.permissions) == ("c", "rw") for node in edits.device_nodes)


def test_a_partition_gets_the_nodes_that_open_it_and_no_other(tree: DriverTree) -> None:
    tree.add_capability("gpu3/mig/gi1", 12)
    tree.add_capability("gpu3/mig/gi1/ci0", 13)
    tree.add_capability("gpu3/mig/gi2", 21)
    edits = NvidiaEdits(tree.root).render(GPU, MigInstance(gpu_instance=1, compute_instance=0))
    caps = ("/dev/nvidia-caps/nvidia-cap12", "/dev/nvidia-caps/nvidia-cap13")
    assert node_paths(edits) == (*CONTROL, "/dev/nvidia3", *caps)
    assert numbers(edits)[caps[1]] == (235, 13)


def test_without_a_toolkit_each_name_is_mounted_where_loaders_look_by_themselves(tree: DriverTree) -> None:
    edits = NvidiaEdits(tree.root).render(GPU)
    assert edits.hooks == ()
    assert edits.env == ("NVIDIA_VISIBLE_DEVICES=void",)
    assert {mount.container_path: mount.host_path for mount in edits.mounts} == {
        "/usr/bin/nvidia-smi": "/run/nvidia/driver/usr/bin/nvidia-smi",
        **{
            f"{folder}/{name}": f"/run/nvidia/driver/usr/lib64/{file}.550.54.15"
            for folder in (MULTIARCH, "/usr/lib64")
            for name, file in (
                ("libcuda.so", "libcuda.so"),
                ("libcuda.so.1", "libcuda.so"),
                ("libnvidia-gpucomp.so.550.54.15", "libnvidia-gpucomp.so"),
                ("libnvidia-ml.so.1", "libnvidia-ml.so"),
            )
        },
    }
    assert all("ro" in mount.options for mount in edits.mounts)


@pytest.mark.parametrize(
    ("program", "before"),
    [("/usr/bin/nvidia-cdi-hook", ("nvidia-cdi-hook",)), ("/usr/bin/nvidia-ctk", ("nvidia-ctk", "hook"))],
)
def test_with_a_toolkit_its_hook_makes_the_links_and_the_cache(
    tree: DriverTree, program: str, before: tuple[str, ...]
) -> None:
    tree.add_hook(program)
    edits = NvidiaEdits(tree.root).render(GPU)
    links = ("libcuda.so", "libcuda.so.1", "libnvidia-ml.so.1")
    targets = ("libcuda.so.550.54.15", "libcuda.so.550.54.15", "libnvidia-ml.so.550.54.15")
    arguments = (
        text for link, target in zip(links, targets, strict=True) for text in ("--link", f"{target}::/usr/lib64/{link}")
    )
    assert edits.hooks == (
        Hook(hook_name="createContainer", path=program, args=(*before, "create-symlinks", *arguments)),
        Hook(hook_name="createContainer", path=program, args=(*before, "update-ldcache", "--folder", "/usr/lib64")),
    )
    assert "NVIDIA_CTK_LIBCUDA_DIR=/usr/lib64" in edits.env
    assert [mount.container_path for mount in edits.mounts if "libcuda" in mount.host_path] == [
        "/usr/lib64/libcuda.so.550.54.15"
    ]


def test_two_gpus_differ_in_their_nodes_alone(tree: DriverTree) -> None:
    first, second = (NvidiaEdits(tree.root).render(replace(GPU, minor=minor)) for minor in (0, 1))
    assert (first.env, first.mounts, first.hooks) == (second.env, second.mounts, second.hooks)
    assert set(node_paths(first)) ^ set(node_paths(second)) == {"/dev/nvidia0", "/dev/nvidia1"}


def test_the_edits_are_a_valid_spec(tree: DriverTree) -> None:
    tree.add_hook("/usr/bin/nvidia-ctk")
    device = cdi.Device(name="gpu", container_edits=NvidiaEdits(tree.root).render(GPU))
    spec = cdi.default_version(cdi.Spec(cdi_version=cdi.VERSIONS[0], kind="a.example.com/claim", devices=(device,)))
    assert cdi.validate_spec(spec) == ()


@pytest.mark.parametrize(
    ("devices", "problem"),
    [
        ("Character devices:\n", r"/dev/nvidiactl: no such device, want the kernel module 'nvidia' loaded"),
        (
            DEVICES.replace("nvidia-uvm", "other"),
            r"/dev/nvidia-uvm: no such device, want the kernel module 'nvidia-uvm'",
        ),
    ],
    ids=["no driver", "no unified memory"],
)
def test_a_module_that_is_not_loaded_is_named(tree: DriverTree, devices: str, problem: str) -> None:
    (tree.proc / "devices").write_text(devices)
    with pytest.raises(DeviceError, match=problem):
        NvidiaEdits(tree.root).render(GPU)


def test_modeset_is_left_out_where_it_is_not(tree: DriverTree) -> None:
    (tree.proc / "devices").write_text(DEVICES.replace("nvidia-modeset", "other"))
    assert "/dev/nvidia-modeset" not in node_paths(NvidiaEdits(tree.root).render(GPU))


def test_an_older_driver_names_its_major_otherwise(tree: DriverTree) -> None:
    (tree.proc / "devices").write_text(DEVICES.replace("195 nvidia\n", "195 nvidia-frontend\n"))
    assert numbers(NvidiaEdits(tree.root).render(GPU))["/dev/nvidia3"] == (195, 3)


def test_a_partition_that_does_not_exist_is_refused(tree: DriverTree) -> None:
    with pytest.raises(DeviceError, match=r"/proc/driver/nvidia/capabilities/gpu3/mig/gi1/access: no such file"):
        NvidiaEdits(tree.root).render(GPU, MigInstance(gpu_instance=1, compute_instance=0))


def test_a_gpu_without_a_minor_is_refused(tree: DriverTree) -> None:
    with pytest.raises(DeviceError, match="minor number unknown"):
        NvidiaEdits(tree.root).render(replace(GPU, minor=None))
