"""Reads one GPU out of NVML, and what the kernel knows of its place on the bus.

What a GPU or a driver does not support is None. Any other refusal is an error of the GPU: a slice must not lose an
attribute because of a hiccup.
"""

import contextlib
import ctypes
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import pynvml

from dra_driver.devices.model import Device, DeviceType, ShareEnforcement
from dra_driver.devices.nvidia.health import read_health
from dra_driver.devices.nvidia.link import Ports
from dra_driver.devices.nvidia.product import FAMILIES, count_compute_units, find_memory_type, parse_model
from dra_driver.errors import DeviceError

T = TypeVar("T")

VENDOR: Final = "nvidia"

_ABSENT: Final = (
    pynvml.NVML_ERROR_NOT_SUPPORTED,
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
    pynvml.NVML_ERROR_NOT_FOUND,
    pynvml.NVML_ERROR_NO_DATA,
    pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
    pynvml.NVML_ERROR_DEPRECATED,
)
_NO_SERIAL: Final = ("", "0", "N/A", "[N/A]")


@dataclass(frozen=True, slots=True)
class Versions:
    """What all GPUs of a node have in common: the driver's version and the newest CUDA that it runs."""

    driver: str | None
    cuda: str | None


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU as it was read: the device, still without its link, and its ports."""

    device: Device
    ports: Ports


def read_versions(nvml: Any) -> Versions:
    """Read the versions. Raises NVMLError."""
    cuda = read_optional(nvml.nvmlSystemGetCudaDriverVersion_v2)
    driver = read_optional(nvml.nvmlSystemGetDriverVersion)
    return Versions(driver or None, f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda else None)


def read_gpu(nvml: Any, handle: Any, index: int, versions: Versions, *, sysfs: Path = Path("/sys")) -> Gpu:
    """Read a GPU. Raises NVMLError, or DeviceError if the GPU has nothing to tell it from others, or tells nonsense.

    One that is part of the processor has no place on the bus.
    """
    try:
        return _read_gpu(nvml, handle, index, versions, sysfs)
    except UnicodeDecodeError as error:
        raise DeviceError(f"what it tells of itself is no text: {error}") from error


def read_identity(nvml: Any, handle: Any) -> str | None:
    """The UUID of a GPU of which nothing else may be readable; None if not even that is."""
    try:
        return nvml.nvmlDeviceGetUUID(handle) or None
    except (pynvml.NVMLError, UnicodeDecodeError):
        return None


def read_optional(read: Callable[..., T], *arguments: Any) -> T | None:
    """What `read` returns, None where GPU or driver do not have it. Raises NVMLError for all else."""
    try:
        return read(*arguments)
    except pynvml.NVMLError as error:
        if error.value in _ABSENT:
            return None
        raise


def read_fabric(nvml: Any, handle: Any) -> str | None:
    """The fabric beyond the node, `<cluster>.<clique>`; None if there is none or the GPU has not joined it."""
    info = pynvml.c_nvmlGpuFabricInfo_v2_t()
    if read_optional(nvml.nvmlDeviceGetGpuFabricInfoV, handle, ctypes.byref(info)) is None:
        return None
    cluster = bytes(info.clusterUuid)
    if info.state != pynvml.NVML_GPU_FABRIC_STATE_COMPLETED or info.status != pynvml.NVML_SUCCESS or not any(cluster):
        return None
    return f"{uuid.UUID(bytes=cluster)}.{info.cliqueId}"


def format_pci_address(bus_id: str) -> str:
    """`0000:1b:00.0` of NVML's `00000000:1B:00.0`. Domains beyond four digits keep them. Raises DeviceError."""
    domain, _, rest = bus_id.lower().partition(":")
    try:
        return f"{int(domain, 16):04x}:{rest}"
    except ValueError:
        raise DeviceError(f"PCI address {bus_id!r}: want a domain, a bus and a slot") from None


def read_numa_node(sysfs: Path, address: str) -> int | None:
    """The NUMA node that a PCI device is attached to, as the kernel says; None if it says none."""
    try:
        node = int((_pci_folder(sysfs, address) / "numa_node").read_text("ascii"))
    except (OSError, ValueError):
        return None
    return node if node >= 0 else None


def read_pcie_root(sysfs: Path, address: str) -> str | None:
    """The root complex above a PCI device, such as `pci0000:15`; None if the kernel does not show it."""
    try:
        parts = _pci_folder(sysfs, address).resolve(strict=True).parts
    except OSError:
        return None
    return next((part for part in parts if part.startswith("pci") and ":" in part), None)


def is_on_bus(sysfs: Path, address: str | None) -> bool:
    """Whether the kernel has a device at that place. A GPU without a place cannot be taken out of it."""
    return address is None or _pci_folder(sysfs, address).exists()


