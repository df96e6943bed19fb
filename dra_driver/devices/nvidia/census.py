"""The GPUs of a node, over time: what was read once and is not readable any more is unwell, not gone."""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pynvml

from dra_driver.devices.model import Device, DeviceName, Health, LeftOut
from dra_driver.devices.nvidia.health import NEEDS_RESET, RESET_REASONS
from dra_driver.devices.nvidia.link import build_links
from dra_driver.devices.nvidia.nvml_error import explain_error
from dra_driver.devices.nvidia.reader import Gpu, is_on_bus, read_binding, read_gpu, read_identity, read_versions
from dra_driver.devices.nvidia.xid import explain_xid
from dra_driver.devices.nvidia.xid_note import XidNote, XidNotes, plan_note
from dra_driver.errors import DeviceError

_LOST: Final = Health(reason="gpu-lost", message="the GPU has fallen off the bus; want the node rebooted")


@dataclass(frozen=True, slots=True)
class _Failure:
    """A GPU that cannot be read. `identity` is its UUID, if it tells that at least."""

    index: int
    error: pynvml.NVMLError | DeviceError
    identity: str | None


@dataclass(slots=True)
class Census:
    """Reads all GPUs again and again. `handles` are those of the GPUs that answered last, by device name.

    `notes` are the XIDs that NVML told of, in the boot with that id. One thread reads at a time.
    """

    sysfs: Path
    notes: XidNotes
    boot_id: str | None
    ignored_xids: frozenset[int] = frozenset()
    handles: Mapping[DeviceName, Any] = field(default_factory=dict)
    _known: tuple[Gpu, ...] = ()

    def read(self, nvml: Any) -> tuple[tuple[Device, ...], tuple[LeftOut, ...]]:
        """Return the GPUs in the order of their PCI addresses, and those of which nothing is known.

        Raises NVMLError if no GPU can be read at all.
        """
        gpus, failures = self._read_gpus(nvml)
        answering = {gpu.device.identity for gpu in gpus}
        silent: list[Gpu] = []
        left_out: list[LeftOut] = []
        for failure, gpu in self._recognise(failures, answering):
            if gpu is not None:
                silent.append(replace(gpu, device=replace(gpu.device, health=_explain_silence(failure.error))))
            else:
                left_out.append(LeftOut(subject=f"GPU {failure.index}", problem=explain_error(failure.error)))
        self._known = (*gpus, *silent)
        notes = self._update_notes(answering)
        return self._join(self._known, notes), tuple(left_out)

    def _read_gpus(self, nvml: Any) -> tuple[list[Gpu], list[_Failure]]:
        versions = read_versions(nvml)
        gpus: list[Gpu] = []
        failures: list[_Failure] = []
        handles: dict[DeviceName, Any] = {}
        for index in range(nvml.nvmlDeviceGetCount()):
            handle = None
            try:
                handle = nvml.nvmlDeviceGetHandleByIndex(index)
                gpu = read_gpu(nvml, handle, index, versions, sysfs=self.sysfs)
            except (pynvml.NVMLError, DeviceError) as error:
                failures.append(_Failure(index, error, read_identity(nvml, handle) if handle is not None else None))
            else:
                gpus.append(gpu)
                handles[gpu.device.name] = handle
        self.handles = handles
        return gpus, failures

    def _recognise(self, failures: Iterable[_Failure], answering: set[str]) -> Iterator[tuple[_Failure, Gpu | None]]:
        """Pair what cannot be read with the GPUs that were known and do not answer; None for what never was known.

        An index is not always the same GPU's: it changes when another one was taken out. So the UUID counts first, then
        whether the GPU is on the bus still.
        """
        missing = {gpu.device.identity: gpu for gpu in self._known if gpu.device.identity not in answering}
        indexes = {gpu.device.index for gpu in missing.values()}
        for failure in sorted(failures, key=lambda each: (each.identity is None, each.index not in indexes)):
            possible = (gpu for gpu in missing.values() if failure.identity in {None, gpu.device.identity})
            found = min(possible, key=lambda gpu: self._rank(gpu.device, failure), default=None)
            if found is not None:
                del missing[found.device.identity]
            yield failure, found

    def _rank(self, device: Device, failure: _Failure) -> tuple[bool, bool]:
        return not is_on_bus(self.sysfs, device.pci_bus_id), device.index != failure.index

    def _update_notes(self, answering: set[str]) -> dict[DeviceName, XidNote]:
        """Forget the XIDs of GPUs that were reset since; return the others."""
        devices = {gpu.device.name: gpu.device for gpu in self._known}
        notes: dict[DeviceName, XidNote] = {}
        for name, note in self.notes.read().items():
            plan = self._plan(devices.get(name), answering)
            planned = plan(note)
            if planned is not None:
                notes[name] = planned
            if planned != note:
                self.notes.update(name, plan)
        return notes

    def _plan(self, device: Device | None, answering: set[str]) -> Callable[[XidNote], XidNote | None]:
        wants_reset: bool | None = None
        if device is not None and (_wants_reset(device) or device.identity in answering):
            wants_reset = _wants_reset(device)
        binding = read_binding(self.sysfs, device.pci_bus_id) if device is not None else None
        return functools.partial(plan_note, boot=self.boot_id, binding=binding, wants_reset=wants_reset)

    def _join(self, gpus: tuple[Gpu, ...], notes: Mapping[DeviceName, XidNote]) -> tuple[Device, ...]:
        links = build_links([gpu.ports for gpu in gpus])
        devices = (
            replace(gpu.device, link=links.get(gpu.device.identity), health=self._find_health(gpu.device, notes))
            for gpu in gpus
        )
        return tuple(sorted(devices, key=lambda device: (device.pci_bus_id or "", device.identity)))

    def _find_health(self, device: Device, notes: Mapping[DeviceName, XidNote]) -> Health | None:
        """What the GPU says of itself counts before what happened to it."""
        if device.health is not None:
            return device.health
        note = notes.get(device.name)
        meanings = (explain_xid(xid, ignored=self.ignored_xids) for xid in (note.xids if note is not None else ()))
        return next((health for health in meanings if health is not None), None)


def _wants_reset(device: Device) -> bool:
    health = device.health
    return health is not None and (health == _LOST or health.reason in RESET_REASONS)


def _explain_silence(error: pynvml.NVMLError | DeviceError) -> Health:
    match error:
        case pynvml.NVMLError(value=pynvml.NVML_ERROR_GPU_IS_LOST):
            return _LOST
        case pynvml.NVMLError(value=pynvml.NVML_ERROR_RESET_REQUIRED):
            return NEEDS_RESET
    return Health(reason="unreadable", message=explain_error(error))
