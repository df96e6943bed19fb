"""The backend `nvidia`: GPUs and their MIG partitions, over NVML."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pynvml

from cdi import ContainerEdits
from dra_driver.api.config_v1alpha1 import Interval
from dra_driver.devices.model import Device, Health, Inventory, LeftOut, Partition
from dra_driver.devices.nvidia.census import Census
from dra_driver.devices.nvidia.driver_root import DriverRoot
from dra_driver.devices.nvidia.edits import NvidiaEdits
from dra_driver.devices.nvidia.event import XidWatch
from dra_driver.devices.nvidia.library import NVML, Load, NvmlLibrary, load_library
from dra_driver.devices.nvidia.mig import Mig
from dra_driver.devices.nvidia.mig_note import MigNotes
from dra_driver.devices.nvidia.node import MigInstance
from dra_driver.devices.nvidia.nvml_error import explain_nvml_error
from dra_driver.devices.nvidia.reader import read_binding, read_undriven
from dra_driver.devices.nvidia.time_slice import NvidiaSmi
from dra_driver.devices.nvidia.xid_note import XidNotes
from dra_driver.devices.partitioning import PartitionPolicy
from dra_driver.errors import DeviceError

_SMI: Final = "nvidia-smi"


@dataclass(frozen=True, slots=True)
class Host:
    """Where things of the host are: the driver, and the kernel's view of the bus."""

    root: DriverRoot = field(default_factory=DriverRoot)
    sysfs: Path = Path("/sys")