def read_binding(sysfs: Path, address: str | None) -> int | None:
    """Which time the kernel's driver took a GPU on: another number each time, in one boot. None if it has not.

    The kernel makes a new link to the driver each time, and never gives the number of an entry of `/sys` again.
    A GPU that has no place on the bus has the number of the module.
    """
    entry = _pci_folder(sysfs, address) / "driver" if address is not None else sysfs / "module/nvidia"
    try:
        return entry.lstat().st_ino
    except OSError:
        return None


def read_undriven(sysfs: Path) -> tuple[str, ...]:
    """PCI addresses of NVIDIA's GPUs, except those that are given to virtual machines. Sorted."""
    found = []
    for folder in sorted((sysfs / "bus/pci/devices").glob("*")):
        try:
            vendor, kind = ((folder / name).read_text("ascii").strip() for name in ("vendor", "class"))
        except (OSError, ValueError):
            continue
        driver = (folder / "driver").resolve().name
        if vendor == "0x10de" and kind.startswith(("0x0300", "0x0302")) and driver != "vfio-pci":
            found.append(folder.name)
    return tuple(found)


def _read_gpu(nvml: Any, handle: Any, index: int, versions: Versions, sysfs: Path) -> Gpu:
    identity: str = nvml.nvmlDeviceGetUUID(handle)
    if not identity:
        raise DeviceError("no UUID")
    name: str = nvml.nvmlDeviceGetName(handle)
    place = read_optional(nvml.nvmlDeviceGetPciInfo, handle)
    address = format_pci_address(place.busId) if place else None
    memory_info = read_optional(nvml.nvmlDeviceGetMemoryInfo, handle)
    memory = int(memory_info.total) or None if memory_info else None
    capability = read_optional(nvml.nvmlDeviceGetCudaComputeCapability, handle)
    cores = read_optional(nvml.nvmlDeviceGetNumGpuCores, handle)
    serial = _read_serial(nvml, handle)
    fabric = read_fabric(nvml, handle)
    device = Device(
        vendor=VENDOR,
        type=DeviceType.GPU,
        identity=identity,
        model=parse_model(name) or "unknown",
        family=FAMILIES.get(read_optional(nvml.nvmlDeviceGetArchitecture, handle)),
        product_name=name or None,
        uuid=identity,
        serial=serial,
        index=index,
        minor=read_optional(nvml.nvmlDeviceGetMinorNumber, handle),
        memory=memory,
        memory_type=find_memory_type(name, memory),
        compute_capability=f"{capability[0]}.{capability[1]}" if capability else None,
        compute_units=count_compute_units(cores, capability) if cores and capability else None,
        driver_version=versions.driver,
        runtime_version=versions.cuda,
        fabric_domain=fabric,
        share_enforcement=ShareEnforcement.SHIM,
        numa_node=read_numa_node(sysfs, address) if address else None,
        pcie_root=read_pcie_root(sysfs, address) if address else None,
        pci_bus_id=address,
        health=read_health(nvml, handle),
    )
    return Gpu(device, _read_ports(nvml, handle, device))


def _pci_folder(sysfs: Path, address: str) -> Path:
    return sysfs / "bus/pci/devices" / address


def _read_serial(nvml: Any, handle: Any) -> str | None:
    try:
        serial = (read_optional(nvml.nvmlDeviceGetSerial, handle) or "").strip()
    except UnicodeDecodeError:
        return None  # the GPU's own memory is damaged
    return serial if serial not in _NO_SERIAL else None


def _read_ports(nvml: Any, handle: Any, device: Device) -> Ports:
    peers: set[str] = set()
    switched = False
    for link in range(pynvml.NVML_NVLINK_MAX_LINKS):
        try:
            if not nvml.nvmlDeviceGetNvLinkState(handle, link):
                continue
        except pynvml.NVMLError as error:
            if error.value == pynvml.NVML_ERROR_INVALID_ARGUMENT:
                break
            if error.value in _ABSENT:
                continue  # a link that was not built in, perhaps before one that was
            raise
        kind = read_optional(nvml.nvmlDeviceGetNvLinkRemoteDeviceType, handle, link)
        if kind == pynvml.NVML_NVLINK_DEVICE_TYPE_SWITCH:
            switched = True
        elif remote := read_optional(nvml.nvmlDeviceGetNvLinkRemotePciInfo, handle, link):
            # In a virtual machine the other end may have no place.
            with contextlib.suppress(DeviceError, UnicodeDecodeError):
                peers.add(format_pci_address(remote.busId))
    return Ports(
        identity=device.identity,
        pci_bus_id=device.pci_bus_id,
        peers=frozenset(peers),
        switched=switched,
        fabric=device.fabric_domain,
    )
