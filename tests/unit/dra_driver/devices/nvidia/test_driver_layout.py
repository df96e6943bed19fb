"""Where distributions, clouds and installers put the driver: each layout as it is left, and what a container gets."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from dra_driver.devices.nvidia.driver import read_driver
from dra_driver.devices.nvidia.driver_root import MACHINE, DriverRoot
from dra_driver.devices.nvidia.edits import build_edits
from dra_driver.errors import DeviceError
from tests.support.driver_tree import ELF_32, ELF_64, DriverTree, render_loader_cache

VERSION = "570.195.03"
OLD = "535.247.01"
MULTIARCH = f"/usr/lib/{MACHINE}-linux-gnu"
NAMES = ("libcuda.so", "libcuda.so.1", f"libnvidia-gpucomp.so.{VERSION}", "libnvidia-ml.so.1")


@dataclass(frozen=True)
class Layout:
    """A layout: `folder` is the host path of the libraries, `smi` that of the program, if the driver has it."""

    build: Callable[[DriverTree], None]
    folder: str
    smi: str | None = "/usr/bin/nvidia-smi"
    root: str = "/"


def run_file(tree: DriverTree) -> None:
    """NVIDIA's own installer on Ubuntu: links in a chain, libraries of 32 bits beside, all in the loader's cache."""
    tree.add_libraries(MULTIARCH, VERSION)
    tree.driver.joinpath(f"{MULTIARCH}/libcuda.so".lstrip("/")).unlink()
    tree.add_link(f"{MULTIARCH}/libcuda.so", "libcuda.so.1")
    tree.add_libraries("/usr/lib/i386-linux-gnu", VERSION, ELF_32)
    folders = ("/lib/i386-linux-gnu", f"/lib/{MACHINE}-linux-gnu")
    tree.add_link("/lib", "usr/lib")
    entries = {f"libcuda.so.{number}": f"{folder}/libcuda.so.1" for number, folder in enumerate(folders)}
    tree.add_file("/etc/ld.so.cache", render_loader_cache(entries))
    tree.add_program("/usr/bin/nvidia-smi")


def debian(tree: DriverTree) -> None:
    """Debian's packages: files of their own folder, reached by absolute links over the alternatives."""
    own = f"{MULTIARCH}/nvidia/current"
    tree.add_libraries(own, VERSION)
    for name in ("libcuda.so.1", "libnvidia-ml.so.1"):
        tree.add_link(f"/etc/alternatives/glx--{name}-{MACHINE}-linux-gnu", f"{own}/{name}")
        tree.add_link(f"{MULTIARCH}/{name}", f"/etc/alternatives/glx--{name}-{MACHINE}-linux-gnu")
    tree.add_program("/usr/lib/nvidia/current/nvidia-smi")
    tree.add_link("/etc/alternatives/nvidia--nvidia-smi", "/usr/lib/nvidia/current/nvidia-smi")
    tree.add_link("/usr/bin/nvidia-smi", "/etc/alternatives/nvidia--nvidia-smi")


def red_hat(tree: DriverTree) -> None:
    """Red Hat and its kin, `/lib64` and `/bin` being links, 32 bits in `/usr/lib`."""
    tree.add_libraries("/usr/lib64", VERSION)
    tree.add_libraries("/usr/lib", VERSION, ELF_32)
    tree.add_link("/lib64", "usr/lib64")
    tree.add_link("/bin", "usr/bin")
    tree.add_program("/usr/bin/nvidia-smi")


def cos(tree: DriverTree) -> None:
    """GKE on Container-Optimized OS: a folder of libraries and programs, no root of a system, no cache."""
    tree.add_libraries("/lib64", VERSION)
    tree.add_program("/bin/nvidia-smi")


def talos(tree: DriverTree) -> None:
    """Talos: the system has another C library, the driver brings its own and the cache for it."""
    tree.add_libraries("/usr/local/glibc/usr/lib", VERSION)
    tree.add_program("/usr/local/bin/nvidia-smi")


def nix_os(tree: DriverTree) -> None:
    """NixOS: a store, and a folder of absolute links into it."""
    store = "/nix/store/q1w2e3-nvidia-x11-570.195.03-6.12.1"
    tree.add_libraries(f"{store}/lib", VERSION)
    for path in sorted((tree.driver / f"{store}/lib".lstrip("/")).iterdir()):
        tree.add_link(f"/nix/store/z9y8x7-graphics-drivers/lib/{path.name}", f"{store}/lib/{path.name}")
    tree.add_link("/run/opengl-driver", "/nix/store/z9y8x7-graphics-drivers")
    tree.add_program("/nix/store/r4t5-nvidia-x11-bin/bin/nvidia-smi")
    tree.add_link("/nix/store/u6i7-system/sw/bin/nvidia-smi", "/nix/store/r4t5-nvidia-x11-bin/bin/nvidia-smi")
    tree.add_link("/run/current-system", "/nix/store/u6i7-system")


