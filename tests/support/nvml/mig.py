"""The MIG part of the fake library: modes, placements, GPU and compute instances, and the refusals of real hardware.

Arrays and structs are the real ones of `pynvml`, so that callers meet what they meet on a GPU.
"""

import ctypes
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pynvml

from tests.support.nvml.call import Calls, device_call, require, system_call
from tests.support.nvml.machine import Gpu, Machine
from tests.support.nvml.mig_profile import MIG_PROFILES, MigProfile

COMPUTE_PROFILES: Final = {
    pynvml.NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE: (0, 1),
    pynvml.NVML_COMPUTE_INSTANCE_PROFILE_2_SLICE: (1, 2),
    pynvml.NVML_COMPUTE_INSTANCE_PROFILE_3_SLICE: (2, 3),
    pynvml.NVML_COMPUTE_INSTANCE_PROFILE_4_SLICE: (3, 4),
    pynvml.NVML_COMPUTE_INSTANCE_PROFILE_7_SLICE: (4, 7),
}
"""By NVML's constant: the id and the compute slices."""

_HANDLES: Final = 0x200000
_IN_NO_ORDER: Final = (*range(13, 0, -1), 0)


@dataclass(eq=False, kw_only=True)
class ComputeInstance:
    """A compute instance. While it is `busy`, a process uses it."""

    id: int
    profile_id: int
    slices: int
    parent: "GpuInstance"
    busy: bool = False

    @property
    def uuid(self) -> str:
        """As NVIDIA's, it follows from the GPU and the numbers of the instances."""
        return f"MIG-{uuid.uuid5(uuid.NAMESPACE_URL, f'{self.parent.gpu.uuid}/{self.parent.id}/{self.id}')}"


@dataclass(eq=False, kw_only=True)
class GpuInstance:
    """A GPU instance, in the place that its start and its profile say."""

    id: int
    profile: MigProfile
    start: int
    gpu: Gpu
    compute: list[ComputeInstance] = field(default_factory=list)


