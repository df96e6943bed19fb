"""The real NVIDIA GPUs of this machine. Without any, the tests are skipped, and say why.

`DRA_DRIVER_DRIVER_ROOT` says where the driver is, as the plugin's `--driver-root`. Nothing is changed on a GPU unless
`DRA_DRIVER_TEST_MIG=1`: then the first GPU that has room for MIG partitions gets one, and loses it again.
"""

import os
from pathlib import Path, PurePosixPath

import pytest

from dra_driver.devices.model import Device, Inventory
from dra_driver.devices.nvidia.backend import Host, NvidiaBackend
from dra_driver.devices.nvidia.driver_root import DriverRoot


class Gpus:
    """This machine's GPUs. `open` makes a backend, as a restarted process would."""

    def __init__(self, state_dir: Path) -> None:
        self.root = DriverRoot(path=PurePosixPath(os.environ.get("DRA_DRIVER_DRIVER_ROOT", "/")))
        self.state_dir = state_dir
        self.backend = self.open()
        self.inventory: Inventory = self.backend.read_inventory()

    @property
    def devices(self) -> tuple[Device, ...]:
        return self.inventory.devices

    def open(self) -> NvidiaBackend:
        return NvidiaBackend(Host(self.root), state_dir=self.state_dir, boot_id="test")


@pytest.fixture
def gpus(tmp_path: Path) -> Gpus:
    gpus = Gpus(tmp_path)
    if not gpus.devices:
        reasons = "; ".join(f"{each.subject}: {each.problem}" for each in gpus.inventory.left_out)
        pytest.skip(f"no NVIDIA GPU here{reasons and ': '}{reasons}")
    return gpus


@pytest.fixture
def partitionable(gpus: Gpus) -> Device:
    if os.environ.get("DRA_DRIVER_TEST_MIG") != "1":
        pytest.skip("changes a GPU, want DRA_DRIVER_TEST_MIG=1")
    for device in gpus.devices:
        if device.partitions and not any(partition.uuid for partition in device.partitions):
            return device
    pytest.skip("no GPU here that could be partitioned")