def after_an_update(tree: DriverTree) -> None:
    """An update of the driver of which the module is not loaded yet: what fits the module is what works."""
    tree.add_libraries("/usr/lib64", VERSION)
    tree.add_libraries(MULTIARCH, OLD)
    tree.add_module(VERSION)


def with_a_compatibility_package(tree: DriverTree) -> None:
    """CUDA's package for older drivers is in the loader's path: a newer `libcuda`, and little else."""
    tree.add_libraries("/usr/lib64", VERSION)
    for name in ("libcuda.so.580.95.05", "libnvidia-ptxjitcompiler.so.580.95.05"):
        tree.add_file(f"/usr/local/cuda-13.0/compat/{name}", ELF_64)
    tree.add_link("/usr/local/cuda-13.0/compat/libcuda.so.1", "libcuda.so.580.95.05")
    cache = {"libcuda.so.1": "/usr/local/cuda-13.0/compat/libcuda.so.1"}
    tree.add_file("/etc/ld.so.cache", render_loader_cache(cache))
    tree.add_module(VERSION)


def links_apart(tree: DriverTree) -> None:
    """Names that programs ask for in one folder, the files in another."""
    tree.add_libraries("/opt/nvidia/lib", VERSION)
    for name in ("libcuda.so", "libcuda.so.1", "libnvidia-ml.so.1"):
        stem = name.partition(".so")[0]
        (tree.driver / "opt/nvidia/lib" / name).unlink()
        tree.add_link(f"/usr/lib64/{name}", f"../../opt/nvidia/lib/{stem}.so.{VERSION}")


def with_a_cache(content: bytes) -> Callable[[DriverTree], None]:
    def build(tree: DriverTree) -> None:
        red_hat(tree)
        tree.add_file("/etc/ld.so.cache", content)

    return build


DRIVER = "/run/nvidia/driver"
GKE = "/home/kubernetes/bin/nvidia"
MISSING = {"libcuda.so.1": "/gone/libcuda.so.1", "libnvidia-ml.so.1": "libnvidia-ml.so.1", "libcuda.so": "/"}

LAYOUTS = {
    "NVIDIA's installer": Layout(run_file, MULTIARCH),
    "Debian": Layout(debian, f"{MULTIARCH}/nvidia/current", "/usr/lib/nvidia/current/nvidia-smi"),
    "Red Hat": Layout(red_hat, "/usr/lib64"),
    "driver container of Ubuntu": Layout(run_file, f"{DRIVER}{MULTIARCH}", f"{DRIVER}/usr/bin/nvidia-smi", DRIVER),
    "driver container of Red Hat": Layout(red_hat, f"{DRIVER}/usr/lib64", f"{DRIVER}/usr/bin/nvidia-smi", DRIVER),
    "GKE": Layout(cos, f"{GKE}/lib64", f"{GKE}/bin/nvidia-smi", GKE),
    "Talos": Layout(talos, "/usr/local/glibc/usr/lib", "/usr/local/bin/nvidia-smi"),
    "NixOS": Layout(
        nix_os,
        "/nix/store/q1w2e3-nvidia-x11-570.195.03-6.12.1/lib",
        "/nix/store/r4t5-nvidia-x11-bin/bin/nvidia-smi",
    ),
    "an update": Layout(after_an_update, "/usr/lib64", None),
    "CUDA's compatibility package": Layout(with_a_compatibility_package, "/usr/lib64", None),
    "links in another folder": Layout(links_apart, "/opt/nvidia/lib", None),
    "an empty cache": Layout(with_a_cache(b""), "/usr/lib64"),
    "a cache that is cut short": Layout(with_a_cache(render_loader_cache(MISSING)[:70]), "/usr/lib64"),
    "a cache of what is gone": Layout(with_a_cache(render_loader_cache(MISSING)), "/usr/lib64"),
}


@pytest.fixture(params=LAYOUTS)
def layout(request: pytest.FixtureRequest) -> Layout:
    return LAYOUTS[request.param]


@pytest.fixture
def tree(tmp_path: Path, layout: Layout) -> DriverTree:
    tree = DriverTree(tmp_path, layout.root)
    layout.build(tree)
    return tree


def test_a_container_gets_every_library_by_the_names_that_programs_ask_for(layout: Layout, tree: DriverTree) -> None:
    mounts = {
        mount.container_path: mount.host_path for mount in build_edits(tree.root, read_driver(tree.root), ()).mounts
    }
    for folder in (MULTIARCH, "/usr/lib64"):
        wanted = {f"{folder}/{name}": f"{layout.folder}/{name.partition('.so')[0]}.so.{VERSION}" for name in NAMES}
        assert {path: host for path, host in mounts.items() if path.startswith(f"{folder}/")} == wanted
    assert mounts.get("/usr/bin/nvidia-smi") == layout.smi


