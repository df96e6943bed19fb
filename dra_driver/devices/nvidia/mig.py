"""MIG: which partitions a GPU has and could have, and how one is made and removed.

Only what this driver made is ever removed. It notes each partition before it touches the GPU (`mig_note`), so that
whatever is found half made after a crash is known for its own, and everything else for somebody else's.

From Hopper on, MIG mode is switched without a reset. Such a GPU is offered whole and in partitions: its mode is
switched on for its first partition and off after its last. On older GPUs the mode stays as it is, since this driver
resets nothing: in MIG mode they are offered in partitions, else whole. So is a GPU that somebody else switched.
"""

import contextlib
import ctypes
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pynvml
import structlog

from dra_driver.devices.model import Device, LeftOut, Partition
from dra_driver.devices.nvidia.mig_note import MigNotes
from dra_driver.devices.nvidia.mig_reader import (
    GpuInstance,
    Handle,
    Library,
    MigDevice,
    covers_instance,
    find_gpu,
    read_compute_instances,
    read_full_compute_profile,
    read_gpu_instance,
    read_gpu_instances,
    read_mig_devices,
    read_mig_enabled,
    read_profiles,
)
from dra_driver.devices.nvidia.mig_switch import MigSwitch, Pause
from dra_driver.devices.nvidia.nvml_error import device_errors, explain_error
from dra_driver.devices.nvidia.placement import GpuProfile, Placements, build_placements
from dra_driver.devices.partitioning import PartitionPolicy, plan_partitions
from dra_driver.errors import DeviceError, StateError

log = structlog.get_logger(__name__)

ReadBinding = Callable[[Device], int | None]
"""Reads which time the kernel's driver took a GPU on; None where that is not known."""


