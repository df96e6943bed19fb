from pathlib import Path

import pytest

from dra_driver.devices.nvidia.driver import Library, read_driver
from dra_driver.errors import DeviceError
from tests.support.driver_tree import ELF_64, DriverTree


def test_libraries_of_the_drivers_version_are_found_with_the_names_that_lead_to_them(tmp_path: Path) -> None:
    tree = DriverTree(tmp_path)
    tree.add_libraries("/usr/lib64", "550.54.15")
    driver = read_driver(tree.root)
    assert driver.version == "550.54.15"
    assert driver.libraries == (
        Library("/usr/lib64/libcuda.so.550.54.15", ("libcuda.so", "libcuda.so.1")),
        Library("/usr/lib64/libnvidia-gpucomp.so.550.54.15"),
        Library("/usr/lib64/libnvidia-ml.so.550.54.15", ("libnvidia-ml.so.1",)),
    )
    assert (driver.programs, driver.hook) == ((), None)


def test_libraries_that_an_update_left_behind_do_not_mix_in(tmp_path: Path) -> None:
    tree = DriverTree(tmp_path)
    tree.add_libraries("/usr/lib64", "560.28.03")
    tree.add_file("/usr/lib64/libcuda.so.550.54.15", ELF_64)
    assert {library.path.rpartition(".so.")[2] for library in read_driver(tree.root).libraries} == {"560.28.03"}


def test_a_library_in_two_folders_counts_once(tmp_path: Path) -> None:
    tree = DriverTree(tmp_path)
    tree.add_libraries("/usr/lib64", "550.54.15")
    tree.add_libraries("/usr/local/nvidia/lib64", "550.54.15")
    assert {library.path.rpartition("/")[0] for library in read_driver(tree.root).libraries} == {"/usr/lib64"}


def test_programs_and_a_toolkits_hook_are_found_where_they_are(tmp_path: Path) -> None:
    tree = DriverTree(tmp_path, "/run/nvidia/driver")
    tree.add_libraries("/usr/lib64", "550.54.15")
    tree.add_program("/usr/bin/nvidia-smi")
    tree.add_hook("/usr/bin/nvidia-ctk")
    tree.add_hook("/usr/local/nvidia/toolkit/nvidia-cdi-hook")
    driver = read_driver(tree.root)
    assert driver.programs == ("/usr/bin/nvidia-smi",)
    assert driver.hook == "/usr/local/nvidia/toolkit/nvidia-cdi-hook"


@pytest.mark.parametrize("kind", ["a folder", "no program", "a link to nothing"])
def test_what_only_has_the_name_of_a_toolkits_hook_is_none(tmp_path: Path, kind: str) -> None:
    tree = DriverTree(tmp_path)
    tree.add_libraries("/usr/lib64", "550.54.15")
    hook = tree.host / "usr/bin/nvidia-cdi-hook"
    match kind:
        case "a folder":
            hook.mkdir(parents=True)
        case "no program":
            tree.add_file("/usr/bin/nvidia-cdi-hook")
        case _:
            tree.add_link("/usr/bin/nvidia-cdi-hook", "/opt/gone")
    assert read_driver(tree.root).hook is None


def test_a_host_without_a_driver_is_told_of_the_flag(tmp_path: Path) -> None:
    tree = DriverTree(tmp_path, "/run/nvidia/driver")
    tree.add_hook("/usr/lib64/libcuda.so.1")
    with pytest.raises(DeviceError, match=r"libcuda\.so\.1: not below '/run/nvidia/driver', want --driver-root to be"):
        read_driver(tree.root)