class NvidiaBackend:
    """A `Backend` over NVIDIA's management library.

    A GPU that was read once and is not readable any more stays, unhealthy; one that never was is left out.
    What this driver makes of MIG, and the XIDs that NVML told of, are noted in `state_dir` and belong to the boot with
    that id; while it is unknown (None) no partition is made.
    `ignored_xids` leave a GPU well, whatever they mean.
    """

    name = "nvidia"

    def __init__(  # noqa: PLR0913 - all but one are keywords
        self,
        host: Host | None = None,
        *,
        state_dir: Path,
        boot_id: str | None,
        partitions: PartitionPolicy | None = None,
        ignored_xids: frozenset[int] = frozenset(),
        load: Load = load_library,
    ) -> None:
        self._host = host or Host()
        self._library = NvmlLibrary(self._host.root, load=load)
        self._edits = NvidiaEdits(self._host.root)
        self._notes = MigNotes(state_dir / "mig", boot_id=boot_id)
        self._policy = partitions or PartitionPolicy()
        self._reading = threading.Lock()
        notes = XidNotes(state_dir / "xid", boot_id=boot_id)
        self._xids = XidWatch(notes)
        self._census = Census(self._host.sysfs, notes, boot_id, ignored_xids)
        self._mig: Mig | None = None
        self._last = Inventory()

    def read_inventory(self) -> Inventory:
        """See `Backend.read_inventory`. A node without NVIDIA's driver has no devices, until it has one.

        Devices that were there stay while the driver is away, as during its update, but are unwell.
        """
        with self._reading:
            nvml = self._library.open()
            if nvml is None:
                return self._explain_absence()
            try:
                devices, left_out = self._census.read(nvml)
            except pynvml.NVMLError as error:
                self._close()
                raise DeviceError(f"{NVML}: {explain_nvml_error(error)}") from error
            cut, uncut = self._cut(self._find_mig(nvml), devices)
            self._last = Inventory(devices=cut, left_out=left_out + uncut)
            return self._last

    def wait_for_change(self, timeout_s: float) -> None:
        """See `Backend.wait_for_change`: an XID ends the wait."""
        nvml = self._library.open()
        handles = dict(self._census.handles)
        if nvml is None or not handles:
            threading.Event().wait(timeout_s)
            return
        try:
            self._xids.wait(nvml, handles, timeout_s)
        except pynvml.NVMLError as error:
            raise DeviceError(f"{NVML}: {explain_nvml_error(error)}") from error

    def render_edits(self, device: Device, partition: Partition | None) -> ContainerEdits:
        """See `Backend.render_edits`. A whole GPU is rendered in whichever mode it is: admin access looks on."""
        with self._opened(device) as mig:
            if partition is None:
                return self._edits.render(mig.read_minor(device))
            found = mig.find(device, partition)
            return self._edits.render(mig.read_minor(device), MigInstance(found.gpu_instance, found.compute_instance))

    def apply_whole(self, device: Device) -> None:
        """See `Backend.apply_whole`. A GPU leaves MIG mode, if this driver put it there."""
        with self._opened(device) as mig:
            mig.apply_whole(device)

    def apply_partition(self, device: Device, partition: Partition) -> None:
        """See `Backend.apply_partition`."""
        with self._opened(device) as mig:
            mig.apply(device, partition)

    def undo_partition(self, device: Device, partition: Partition) -> None:
        """See `Backend.undo_partition`. Works for GPUs that are gone, too."""
        with self._opened(device) as mig:
            mig.undo(device, partition)

    def apply_time_slice(self, device: Device, interval: Interval) -> None:
        """See `Backend.apply_time_slice`."""
        self._find_smi().apply_time_slice(device.identity, interval)

    def undo_time_slice(self, device: Device) -> None:
        """See `Backend.undo_time_slice`."""
        self._find_smi().apply_time_slice(device.identity, Interval.DEFAULT)

    def apply_exclusive_process(self, device: Device) -> None:
        """See `Backend.apply_exclusive_process`."""
        self._find_smi().apply_exclusive_process(device.identity)

    def undo_exclusive_process(self, device: Device) -> None:
        """See `Backend.undo_exclusive_process`."""
        self._find_smi().undo_exclusive_process(device.identity)

    @contextmanager
    def _opened(self, device: Device) -> Iterator[Mig]:
        nvml = self._library.open()
        if nvml is None:
            raise DeviceError(f"device {device.name}: {self._library.absence}")
        yield self._find_mig(nvml)

    def _read_binding(self, device: Device) -> int | None:
        return read_binding(self._host.sysfs, device.pci_bus_id)

    def _find_mig(self, nvml: Any) -> Mig:
        if self._mig is None:
            self._mig = Mig(nvml, self._notes, self._policy, pause=self._xids.paused, read_binding=self._read_binding)
        return self._mig

    def _cut(self, mig: Mig, devices: tuple[Device, ...]) -> tuple[tuple[Device, ...], tuple[LeftOut, ...]]:
        """The GPUs with their partitions. One of which they cannot be read stays as it was, unwell, or is left out."""
        cut: list[Device] = []
        left_out: list[LeftOut] = []
        before = {device.identity: device for device in self._last.devices}
        for device in devices:
            try:
                read, problems = mig.read(device)
            except DeviceError as error:
                if (last := before.get(device.identity)) is not None:
                    health = device.health or Health(reason="unreadable", message=str(error))
                    cut.append(replace(last, health=health))
                else:
                    left_out.append(LeftOut(subject=device.name, problem=str(error)))
            else:
                cut.append(read)
                left_out += problems
        return tuple(cut), tuple(left_out)

    def _find_smi(self) -> NvidiaSmi:
        root = self._host.root
        program = root.find_program(_SMI)
        path = root.find(program) if program is not None else None
        if path is None:
            raise DeviceError(f"{_SMI}: not below {str(root.path)!r}, want NVIDIA's driver with its programs")
        return NvidiaSmi(path, library=root.find_library(NVML))

    def _explain_absence(self) -> Inventory:
        """What there is without a driver. A node with GPUs on its bus must not look like one that has none."""
        why = self._library.absence or ""
        if self._last.devices:
            health = Health(reason="no-driver", message=why)
            return Inventory(devices=tuple(replace(device, health=health) for device in self._last.devices))
        undriven = read_undriven(self._host.sysfs)
        return Inventory(left_out=tuple(LeftOut(subject=address, problem=why) for address in undriven))

    def _close(self) -> None:
        """Begin anew with the library at the next look: its driver was unloaded, or updated."""
        self._xids.stop()
        self._mig = None
        self._library.close()
