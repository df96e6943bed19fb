"""Switches a GPU's MIG mode, where that needs no reset, and back; notes beforehand that it was this driver."""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Final

import pynvml
import structlog

from dra_driver.devices.model import Device
from dra_driver.devices.nvidia.mig_note import MigNotes
from dra_driver.devices.nvidia.mig_reader import Handle, Library, read_mig_enabled
from dra_driver.devices.nvidia.nvml_error import explain_error
from dra_driver.errors import DeviceError, StateError

log = structlog.get_logger(__name__)

Pause = Callable[[], AbstractContextManager[object]]
HasInstances = Callable[[Device, Handle], bool]

_HOPPER: Final = 9
"""The compute capability from which on MIG mode is switched without a reset."""


class MigSwitch:
    """The MIG mode of GPUs. The note of a GPU has its name. Callers hold the lock of the notes.

    During `pause`, this process itself has nothing open that would keep a mode as it is.
    """

    def __init__(self, nvml: Library, notes: MigNotes, pause: Pause) -> None:
        self._nvml = nvml
        self._notes = notes
        self._pause = pause

    def is_resetless(self, device: Device, gpu: Handle) -> bool:
        """Whether the mode can be switched without a reset: as the library says, else by the GPU's generation."""
        with contextlib.suppress(pynvml.NVMLError):
            (field,) = self._nvml.nvmlDeviceGetFieldValues(gpu, [pynvml.NVML_FI_DEV_IS_RESETLESS_MIG_SUPPORTED])
            if field.nvmlReturn == pynvml.NVML_SUCCESS:
                return bool(field.value.uiVal)
        major = (device.compute_capability or "0").partition(".")[0]
        return major.isdecimal() and int(major) >= _HOPPER

    @contextlib.contextmanager
    def held_on(self, device: Device, gpu: Handle, has_instances: HasInstances) -> Iterator[None]:
        """Switch the mode on, if need be, and off again if what follows fails. Raises DeviceError if it stays off."""
        enabled = read_mig_enabled(self._nvml, gpu)
        if enabled is None:
            raise DeviceError(f"device {device.name}: does not tell its MIG mode")
        switched = not enabled
        if switched:
            self._apply_on(device, gpu)
        try:
            yield
        except (pynvml.NVMLError, DeviceError, StateError):
            if switched:
                self.try_off(device, gpu, has_instances)
            raise

    def apply_off(self, device: Device, gpu: Handle) -> None:
        """Switch the mode off that this driver switched on. Raises DeviceError if it stays on, or is not ours."""
        if self._notes.find(device.name) is None:
            raise DeviceError(f"device {device.name}: is in MIG mode, which this driver did not switch on")
        try:
            self._set(device, gpu, pynvml.NVML_DEVICE_MIG_DISABLE)
        except (pynvml.NVMLError, DeviceError):
            with contextlib.suppress(pynvml.NVMLError):  # leave no change pending
                self._nvml.nvmlDeviceSetMigMode(gpu, pynvml.NVML_DEVICE_MIG_ENABLE)
            raise
        self._notes.remove(device.name)

    def try_off(self, device: Device, gpu: Handle, has_instances: HasInstances) -> None:
        """Switch the mode off, if it is ours and there is no instance left. What goes wrong is for later."""
        try:
            if self._notes.find(device.name) is None:
                return
            enabled = read_mig_enabled(self._nvml, gpu)
            if enabled is False:
                self.forget(device)
            elif enabled and not has_instances(device, gpu):
                self.apply_off(device, gpu)
        except (pynvml.NVMLError, DeviceError, StateError) as error:
            log.warning("MIG mode stays on", device=device.name, error=explain_error(error))

    def forget(self, device: Device) -> None:
        """Drop the note of a GPU whose mode is off, as after a crash before it was switched, or after it was back."""
        if self._notes.find(device.name) is not None:
            self._notes.remove(device.name)

    def _apply_on(self, device: Device, gpu: Handle) -> None:
        if not self.is_resetless(device, gpu):
            raise DeviceError(f"device {device.name}: is not in MIG mode, and switching it would need a reset")
        if self._is_computed_on(gpu):
            raise DeviceError(f"device {device.name}: in use by a process, want it ended first")
        self._notes.write(device.name)
        try:
            self._set(device, gpu, pynvml.NVML_DEVICE_MIG_ENABLE)
        except (pynvml.NVMLError, DeviceError):
            self._take_back(device, gpu)
            raise

    def _is_computed_on(self, gpu: Handle) -> bool:
        """Whether processes are known to compute on the GPU. Where that is not told, the switch itself refuses."""
        try:
            return bool(self._nvml.nvmlDeviceGetComputeRunningProcesses_v3(gpu))
        except pynvml.NVMLError_FunctionNotFound:
            return False

    def _set(self, device: Device, gpu: Handle, mode: int) -> None:
        """Set the mode. The library may accept it and say in the same breath that it did not take hold."""
        status = self._try_set(gpu, mode)
        if status == pynvml.NVML_ERROR_IN_USE:
            with self._pause():
                status = self._try_set(gpu, mode)
        if status != pynvml.NVML_SUCCESS:
            raise pynvml.NVMLError(status)
        if read_mig_enabled(self._nvml, gpu) != (mode == pynvml.NVML_DEVICE_MIG_ENABLE):
            raise DeviceError(f"device {device.name}: its MIG mode is not changed by setting it")

    def _try_set(self, gpu: Handle, mode: int) -> int:
        try:
            return int(self._nvml.nvmlDeviceSetMigMode(gpu, mode))
        except pynvml.NVMLError_InUse:
            return int(pynvml.NVML_ERROR_IN_USE)

    def _take_back(self, device: Device, gpu: Handle) -> None:
        """Leave no change pending that a later reset would bring about."""
        try:
            self._nvml.nvmlDeviceSetMigMode(gpu, pynvml.NVML_DEVICE_MIG_DISABLE)
            if read_mig_enabled(self._nvml, gpu) is False:
                self._notes.remove(device.name)
        except (pynvml.NVMLError, StateError) as error:
            log.warning("MIG mode half switched", device=device.name, error=explain_error(error))
