import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from dra_driver.devices.simulated.node import CharacterDevices, read_registered_majors
from tests.support.backend import refuse_mknod


def no_majors() -> frozenset[int]:
    return frozenset()


def test_a_system_that_permits_no_devices_is_no_error(tmp_path: Path) -> None:
    assert CharacterDevices(tmp_path / "dev", mknod=refuse_mknod).apply("nvidia0", 7) is None
    assert [file.name for file in (tmp_path / "dev").iterdir()] == []


def test_majors_that_a_driver_holds_are_not_given_out(tmp_path: Path) -> None:
    made: list[int] = []

    def record(path: str, mode: int = 0, device: int = 0) -> None:
        assert stat.S_ISCHR(mode)
        made.append(os.major(device))
        Path(path).touch()

    def majors() -> frozenset[int]:
        return frozenset({240, 241})

    CharacterDevices(tmp_path, mknod=record, read_majors=majors).apply("nvidia0", 7)
    assert made == [242]


def test_without_a_free_major_there_is_no_device(tmp_path: Path) -> None:
    def majors() -> frozenset[int]:
        return frozenset(range(512))

    assert CharacterDevices(tmp_path, read_majors=majors).apply("nvidia0", 7) is None


def test_the_majors_of_this_kernel_can_be_read() -> None:
    assert 1 in read_registered_majors()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make device nodes")
@pytest.mark.parametrize("stale", [Path.touch, Path.exists], ids=["file in its place", "nothing"])
def test_a_device_is_there_without_a_driver(tmp_path: Path, stale: Callable[[Path], object]) -> None:
    (tmp_path / "caps").mkdir()
    stale(tmp_path / "caps" / "cap1")
    device = CharacterDevices(tmp_path, read_majors=no_majors).apply("caps/cap1", 7)
    if device is None:
        pytest.skip("this container may not make device nodes")
    found = device.path.stat()
    assert (os.major(found.st_rdev), os.minor(found.st_rdev)) == (240, 7)
    assert stat.S_IMODE(found.st_mode) == 0o666
    assert CharacterDevices(tmp_path, read_majors=no_majors).apply("caps/cap1", 7) == device
    assert [file.name for file in device.path.parent.iterdir()] == ["cap1"]