class Mig:
    """The MIG partitions of a node's GPUs. Methods may be called from several threads and processes at once.

    Every failure is a `DeviceError`. A `device` is a GPU as its backend read it, with its UUID and memory.
    During `pause`, this process itself has nothing open that would keep a GPU's mode as it is.
    """

    def __init__(
        self,
        nvml: Library,
        notes: MigNotes,
        policy: PartitionPolicy,
        *,
        pause: Pause = contextlib.nullcontext,
        read_binding: ReadBinding = lambda _device: None,
    ) -> None:
        self._read_binding = read_binding
        self._nvml = nvml
        self._notes = notes
        self._policy = policy
        self._switch = MigSwitch(nvml, notes, pause)
        self._guard = threading.Lock()
        self._gpus: dict[str, tuple[tuple[GpuProfile, ...], Placements]] = {}

    def read(self, device: Device) -> tuple[Device, tuple[LeftOut, ...]]:
        """Return a GPU with its partitions: those that it has, and those that its mode lets it have.

        Beside it what of the GPU cannot be offered: instances that somebody cut in a way that is no partition.
        """
        with device_errors(f"device {device.name}"):
            gpu = self._find_gpu(device)
            enabled = read_mig_enabled(self._nvml, gpu)
            if enabled is None:
                return device, ()
            if not self._notes.is_current(device.name, self._read_binding(device)):
                with self._locked(device):
                    pass
            self._forget_left(device, gpu)
            left_out: tuple[LeftOut, ...] = ()
            if enabled:
                device, left_out = self._read_existing(device, gpu)
            elif self._switch.is_resetless(device, gpu):
                _, placements = self._find_placements(device, gpu)
                device = replace(device, partitions=placements.partitions, counters=placements.counters)
        return plan_partitions(device, self._policy.find_mode(device)), left_out

    def apply(self, device: Device, partition: Partition) -> None:
        """Make a partition: GPU instance and compute instance. Done already is success, half done is finished."""
        name = device.partition_name(partition)
        with device_errors(f"partition {name}"), self._locked(device):
            gpu = self._find_gpu(device)
            with self._switch.held_on(device, gpu, self._has_instances):
                gpu = self._find_gpu(device)  # once more: the switch may have changed it
                self._apply_instance(device, gpu, partition)

    def undo(self, device: Device, partition: Partition) -> None:
        """Remove a partition that `apply` made, or began to. Gone already, or not ours, is success.

        So is a GPU that is away: should it come back with the partition, that is still known for ours.
        """
        name = device.partition_name(partition)
        with device_errors(f"partition {name}"), self._locked(device):
            ours = self._notes.find(name) is not None
            if not ours and self._notes.find(device.name) is None:
                return
            gpu = self._find_gpu_or_none(device)
            if ours and not self._try_undo_instance(device, gpu, partition):
                self._notes.leave(name)
                return
            self._notes.remove(name)
            if gpu is not None:
                self._switch.try_off(device, gpu, self._has_instances)

    def apply_whole(self, device: Device) -> None:
        """Make a GPU usable whole: MIG mode goes off, if this driver switched it on. Off already is success."""
        with device_errors(f"device {device.name}"), self._locked(device):
            gpu = self._find_gpu(device)
            enabled = read_mig_enabled(self._nvml, gpu)
            if enabled is False:
                self._switch.forget(device)
            if not enabled:
                return
            read, left_out = self._read_existing(device, gpu)
            if left_out or read.has_permanent:
                raise DeviceError(f"device {device.name}: has MIG instances that this driver did not make")
            if left := [device.partition_name(each) for each in read.partitions if each.uuid is not None]:
                raise DeviceError(f"device {device.name}: has {', '.join(left)}, want it removed first")
            self._switch.apply_off(device, gpu)

    def find(self, device: Device, partition: Partition) -> MigDevice:
        """Return the MIG device of a partition that exists. Raises DeviceError if it does not, or only half."""
        name = device.partition_name(partition)
        with device_errors(f"partition {name}"):
            gpu = self._find_gpu(device)
            found = self._find_instance(device, gpu, partition) if read_mig_enabled(self._nvml, gpu) else None
            if found is None:
                raise DeviceError(f"partition {name}: does not exist, want it made first")
            return self._require_mig_device(name, gpu, found)

    def read_minor(self, device: Device) -> Device:
        """Return a GPU with the minor number that it has now: switching the mode may change it."""
        with device_errors(f"device {device.name}"):
            return replace(device, minor=int(self._nvml.nvmlDeviceGetMinorNumber(self._find_gpu(device))))

    def _read_existing(self, device: Device, gpu: Handle) -> tuple[Device, tuple[LeftOut, ...]]:
        """A GPU in MIG mode: what exists takes the place of what could."""
        profiles, placements = self._find_placements(device, gpu)
        names = {profile.id: profile.name for profile in profiles}
        existing: dict[tuple[str, int], Partition] = {}
        left_out: list[LeftOut] = []
        made = read_mig_devices(self._nvml, gpu)
        for instance in read_gpu_instances(self._nvml, gpu, profiles):
            partition = placements.find(names.get(instance.profile_id, ""), instance.start)
            devices = [each for each in made if each.gpu_instance == instance.id]
            if partition is not None and self._is_ours(device.partition_name(partition), devices):
                uuid = devices[0].uuid if devices else f"MIG-{device.identity}/{instance.id}"  # half made has none yet
                existing[partition.profile, partition.start] = replace(partition, uuid=uuid)
            elif partition is not None and len(devices) == 1 and covers_instance(self._nvml, devices[0]):
                existing[partition.profile, partition.start] = replace(partition, uuid=devices[0].uuid, permanent=True)
            else:
                problem = (
                    f"GPU instance {instance.id} has {len(devices)} compute instances, want one that has all of it"
                )
                left_out.append(LeftOut(subject=device.name, problem=problem))
        offered = placements.partitions if not left_out else tuple(existing.values())
        partitions = tuple(existing.get((each.profile, each.start), each) for each in offered)
        usable_whole = not left_out and self._notes.find(device.name) is not None
        return (
            replace(device, partitions=partitions, counters=placements.counters, usable_whole=usable_whole),
            tuple(left_out),
        )

    @contextlib.contextmanager
    def _locked(self, device: Device) -> Iterator[None]:
        """Hold the notes of a device, without what was before the kernel's driver took it on."""
        with self._notes.locked(device.name):
            self._notes.renew(device.name, self._read_binding(device))
            yield

    def _forget_left(self, device: Device, gpu: Handle) -> None:
        """Drop the notes of what is left, and of which the GPU has nothing."""
        if not self._notes.find_left(f"{device.name}-"):
            return
        with self._locked(device):
            left = self._notes.find_left(f"{device.name}-")
            enabled = read_mig_enabled(self._nvml, gpu)
            _, placements = self._find_placements(device, gpu)
            for partition in placements.partitions:
                if (name := device.partition_name(partition)) in left and (
                    enabled is False or (enabled and self._find_instance(device, gpu, partition) is None)
                ):
                    self._notes.remove(name)
            if enabled is False:
                self._switch.forget(device)

    def _apply_instance(self, device: Device, gpu: Handle, partition: Partition) -> None:
        name = device.partition_name(partition)
        found = self._find_instance(device, gpu, partition)
        made = self._find_mig_device(gpu, found) if found is not None else None
        if found is not None and not self._is_ours(name, [made] if made else []):
            if partition.permanent:
                return
            raise DeviceError(f"partition {name}: there is one that this driver did not make, want it removed first")
        if found is not None and made is not None:
            self._note_made(name, made)
            return
        self._notes.write(name)
        try:
            instance = found or self._create(device, gpu, partition)
            if not read_compute_instances(self._nvml, instance.handle):
                profile = read_full_compute_profile(self._nvml, instance.handle)
                self._nvml.nvmlGpuInstanceCreateComputeInstance(instance.handle, profile)
            self._note_made(name, self._require_mig_device(name, gpu, instance))
        except (pynvml.NVMLError, DeviceError, StateError):
            self._roll_back(device, gpu, partition)
            raise

    def _note_made(self, name: str, made: MigDevice) -> None:
        note = self._notes.find(name)
        if note is None or note.uuid != made.uuid or note.left:
            self._notes.write(name, made.uuid)

    def _create(self, device: Device, gpu: Handle, partition: Partition) -> GpuInstance:
        profile = self._require_profile(device, gpu, partition)
        placement = pynvml.c_nvmlGpuInstancePlacement_t(partition.start, partition.size)
        handle = self._nvml.nvmlDeviceCreateGpuInstanceWithPlacement(gpu, profile.id, ctypes.byref(placement))
        return read_gpu_instance(self._nvml, handle)

    def _roll_back(self, device: Device, gpu: Handle, partition: Partition) -> None:
        """Remove what is half made. What goes wrong here is logged: the first error is what the user needs."""
        name = device.partition_name(partition)
        try:
            self._undo_instance(device, gpu, partition)
            self._notes.remove(name)
        except (pynvml.NVMLError, DeviceError, StateError) as error:
            log.warning("partition half made", device=name, error=explain_error(error))

    def _try_undo_instance(self, device: Device, gpu: Handle | None, partition: Partition) -> bool:
        """Whether the GPU is without the instance now. It may not answer, or deny that it could have such a one."""
        if gpu is None or (enabled := read_mig_enabled(self._nvml, gpu)) is None:
            return False
        if enabled:
            if self._find_profile(device, gpu, partition) is None:
                return False
            self._undo_instance(device, gpu, partition)
        return True

    def _undo_instance(self, device: Device, gpu: Handle, partition: Partition) -> None:
        """Destroy the instance of a partition, if there is one that is ours."""
        found = self._find_instance(device, gpu, partition)
        if found is None:
            return
        made = self._find_mig_device(gpu, found)
        if not self._is_ours(device.partition_name(partition), [made] if made else []):
            return
        for instance in read_compute_instances(self._nvml, found.handle):
            self._nvml.nvmlComputeInstanceDestroy(instance)
        self._nvml.nvmlGpuInstanceDestroy(found.handle)

    def _is_ours(self, name: str, devices: Sequence[MigDevice]) -> bool:
        """Whether what exists in the place of a partition is what this driver made, or began to make."""
        note = self._notes.find(name)
        if note is None or len(devices) > 1:
            return False
        return note.uuid is None or not devices or devices[0].uuid == note.uuid

    def _find_profile(self, device: Device, gpu: Handle, partition: Partition) -> GpuProfile | None:
        profiles, _ = self._find_placements(device, gpu)
        return next((each for each in profiles if each.name == partition.profile), None)

    def _require_profile(self, device: Device, gpu: Handle, partition: Partition) -> GpuProfile:
        profile = self._find_profile(device, gpu, partition)
        if profile is None:
            raise DeviceError(f"device {device.name}: has no MIG profile {partition.profile}")
        return profile

    def _find_instance(self, device: Device, gpu: Handle, partition: Partition) -> GpuInstance | None:
        """The instance of a partition. None is what the GPU says, and never that it does not know the profile."""
        existing = read_gpu_instances(self._nvml, gpu, [self._require_profile(device, gpu, partition)])
        return next((each for each in existing if each.start == partition.start), None)

    def _find_mig_device(self, gpu: Handle, instance: GpuInstance) -> MigDevice | None:
        devices = read_mig_devices(self._nvml, gpu)
        return next((each for each in devices if each.gpu_instance == instance.id), None)

    def _require_mig_device(self, name: str, gpu: Handle, instance: GpuInstance) -> MigDevice:
        made = self._find_mig_device(gpu, instance)
        if made is None:
            raise DeviceError(f"partition {name}: half made, GPU instance {instance.id} has no compute instance")
        return made

    def _has_instances(self, device: Device, gpu: Handle) -> bool:
        profiles, _ = self._find_placements(device, gpu)
        return bool(read_gpu_instances(self._nvml, gpu, profiles))

    def _find_placements(self, device: Device, gpu: Handle) -> tuple[tuple[GpuProfile, ...], Placements]:
        """The GPU's profiles and placements, which are read once: they never change while a driver is loaded."""
        with self._guard:
            known = self._gpus.get(device.identity)
        if known is None:
            profiles = read_profiles(self._nvml, gpu, total_memory=device.memory or 0)
            known = (profiles, build_placements(profiles))
            with self._guard:
                if profiles:  # an old driver tells them only in MIG mode
                    self._gpus[device.identity] = known
        return known

    def _find_gpu(self, device: Device) -> Handle:
        return find_gpu(self._nvml, device.uuid or device.identity)

    def _find_gpu_or_none(self, device: Device) -> Handle | None:
        """The GPU; None while the library cannot give it, as when it is out of the machine, lost, or hidden."""
        with contextlib.suppress(pynvml.NVMLError_NotFound, pynvml.NVMLError_GpuIsLost):
            return self._find_gpu(device)
        return None