class MigCalls(Calls):
    """The functions that have to do with MIG, and what an administrator does beside them."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(machine)
        self._instances: list[GpuInstance] = []
        self._mig_handles: dict[int, GpuInstance | ComputeInstance] = {}

    def layout(self, gpu: Gpu) -> list[tuple[str, int, int]]:
        """What there is on a GPU: profile, start, and the number of compute instances."""
        return sorted((each.profile.name, each.start, len(each.compute)) for each in self.instances(gpu))

    def instances(self, gpu: Gpu) -> list[GpuInstance]:
        """The GPU instances of a GPU."""
        return [each for each in self._instances if each.gpu is gpu]

    def make(self, gpu: Gpu, profile: str, start: int, *, compute: Sequence[int] | None = None) -> GpuInstance:
        """Make an instance behind the driver's back, as an administrator does: with one compute instance, or others."""
        found = next(each for each in _profiles(gpu) if each.name == profile)
        instance = self._create(gpu, found, start)
        for slices in (found.compute_slices,) if compute is None else compute:
            _create_compute(instance, slices)
        return instance

    def remove(self, gpu: Gpu) -> None:
        """Remove all instances of a GPU, as a reset does."""
        self._instances = [each for each in self._instances if each.gpu is not gpu]

    @device_call
    def nvmlDeviceGetMigMode(self, gpu: Gpu) -> list[int]:  # noqa: N802 - the library's name
        _profiles(gpu)
        return [int(gpu.mig_enabled), int(gpu.mig_pending)]

    @device_call
    def nvmlDeviceSetMigMode(self, gpu: Gpu, mode: int) -> int:  # noqa: N802
        """Where a reset is needed none is done: the mode is pending, as on a machine that does not allow it."""
        _profiles(gpu)
        wanted = mode == pynvml.NVML_DEVICE_MIG_ENABLE
        if self.instances(gpu) and not wanted:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_IN_USE)
        gpu.mig_pending = wanted
        if wanted == gpu.mig_enabled:
            return int(pynvml.NVML_SUCCESS)
        if gpu.mig_needs_reset:
            return int(pynvml.NVML_ERROR_RESET_REQUIRED)
        if gpu.processes or gpu.monitored:
            return int(pynvml.NVML_ERROR_IN_USE)
        gpu.mig_enabled = wanted
        return int(pynvml.NVML_SUCCESS)

    @device_call
    def nvmlDeviceGetGpuInstanceProfileInfo(self, gpu: Gpu, profile: int, version: int = 2) -> Any:  # noqa: N802
        found = require(next((each for each in _profiles(gpu) if each.enum == profile), None))
        info = pynvml.c_nvmlGpuInstanceProfileInfo_v2_t() if version == 2 else pynvml.c_nvmlGpuInstanceProfileInfo_t()
        info.id, info.sliceCount, info.instanceCount = found.id, found.compute_slices, found.instances
        info.multiprocessorCount, info.memorySizeMB = found.multiprocessors, found.memory
        info.copyEngineCount, info.decoderCount, info.encoderCount, info.jpegCount, info.ofaCount = found.engines
        if version == 2:
            info.name = f"MIG {found.name}".encode()
        return info

    @device_call
    def nvmlDeviceGetGpuInstancePossiblePlacements(  # noqa: N802
        self, gpu: Gpu, profile_id: int, placements: Any, count: Any
    ) -> None:
        profile = _profile(gpu, profile_id)
        if placements is not None:
            if count._obj.value < len(profile.starts):
                raise pynvml.NVMLError(pynvml.NVML_ERROR_INSUFFICIENT_SIZE)
            for index, start in enumerate(profile.starts):
                placements[index].start, placements[index].size = start, profile.size
        count._obj.value = len(profile.starts)

    @device_call
    def nvmlDeviceGetGpuInstances(self, gpu: Gpu, profile_id: int, instances: Any, count: Any) -> None:  # noqa: N802
        _require_mode(gpu)
        _profile(gpu, profile_id)
        self._give([each for each in self.instances(gpu) if each.profile.id == profile_id], instances, count)

    @device_call
    def nvmlDeviceCreateGpuInstanceWithPlacement(self, gpu: Gpu, profile_id: int, placement: Any) -> Any:  # noqa: N802
        profile = _profile(gpu, profile_id)
        if placement._obj.size != profile.size:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        return self._mig_handle(self._create(gpu, profile, placement._obj.start), pynvml.c_nvmlGpuInstance_t)

    @system_call
    def nvmlGpuInstanceGetInfo(self, instance: Any) -> Any:  # noqa: N802
        found = self._gpu_instance(instance)
        info = pynvml.c_nvmlGpuInstanceInfo_t()
        info.id, info.profileId = found.id, found.profile.id
        info.placement.start, info.placement.size = found.start, found.profile.size
        return info

    @system_call
    def nvmlGpuInstanceDestroy(self, instance: Any) -> None:  # noqa: N802
        found = self._gpu_instance(instance)
        if found.compute:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_IN_USE)
        self._instances.remove(found)

    @system_call
    def nvmlGpuInstanceGetComputeInstanceProfileInfo(  # noqa: N802
        self, instance: Any, profile: int, engines: int, version: int = 2
    ) -> Any:
        found = self._gpu_instance(instance)
        number, slices = COMPUTE_PROFILES.get(profile, (0, 0))
        if not 0 < slices <= found.profile.compute_slices:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        if engines != pynvml.NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        versions = (pynvml.c_nvmlComputeInstanceProfileInfo_t, pynvml.c_nvmlComputeInstanceProfileInfo_v2_t)
        info = versions[version - 1]()
        info.id, info.sliceCount, info.instanceCount = number, slices, found.profile.compute_slices // slices
        return info

    @system_call
    def nvmlGpuInstanceCreateComputeInstance(self, instance: Any, profile_id: int) -> Any:  # noqa: N802
        found = self._gpu_instance(instance)
        slices = dict(COMPUTE_PROFILES.values()).get(profile_id)
        if slices is None:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        return self._mig_handle(_create_compute(found, slices), pynvml.c_nvmlComputeInstance_t)

    @system_call
    def nvmlGpuInstanceGetComputeInstances(  # noqa: N802
        self, instance: Any, profile_id: int, instances: Any, count: Any
    ) -> None:
        found = self._gpu_instance(instance)
        self._give([each for each in found.compute if each.profile_id == profile_id], instances, count)

    @system_call
    def nvmlComputeInstanceDestroy(self, instance: Any) -> None:  # noqa: N802
        found = self._compute_instance(instance)
        if found.busy:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_IN_USE)
        found.parent.compute.remove(found)

    @device_call
    def nvmlDeviceGetMaxMigDeviceCount(self, gpu: Gpu) -> int:  # noqa: N802
        return max(each.instances for each in _profiles(gpu))

    @device_call
    def nvmlDeviceGetMigDeviceHandleByIndex(self, gpu: Gpu, index: int) -> Any:  # noqa: N802
        _require_mode(gpu)
        devices = [compute for each in self.instances(gpu) for compute in each.compute]
        if index >= len(devices):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return self._mig_handle(devices[index], pynvml.c_nvmlDevice_t)

    @system_call
    def nvmlDeviceGetGpuInstanceId(self, device: Any) -> int:  # noqa: N802
        return self._compute_instance(device).parent.id

    @system_call
    def nvmlDeviceGetComputeInstanceId(self, device: Any) -> int:  # noqa: N802
        return self._compute_instance(device).id

    @system_call
    def nvmlDeviceGetAttributes_v2(self, device: Any) -> Any:  # noqa: N802
        found = self._compute_instance(device)
        attributes = pynvml.c_nvmlDeviceAttributes()
        attributes.gpuInstanceSliceCount = found.parent.profile.compute_slices
        attributes.computeInstanceSliceCount = found.slices
        return attributes

    @system_call
    def nvmlDeviceGetUUID(self, device: Any) -> str:  # noqa: N802
        """Of a GPU, or of a MIG device."""
        found = self._mig_handles.get(_address(device))
        if isinstance(found, ComputeInstance):
            return found.uuid
        gpu = self.find(device)
        self.refuse("nvmlDeviceGetUUID", gpu)
        return gpu.uuid

    @device_call
    def nvmlDeviceGetComputeRunningProcesses_v3(self, gpu: Gpu) -> list[Any]:  # noqa: N802
        return [pynvml.c_nvmlProcessInfo_t(pid=pid) for pid in gpu.processes]

    def _create(self, gpu: Gpu, profile: MigProfile, start: int) -> GpuInstance:
        _require_mode(gpu)
        if start not in profile.starts:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        beside = self.instances(gpu)
        overlap = any(start < each.start + each.profile.size and each.start < start + profile.size for each in beside)
        compute = sum(each.profile.compute_slices for each in beside) + profile.compute_slices
        extensions = [each.name for each in (profile, *(each.profile for each in beside)) if "+me" in each.name]
        if overlap or compute > max(each.compute_slices for each in _profiles(gpu)) or len(extensions) > 1:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INSUFFICIENT_RESOURCES)
        number = next(each for each in _IN_NO_ORDER if each not in {other.id for other in beside})
        instance = GpuInstance(id=number, profile=profile, start=start, gpu=gpu)
        self._instances.append(instance)
        return instance

    def _gpu_instance(self, handle: Any) -> GpuInstance:
        found = self._mig_handles.get(_address(handle))
        if not isinstance(found, GpuInstance) or found not in self._instances:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return found

    def _compute_instance(self, handle: Any) -> ComputeInstance:
        found = self._mig_handles.get(_address(handle))
        if not isinstance(found, ComputeInstance) or found not in found.parent.compute:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return found

    def _mig_handle(self, found: GpuInstance | ComputeInstance, kind: Any) -> Any:
        address = next((key for key, value in self._mig_handles.items() if value is found), None)
        if address is None:
            address = _HANDLES + len(self._mig_handles)
            self._mig_handles[address] = found
        return ctypes.cast(ctypes.c_void_p(address), kind)

    def _give(self, found: Sequence[GpuInstance | ComputeInstance], array: Any, count: Any) -> None:
        for index, each in enumerate(found):
            array[index] = self._mig_handle(each, type(array)._type_)
        count._obj.value = len(found)


def _create_compute(instance: GpuInstance, slices: int) -> ComputeInstance:
    if sum(each.slices for each in instance.compute) + slices > instance.profile.compute_slices:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_INSUFFICIENT_RESOURCES)
    profile_id = next(number for number, size in COMPUTE_PROFILES.values() if size == slices)
    made = ComputeInstance(id=len(instance.compute), profile_id=profile_id, slices=slices, parent=instance)
    instance.compute.append(made)
    return made


def _profiles(gpu: Gpu) -> tuple[MigProfile, ...]:
    return require(MIG_PROFILES[gpu.mig_profiles] if gpu.mig_profiles else None)


def _profile(gpu: Gpu, profile_id: int) -> MigProfile:
    found = next((each for each in _profiles(gpu) if each.id == profile_id), None)
    if found is None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
    return found


def _require_mode(gpu: Gpu) -> None:
    require(gpu.mig_enabled or None)


def _address(handle: Any) -> int:
    return ctypes.cast(handle, ctypes.c_void_p).value or 0
