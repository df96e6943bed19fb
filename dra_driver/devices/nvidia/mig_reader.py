"""Reads MIG profiles and instances out of NVML: the library's arrays and structs end here.

`Library` is the module `pynvml`, or what takes its place: it has no types. `Handle` is whatever the library hands out
and takes back: a GPU, an instance, a MIG device.
"""

import contextlib
import ctypes
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

import pynvml

from dra_driver.devices.nvidia.placement import GpuProfile, build_profile_name, parse_profile_name

Library = Any
Handle = Any


@dataclass(frozen=True, slots=True)
class GpuInstance:
    """A GPU instance that exists."""

    handle: Handle
    id: int
    profile_id: int
    start: int
    size: int


@dataclass(frozen=True, slots=True)
class MigDevice:
    """A compute instance of a GPU instance, as programs use it."""

    handle: Handle
    gpu_instance: int
    compute_instance: int
    uuid: str


_SUFFIXES: Final = {
    pynvml.NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV1: "+me",
    pynvml.NVML_GPU_INSTANCE_PROFILE_2_SLICE_REV1: "+me",
    pynvml.NVML_GPU_INSTANCE_PROFILE_1_SLICE_GFX: "+gfx",
    pynvml.NVML_GPU_INSTANCE_PROFILE_2_SLICE_GFX: "+gfx",
    pynvml.NVML_GPU_INSTANCE_PROFILE_3_SLICE_GFX: "+gfx",
    pynvml.NVML_GPU_INSTANCE_PROFILE_4_SLICE_GFX: "+gfx",
    pynvml.NVML_GPU_INSTANCE_PROFILE_1_SLICE_NO_ME: "-me",
    pynvml.NVML_GPU_INSTANCE_PROFILE_2_SLICE_NO_ME: "-me",
    pynvml.NVML_GPU_INSTANCE_PROFILE_1_SLICE_ALL_ME: "+me.all",
    pynvml.NVML_GPU_INSTANCE_PROFILE_2_SLICE_ALL_ME: "+me.all",
}
"""What the names of profiles end in, for drivers that do not tell names."""

_ABSENT: Final = (pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_INVALID_ARGUMENT, pynvml.NVML_ERROR_NOT_FOUND)


def find_gpu(nvml: Library, uuid: str) -> Handle:
    """Find a GPU by its UUID. Raises NVMLError if it is not there, or lost itself.

    The library may refuse each while any one is lost: then those that answer are gone through by index.
    """
    try:
        return nvml.nvmlDeviceGetHandleByUUID(uuid)
    except pynvml.NVMLError_GpuIsLost:
        for index in range(nvml.nvmlDeviceGetCount()):
            with contextlib.suppress(pynvml.NVMLError):
                handle = nvml.nvmlDeviceGetHandleByIndex(index)
                if nvml.nvmlDeviceGetUUID(handle) == uuid:
                    return handle
        raise


def read_mig_enabled(nvml: Library, gpu: Handle) -> bool | None:
    """Whether the GPU is in MIG mode now; None for one that tells of none."""
    try:
        current, _ = nvml.nvmlDeviceGetMigMode(gpu)
    except pynvml.NVMLError as error:
        if error.value in (*_ABSENT, pynvml.NVML_ERROR_FUNCTION_NOT_FOUND):
            return None
        raise
    return bool(current == pynvml.NVML_DEVICE_MIG_ENABLE)


def read_profiles(nvml: Library, gpu: Handle, *, total_memory: int) -> tuple[GpuProfile, ...]:
    """Read the GPU instance profiles of a GPU with all their placements, whether it is in MIG mode or not."""
    found = (_read_profile(nvml, gpu, number, total_memory) for number in range(pynvml.NVML_GPU_INSTANCE_PROFILE_COUNT))
    return tuple(profile for profile in found if profile is not None)


def read_gpu_instances(nvml: Library, gpu: Handle, profiles: Iterable[GpuProfile]) -> tuple[GpuInstance, ...]:
    """Read the GPU instances that exist, with or without compute instances in them."""
    handles = (
        handle
        for profile in profiles
        for handle in _read_array(
            lambda array, count, profile_id=profile.id: nvml.nvmlDeviceGetGpuInstances(gpu, profile_id, array, count),
            pynvml.c_nvmlGpuInstance_t,
            profile.instances,
        )
    )
    return tuple(read_gpu_instance(nvml, handle) for handle in handles)


def read_gpu_instance(nvml: Library, handle: Handle) -> GpuInstance:
    """Read a GPU instance by its handle."""
    info = nvml.nvmlGpuInstanceGetInfo(handle)
    return GpuInstance(handle, info.id, info.profileId, info.placement.start, info.placement.size)


