import re
from collections.abc import Iterator
from pathlib import Path

import pynvml
import pytest

from dra_driver.devices.nvidia.library import NvmlLibrary, load_library
from dra_driver.errors import DeviceError
from tests.support.driver_tree import DriverTree
from tests.support.nvml.fake import FakeNvml
from tests.support.nvml.machine import a_t4_machine

VERSION = "570.195.03"


@pytest.fixture
def nvml() -> FakeNvml:
    return FakeNvml(a_t4_machine())


@pytest.fixture
def real_library() -> Iterator[None]:
    before = pynvml.nvmlLib
    yield
    pynvml.nvmlLib = before
    pynvml._nvmlGetFunctionPointer_cache.clear()


def a_library(tree: DriverTree, nvml: FakeNvml, loaded: list[Path] | None = None) -> NvmlLibrary:
    def load(path: Path) -> FakeNvml:
        if loaded is not None:
            loaded.append(path)
        return nvml

    return NvmlLibrary(tree.root, load=load)


@pytest.mark.parametrize("folder", ["/usr/lib64", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/local/nvidia/lib64"])
def test_the_library_is_loaded_by_its_whole_path_below_the_driver_root(
    tmp_path: Path, nvml: FakeNvml, folder: str
) -> None:
    tree = DriverTree(tmp_path, "/run/nvidia/driver")
    tree.add_libraries(folder, VERSION)
    loaded: list[Path] = []
    assert a_library(tree, nvml, loaded).open() is nvml
    assert loaded == [tree.driver / folder.lstrip("/") / f"libnvidia-ml.so.{VERSION}"]
    assert nvml.users == 1


def test_a_node_without_a_driver_has_no_library_until_it_is_installed(tmp_path: Path, nvml: FakeNvml) -> None:
    tree = DriverTree(tmp_path)
    library = a_library(tree, nvml)
    assert library.open() is None
    assert library.absence == "libnvidia-ml.so.1: not below '/', want the NVIDIA driver installed there"
    tree.add_libraries("/usr/lib64", VERSION)
    assert library.open() is nvml
    assert library.absence is None


def test_a_driver_that_is_not_loaded_yet_is_waited_for(tmp_path: Path, nvml: FakeNvml) -> None:
    tree = DriverTree(tmp_path)
    tree.add_libraries("/usr/lib64", VERSION)
    library = a_library(tree, nvml)
    nvml.machine.loaded = False
    assert library.open() is None
    assert library.absence == "libnvidia-ml.so.1: the kernel module 'nvidia' is not loaded"
    nvml.machine.loaded = True
    assert library.open() is nvml


def test_a_library_of_another_version_than_the_kernel_module_is_explained(tmp_path: Path, nvml: FakeNvml) -> None:
    tree = DriverTree(tmp_path)
    tree.add_libraries("/usr/lib64", VERSION)
    nvml.fail("nvmlInit", pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH, times=1)
    library = a_library(tree, nvml)
    with pytest.raises(DeviceError, match=r"version is not that of the kernel module.*want the node rebooted"):
        library.open()
    assert library.open() is nvml


def test_the_library_is_opened_once_and_anew_after_it_was_closed(tmp_path: Path, nvml: FakeNvml) -> None:
    tree = DriverTree(tmp_path)
    tree.add_libraries("/usr/lib64", VERSION)
    loaded: list[Path] = []
    library = a_library(tree, nvml, loaded)
    library.open()
    library.open()
    assert (len(loaded), nvml.users) == (1, 1)
    library.close()
    library.close()
    assert nvml.users == 0
    library.open()
    assert (len(loaded), nvml.users) == (2, 1)


def test_a_library_that_cannot_be_closed_is_opened_anew(tmp_path: Path, nvml: FakeNvml) -> None:
    tree = DriverTree(tmp_path)
    tree.add_libraries("/usr/lib64", VERSION)
    library = a_library(tree, nvml)
    library.open()
    nvml.fail("nvmlShutdown", pynvml.NVML_ERROR_UNINITIALIZED)
    library.close()
    assert library.open() is nvml


@pytest.mark.usefixtures("real_library")
def test_a_file_that_is_no_library_is_named(tmp_path: Path) -> None:
    tree = DriverTree(tmp_path)
    tree.add_libraries("/usr/lib64", VERSION)
    with pytest.raises(DeviceError, match=rf"libnvidia-ml\.so\.{VERSION}: .*want a library for this machine"):
        NvmlLibrary(tree.root).open()


@pytest.mark.usefixtures("real_library")
def test_the_module_of_the_vendor_calls_the_library_that_was_loaded() -> None:
    loaded = re.search(r"/\S*libc[.-]\S*so\S*", Path("/proc/self/maps").read_text())
    assert loaded
    nvml = load_library(Path(loaded.group()))
    assert nvml is pynvml
    assert pynvml._nvmlGetFunctionPointer("getpid")() > 0
    with pytest.raises(pynvml.NVMLError_FunctionNotFound):
        nvml.nvmlInit()