def test_what_is_mounted_is_there_on_the_host_and_no_link(tree: DriverTree) -> None:
    for mount in build_edits(tree.root, read_driver(tree.root), ()).mounts:
        path = tree.host / mount.host_path.lstrip("/")
        assert path.is_file()
        assert path.resolve() == path


def test_a_toolkits_hook_is_told_of_the_same_libraries(layout: Layout, tree: DriverTree) -> None:
    tree.add_hook("/usr/bin/nvidia-cdi-hook")
    edits = build_edits(tree.root, read_driver(tree.root), ())
    folder = layout.folder.removeprefix(layout.root.rstrip("/"))
    assert {mount.host_path: mount.container_path for mount in edits.mounts if ".so" in mount.host_path} == {
        f"{layout.folder}/{stem}.so.{VERSION}": f"{folder}/{stem}.so.{VERSION}"
        for stem in ("libcuda", "libnvidia-gpucomp", "libnvidia-ml")
    }
    links, cache = edits.hooks
    assert [arg for arg in links.args if "::" in arg] == [
        f"{link.partition('.so')[0]}.so.{VERSION}::{folder}/{link}" for link in NAMES if VERSION not in link
    ]
    assert cache.args[-2:] == ("--folder", folder)
    assert edits.env[-1] == f"NVIDIA_CTK_LIBCUDA_DIR={folder}"


def test_the_management_library_is_that_of_the_driver(layout: Layout, tree: DriverTree) -> None:
    found = tree.root.find_library("libnvidia-ml.so.1")
    assert found == tree.host / f"{layout.folder}/libnvidia-ml.so.{VERSION}".lstrip("/")


def test_a_library_that_is_numbered_in_its_own_way_is_given_by_all_its_names(tmp_path: Path) -> None:
    tree = DriverTree(tmp_path)
    red_hat(tree)
    tree.add_file("/usr/lib64/libnvidia-nvvm70.so.4.0.0", ELF_64)
    tree.add_link("/usr/lib64/libnvidia-nvvm70.so.4", "libnvidia-nvvm70.so.4.0.0")
    mounts = [mount.container_path for mount in build_edits(tree.root, read_driver(tree.root), ()).mounts]
    assert [path for path in mounts if path.startswith("/usr/lib64/libnvidia-nvvm70")] == [
        "/usr/lib64/libnvidia-nvvm70.so.4",
        "/usr/lib64/libnvidia-nvvm70.so.4.0.0",
    ]


def test_names_that_not_every_installer_makes_are_given(tmp_path: Path) -> None:
    tree = DriverTree(tmp_path)
    red_hat(tree)
    (tree.driver / "usr/lib64/libcuda.so").unlink()
    tree.add_file(f"/usr/lib64/libnvidia-opticalflow.so.{VERSION}", ELF_64)
    links = {each.path.rpartition("/")[2]: each.links for each in read_driver(tree.root).libraries}
    assert links[f"libcuda.so.{VERSION}"] == ("libcuda.so", "libcuda.so.1")
    assert links[f"libnvidia-opticalflow.so.{VERSION}"] == ("libnvidia-opticalflow.so",)


@pytest.mark.parametrize(
    "target",
    ["libcuda.so.1", "/usr/lib64/libcuda.so.1", "../../../../../../../outside/libcuda.so.570.195.03", "gone"],
    ids=["itself", "itself, absolute", "outside", "nothing"],
)
def test_a_link_that_leads_nowhere_is_no_driver(tmp_path: Path, target: str) -> None:
    tree = DriverTree(tmp_path, DRIVER)
    (tree.host / "outside").mkdir()
    (tree.host / f"outside/libcuda.so.{VERSION}").write_bytes(ELF_64)
    tree.add_link("/usr/lib64/libcuda.so.1", target)
    with pytest.raises(DeviceError, match=r"libcuda\.so\.1: not below '/run/nvidia/driver'"):
        read_driver(tree.root)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.256.02  Thu May  2 14:37:44 UTC 2024\n", "470.256.02"),
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  580.95.05  Release Build  (dvs@U22)\n",
            "580.95.05",
        ),
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86  Fri Jan\n", "570.86"),
        ("something else 1.2\n", None),
        ("", None),
    ],
)
def test_the_version_of_the_kernel_module_is_read(tmp_path: Path, text: str, version: str | None) -> None:
    file = tmp_path / "driver/nvidia/version"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    assert DriverRoot(proc=tmp_path).read_module_version() == version