def read_compute_instances(nvml: Library, instance: Handle) -> tuple[Handle, ...]:
    """Read the compute instances of a GPU instance."""
    return tuple(
        handle
        for info in _read_compute_profiles(nvml, instance)
        for handle in _read_array(
            lambda array, count, profile_id=info.id: nvml.nvmlGpuInstanceGetComputeInstances(
                instance, profile_id, array, count
            ),
            pynvml.c_nvmlComputeInstance_t,
            info.instanceCount,
        )
    )


def read_full_compute_profile(nvml: Library, instance: Handle) -> int:
    """The id of the compute instance profile that takes all of a GPU instance."""
    largest = max(_read_compute_profiles(nvml, instance), key=lambda info: int(info.sliceCount), default=None)
    if largest is None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
    return int(largest.id)


def read_mig_devices(nvml: Library, gpu: Handle) -> tuple[MigDevice, ...]:
    """Read the MIG devices of a GPU: one for each compute instance."""
    return tuple(_read_mig_devices(nvml, gpu))


def covers_instance(nvml: Library, device: MigDevice) -> bool:
    """Whether a MIG device has all of its GPU instance, not just some of its compute slices."""
    attributes = nvml.nvmlDeviceGetAttributes_v2(device.handle)
    return bool(attributes.computeInstanceSliceCount == attributes.gpuInstanceSliceCount)


def _read_profile(nvml: Library, gpu: Handle, number: int, total_memory: int) -> GpuProfile | None:
    try:
        info = _read_latest(lambda version: nvml.nvmlDeviceGetGpuInstanceProfileInfo(gpu, number, version))
        placements = _read_array(
            lambda array, count: nvml.nvmlDeviceGetGpuInstancePossiblePlacements(gpu, info.id, array, count),
            pynvml.c_nvmlGpuInstancePlacement_t,
            None,
        )
    except pynvml.NVMLError as error:
        if error.value in _ABSENT:
            return None
        raise
    memory = int(info.memorySizeMB) << 20
    return GpuProfile(
        name=_profile_name(info, number, memory, total_memory),
        id=info.id,
        compute_slices=info.sliceCount,
        instances=info.instanceCount,
        memory=memory,
        multiprocessors=info.multiprocessorCount,
        copy_engines=info.copyEngineCount,
        decoders=info.decoderCount,
        encoders=info.encoderCount,
        jpeg_engines=info.jpegCount,
        ofa_engines=info.ofaCount,
        placements=tuple((placement.start, placement.size) for placement in placements),
    )


def _read_latest(read: Callable[[int], Any]) -> Any:
    """What is read in the second version of a function, which came after MIG itself, else in the first one."""
    try:
        return read(2)
    except pynvml.NVMLError as error:
        if error.value != pynvml.NVML_ERROR_FUNCTION_NOT_FOUND:
            raise
    return read(1)


def _profile_name(info: Any, number: int, memory: int, total_memory: int) -> str:
    try:
        name: str = getattr(info, "name", "")
    except UnicodeDecodeError:
        name = ""
    if name:
        return parse_profile_name(name)
    return build_profile_name(
        compute_slices=info.sliceCount, memory=memory, total_memory=total_memory, suffix=_SUFFIXES.get(number, "")
    )


def _read_compute_profiles(nvml: Library, instance: Handle) -> Iterator[Any]:
    read, shared = nvml.nvmlGpuInstanceGetComputeInstanceProfileInfo, pynvml.NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED
    for number in range(pynvml.NVML_COMPUTE_INSTANCE_PROFILE_COUNT):
        try:
            yield _read_latest(partial(read, instance, number, shared))
        except pynvml.NVMLError as error:
            if error.value not in _ABSENT:
                raise


def _read_mig_devices(nvml: Library, gpu: Handle) -> Iterator[MigDevice]:
    for index in range(nvml.nvmlDeviceGetMaxMigDeviceCount(gpu)):
        try:
            handle = nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, index)
        except pynvml.NVMLError as error:
            if error.value in _ABSENT:
                continue
            raise
        yield MigDevice(
            handle,
            nvml.nvmlDeviceGetGpuInstanceId(handle),
            nvml.nvmlDeviceGetComputeInstanceId(handle),
            nvml.nvmlDeviceGetUUID(handle),
        )


class _ReadArray(Protocol):
    def __call__(self, array: Any, count: Any, /) -> Any: ...


def _read_array(read: _ReadArray, item: Any, most: int | None) -> list[Any]:
    """Have the library fill an array, which has room for `most`, or else for as many as it says there are."""
    count = ctypes.c_uint(most or 0)
    if most is None:
        read(None, ctypes.byref(count))
    array = (item * count.value)()
    read(array, ctypes.byref(count))
    return [array[index] for index in range(min(count.value, len(array)))]
