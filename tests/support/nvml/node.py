"""A node with NVIDIA GPUs: the fake library, a driver's files, and the kernel's `/proc` and `/sys`, in a folder."""

import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

from dra_driver.devices.model import Device
from dra_driver.devices.nvidia.backend import Host, NvidiaBackend
from dra_driver.devices.partitioning import PartitionPolicy
from tests.support.driver_tree import DriverTree
from tests.support.nvml.fake import FakeNvml
from tests.support.nvml.library import NativeNvml
from tests.support.nvml.machine import Gpu, Machine

_FOLDER = "/usr/lib64"
_GPU_INSTANCES = range(15)


class NvidiaNode:
    """A node; `open` makes a backend on it, as a restarted process would. `installed` says whether it has a driver.

    Its library is the fake itself, or `library`, a file that asks the fake and lacks the functions named `missing`.
    """

    def __init__(
        self,
        folder: Path,
        machine: Machine,
        *,
        installed: bool = True,
        library: Path | None = None,
        missing: Collection[str] = (),
    ) -> None:
        self.machine = machine
        self.nvml = FakeNvml(machine)
        self.native = NativeNvml(self.nvml, missing=missing)
        self.library = library
        self.loaded: list[Path] = []
        self.folder = folder
        self.boot_id = "boot-1"
        self.tree = DriverTree(folder)
        self.sysfs = folder / "sys"
        for gpu in machine.gpus:
            self._add_to_bus(gpu)
            if gpu.mig_profiles is not None:
                self._add_capabilities(gpu)
        if installed:
            self.install()

    def install(self) -> None:
        """Install the driver."""
        self.tree.add_libraries(_FOLDER, self.machine.driver)
        if self.library is not None:
            installed = self.tree.driver / f"{_FOLDER}/libnvidia-ml.so.{self.machine.driver}".lstrip("/")
            installed.unlink()
            os.link(self.library, installed)

    def open(
        self, partitions: PartitionPolicy | None = None, *, ignored_xids: frozenset[int] = frozenset()
    ) -> NvidiaBackend:
        """Make a backend."""
        return NvidiaBackend(
            Host(self.tree.root, self.sysfs),
            state_dir=self.folder / "state",
            boot_id=self.boot_id,
            partitions=partitions,
            ignored_xids=ignored_xids,
            load=self._load,
        )

    def remove(self, device: Device) -> None:
        """Pull a GPU out."""
        (self.sysfs / "bus/pci/devices" / str(device.pci_bus_id)).unlink(missing_ok=True)
        self.machine.gpus[:] = [gpu for gpu in self.machine.gpus if gpu.uuid != device.uuid]

    def bind(self, gpu: Gpu) -> None:
        """Let the kernel's driver take a GPU on anew, as when its module is loaded again."""
        link = self.sysfs / "bus/pci/devices" / gpu.pci / "driver"
        fresh = link.with_name("driver.fresh")  # beside the old one, so that it has another number
        fresh.symlink_to("../../../bus/pci/drivers/nvidia")
        fresh.replace(link)

    def _load(self, path: Path) -> Any:
        self.loaded.append(path)
        return self.nvml if self.library is None else self.native.load(path)

    def _add_to_bus(self, gpu: Gpu) -> None:
        device = self.sysfs / "devices" / (gpu.pci_root or "pci0000:00") / gpu.pci
        device.mkdir(parents=True)
        (device / "vendor").write_text("0x10de\n")
        (device / "class").write_text("0x030200\n")
        (device / "numa_node").write_text(f"{-1 if gpu.numa_node is None else gpu.numa_node}\n")
        link = self.sysfs / "bus/pci/devices" / gpu.pci
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(device)
        self.bind(gpu)

    def _add_capabilities(self, gpu: Gpu) -> None:
        for instance in _GPU_INSTANCES:
            minor = (gpu.minor * len(_GPU_INSTANCES) + instance) * 2 + 3
            self.tree.add_capability(f"gpu{gpu.minor}/mig/gi{instance}", minor)
            self.tree.add_capability(f"gpu{gpu.minor}/mig/gi{instance}/ci0", minor + 1)
