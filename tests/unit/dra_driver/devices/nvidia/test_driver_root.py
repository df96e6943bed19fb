from pathlib import Path

import pytest

from tests.support.driver_tree import ELF_32, ELF_64, DriverTree, render_loader_cache

ML = "libnvidia-ml.so.1"


@pytest.mark.parametrize("folder", ["/usr/lib64", "/lib64", "/usr/local/nvidia/lib64"])
@pytest.mark.parametrize("root", ["/", "/run/nvidia/driver", "/home/kubernetes/bin/nvidia"])
def test_a_library_is_found_by_the_path_that_this_process_opens(tmp_path: Path, root: str, folder: str) -> None:
    tree = DriverTree(tmp_path, root)
    tree.add_libraries(folder, "550.54.15")
    assert tree.root.find_library(ML) == tree.driver / folder.lstrip("/") / "libnvidia-ml.so.550.54.15"


def test_the_loaders_cache_leads_to_unusual_folders(tmp_path: Path) -> None:
    tree = DriverTree(tmp_path, "/run/nvidia/driver")
    tree.add_libraries("/opt/odd", "550.54.15")
    tree.add_file("/etc/ld.so.cache", render_loader_cache({ML: f"/opt/odd/{ML}"}))
    assert tree.root.find_library(ML) == tree.driver / "opt/odd/libnvidia-ml.so.550.54.15"


def test_a_library_of_another_word_size_is_passed_over(tmp_path: Path) -> None:
    tree = DriverTree(tmp_path)
    tree.add_libraries("/usr/lib64", "550.54.15", ELF_32)
    assert tree.root.find_library(ML) is None
    tree.add_libraries("/usr/local/nvidia/lib64", "550.54.15")
    assert tree.root.find_library(ML) == tree.driver / "usr/local/nvidia/lib64/libnvidia-ml.so.550.54.15"


def test_an_absolute_link_stays_below_the_drivers_root(tmp_path: Path) -> None:
    tree = DriverTree(tmp_path, "/run/nvidia/driver")
    tree.add_file("/opt/lib/libnvidia-ml.so.550.54.15", ELF_64)
    tree.add_link(f"/usr/lib64/{ML}", "/opt/lib/libnvidia-ml.so.550.54.15")
    assert tree.root.resolve(f"/usr/lib64/{ML}") == "/opt/lib/libnvidia-ml.so.550.54.15"
    assert tree.root.find_library(ML) == tree.driver / "opt/lib/libnvidia-ml.so.550.54.15"


def test_a_link_upwards_does_not_leave_the_root(tmp_path: Path) -> None:
    tree = DriverTree(tmp_path)
    (tmp_path / "secret").touch()
    tree.add_link("/link", "../../../secret")
    assert tree.root.find("/link") is None


def test_links_in_a_circle_lead_nowhere(tmp_path: Path) -> None:
    tree = DriverTree(tmp_path)
    tree.add_link("/a", "b")
    tree.add_link("/b", "a")
    assert tree.root.resolve("/a") is None


def test_the_root_may_itself_be_a_link_of_the_host(tmp_path: Path) -> None:
    tree = DriverTree(tmp_path, "/run/nvidia/driver")
    tree.add_libraries("/usr/lib64", "550.54.15")
    real = tree.host / "data/driver"
    real.parent.mkdir()
    tree.driver.rename(real)
    tree.driver.symlink_to("/data/driver")
    assert tree.root.find_library(ML) == real / "usr/lib64/libnvidia-ml.so.550.54.15"


def test_a_host_path_is_the_hosts_and_not_this_processs(tmp_path: Path) -> None:
    assert DriverTree(tmp_path, "/run/nvidia/driver").root.host_path("/usr/bin/x") == "/run/nvidia/driver/usr/bin/x"


def test_a_program_must_be_executable(tmp_path: Path) -> None:
    tree = DriverTree(tmp_path)
    tree.add_file("/usr/bin/nvidia-smi")
    assert tree.root.find_program("nvidia-smi") is None
    tree.add_program("/usr/local/bin/nvidia-smi")
    assert tree.root.find_program("nvidia-smi") == "/usr/local/bin/nvidia-smi"
