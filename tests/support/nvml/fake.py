"""A stand-in for the module `pynvml`: its functions answer from a machine's description, the rest is the module's own.

Constants, structures and exceptions are those of `pynvml`, so that what reads the fake reads the real library.
A function that the fake does not have is an AttributeError: a test that needs it adds it.
"""

from ctypes import memmove
from threading import Condition
from typing import Any, Final

import pynvml

from tests.support.nvml.call import device_call, require, system_call
from tests.support.nvml.machine import NO_INSTANCE, Gpu, Machine, NvLink
from tests.support.nvml.mig import MigCalls

_XID: Final = pynvml.nvmlEventTypeXidCriticalError
_RECOVERY: Final = pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION


class FakeNvml(MigCalls):
    """The library on one machine. Any thread may call it."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(machine)
        self._events = Condition(self.lock)
        self._sets: dict[int, list[tuple[Gpu, int]]] = {}
        self._waiting: dict[int, list[tuple[Gpu, int]]] = {}

    def __getattr__(self, name: str) -> Any:
        value = getattr(pynvml, name)
        if callable(value) and not isinstance(value, type):
            raise AttributeError(f"{name}: not a function of the fake")  # noqa: TRY004 - as of any object
        return value

    def emit(self, gpu: Gpu, xid: int) -> None:
        """Report an XID of a GPU to every set that waits for those of it."""
        with self._events:
            for key, registered in self._sets.items():
                if any(other is gpu and types & _XID for other, types in registered):
                    self._waiting[key].append((gpu, xid))
            self._events.notify_all()

    def nvmlInit(self) -> None:  # noqa: N802 - the library's name
        """Begin. Any number of times, each with its end."""
        with self.lock:
            self.enter("nvmlInit", None)
            if not self.machine.loaded:
                raise pynvml.NVMLError(pynvml.NVML_ERROR_DRIVER_NOT_LOADED)
            self.users += 1

    @system_call
    def nvmlShutdown(self) -> None:  # noqa: N802
        self.users -= 1
        if not self.users:
            self._sets.clear()
            self._waiting.clear()

    @system_call
    def nvmlSystemGetDriverVersion(self) -> str:  # noqa: N802
        return self.machine.driver

    @system_call
    def nvmlSystemGetCudaDriverVersion_v2(self) -> int:  # noqa: N802
        return self.machine.cuda

    @system_call
    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.machine.gpus)

    @system_call
    def nvmlDeviceGetHandleByIndex(self, index: int) -> Any:  # noqa: N802
        if not 0 <= index < len(self.machine.gpus):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        gpu = self.machine.gpus[index]
        self.enter("nvmlDeviceGetHandleByIndex", gpu)
        return self.handle(gpu)

    @system_call
    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> Any:  # noqa: N802
        for gpu in self.machine.gpus:
            if gpu.uuid == uuid:
                self.enter("nvmlDeviceGetHandleByUUID", gpu)
                return self.handle(gpu)
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)

    @device_call
    def nvmlDeviceGetName(self, gpu: Gpu) -> str:  # noqa: N802
        return gpu.name

    @device_call
    def nvmlDeviceGetSerial(self, gpu: Gpu) -> str:  # noqa: N802
        return require(gpu.serial)

    @device_call
    def nvmlDeviceGetMinorNumber(self, gpu: Gpu) -> int:  # noqa: N802
        return gpu.minor

    @device_call
    def nvmlDeviceGetPciInfo(self, gpu: Gpu) -> Any:  # noqa: N802
        return _pci_info(gpu.pci)

    @device_call
    def nvmlDeviceGetMemoryInfo(self, gpu: Gpu) -> Any:  # noqa: N802
        total = require(gpu.memory)
        return pynvml.c_nvmlMemory_t(total=total, free=total, used=0)

    @device_call
    def nvmlDeviceGetArchitecture(self, gpu: Gpu) -> int:  # noqa: N802
        return gpu.architecture

    @device_call
    def nvmlDeviceGetCudaComputeCapability(self, gpu: Gpu) -> tuple[int, int]:  # noqa: N802
        return gpu.capability

    @device_call
    def nvmlDeviceGetNumGpuCores(self, gpu: Gpu) -> int:  # noqa: N802
        return require(gpu.cores)

    @device_call
    def nvmlDeviceGetNvLinkState(self, gpu: Gpu, link: int) -> int:  # noqa: N802
        return int(_link(gpu, link).active)

    @device_call
    def nvmlDeviceGetNvLinkRemotePciInfo(self, gpu: Gpu, link: int) -> Any:  # noqa: N802
        return _pci_info(require(_link(gpu, link).remote))

    @device_call
    def nvmlDeviceGetNvLinkRemoteDeviceType(self, gpu: Gpu, link: int) -> int:  # noqa: N802
        return _link(gpu, link).remote_type

    @device_call
    def nvmlDeviceGetGpuFabricInfoV(self, gpu: Gpu, reference: Any) -> int:  # noqa: N802
        fabric = require(gpu.fabric)
        info = reference._obj
        info.state, info.cliqueId, info.status = fabric.state, fabric.clique, pynvml.NVML_SUCCESS
        memmove(info.clusterUuid, fabric.cluster, len(fabric.cluster))
        return int(pynvml.NVML_SUCCESS)

    @device_call
    def nvmlDeviceGetTotalEccErrors(self, gpu: Gpu, error_type: int, counter_type: int) -> int:  # noqa: N802
        require(gpu.ecc or None)
        volatile = (pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC)
        return gpu.uncorrected if (error_type, counter_type) == volatile else 0

    @device_call
    def nvmlDeviceGetRemappedRows(self, gpu: Gpu) -> tuple[int, int, int, int]:  # noqa: N802
        require(gpu.remapping or None)
        return (0, 0, int(gpu.remap_pending), int(gpu.remap_failed))

    @device_call
    def nvmlDeviceGetRetiredPagesPendingStatus(self, gpu: Gpu) -> int:  # noqa: N802
        require(None if gpu.remapping or not gpu.ecc else 1)
        return int(gpu.retirement_pending)

    @device_call
    def nvmlDeviceGetFieldValues(self, gpu: Gpu, fields: list[int]) -> Any:  # noqa: N802
        values = (pynvml.c_nvmlFieldValue_t * len(fields))()
        for value, number in zip(values, fields, strict=True):
            value.fieldId = number
            if number == _RECOVERY and gpu.recovery_action is not None:
                value.valueType, value.value.uiVal = pynvml.NVML_VALUE_TYPE_UNSIGNED_INT, gpu.recovery_action
            elif number == pynvml.NVML_FI_DEV_IS_RESETLESS_MIG_SUPPORTED and gpu.mig_profiles:
                value.valueType, value.value.uiVal = pynvml.NVML_VALUE_TYPE_UNSIGNED_INT, not gpu.mig_needs_reset
            else:
                value.nvmlReturn = pynvml.NVML_ERROR_NOT_SUPPORTED
        return values

    @device_call
    def nvmlDeviceRegisterEvents(self, gpu: Gpu, types: int, event_set: Any) -> None:  # noqa: N802
        if event_set.value not in self._sets:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        self._sets[event_set.value].append((gpu, types))

    @system_call
    def nvmlEventSetCreate(self) -> Any:  # noqa: N802
        key = max(self._sets, default=0) + 1
        self._sets[key], self._waiting[key] = [], []
        return _EventSet(key)

    @system_call
    def nvmlEventSetFree(self, event_set: Any) -> None:  # noqa: N802
        self._sets.pop(event_set.value, None)
        self._waiting.pop(event_set.value, None)

    @system_call
    def nvmlEventSetWait(self, event_set: Any, timeout_ms: int) -> Any:  # noqa: N802
        key = event_set.value
        if not self._events.wait_for(lambda: self._waiting.get(key) or key not in self._waiting, timeout_ms / 1000):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_TIMEOUT)
        if key not in self._waiting:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_UNINITIALIZED)
        gpu, xid = self._waiting[key].pop(0)
        return pynvml.c_nvmlEventData_t(
            device=self.handle(gpu),
            eventType=_XID,
            eventData=xid,
            gpuInstanceId=NO_INSTANCE,
            computeInstanceId=NO_INSTANCE,
        )


class _EventSet:
    """What stands for a set of events. Only the library looks inside."""

    def __init__(self, value: int) -> None:
        self.value = value


def _pci_info(address: str) -> Any:
    """As NVML writes it: `00000000:1B:00.0`, beside the old form."""
    domain, bus, rest = address.split(":")
    slot = rest.partition(".")[0]
    return pynvml.nvmlPciInfo_t(
        busIdLegacy=address.upper().encode(),
        domain=int(domain, 16),
        bus=int(bus, 16),
        device=int(slot, 16),
        busId=f"{int(domain, 16):08X}:{bus.upper()}:{rest.upper()}".encode(),
    )


def _link(gpu: Gpu, link: int) -> NvLink:
    if not gpu.links:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
    if not 0 <= link < len(gpu.links):
        raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
    return gpu.links[link]
