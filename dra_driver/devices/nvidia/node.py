"""Device nodes of the driver: which there are, and their numbers as the kernel has them now.

Numbers come from the driver itself (`/proc/devices`, `/proc/driver/nvidia`), not from nodes in `/dev`: those are made
late, by other programs, and a Pod's `/dev` may lack them. A runtime makes the nodes of a container from the numbers.
"""

from dataclasses import dataclass
from typing import Final

from dra_driver.devices.nvidia.driver_root import DriverRoot
from dra_driver.errors import DeviceError, explain_os_error

_CONTROL_MINOR: Final = 255
_MODESET_MINOR: Final = 254
_UVM: Final = {"nvidia-uvm": 0, "nvidia-uvm-tools": 1}


@dataclass(frozen=True, slots=True)
class Node:
    """A character device `/dev/<name>` and its numbers."""

    name: str
    major: int
    minor: int


@dataclass(frozen=True, slots=True)
class MigInstance:
    """The ids by which the driver knows a MIG partition: its GPU instance and the compute instance in it."""

    gpu_instance: int
    compute_instance: int


def read_control_nodes(root: DriverRoot) -> tuple[Node, ...]:
    """Return the nodes that all containers with a GPU share. Raises DeviceError if the driver is not loaded."""
    majors = _read_majors(root)
    gpu = _find_gpu_major(majors)
    if "nvidia-uvm" not in majors:
        raise DeviceError("/dev/nvidia-uvm: no such device, want the kernel module 'nvidia-uvm' loaded")
    modeset = (Node("nvidia-modeset", gpu, _MODESET_MINOR),) if "nvidia-modeset" in majors else ()
    uvm = (Node(name, majors["nvidia-uvm"], minor) for name, minor in _UVM.items())
    return (Node("nvidiactl", gpu, _CONTROL_MINOR), *uvm, *modeset)


def read_gpu_node(root: DriverRoot, minor: int) -> Node:
    """Return the node of a GPU. Raises DeviceError if the driver is not loaded."""
    return Node(f"nvidia{minor}", _find_gpu_major(_read_majors(root)), minor)


def read_capability_nodes(root: DriverRoot, gpu_minor: int, instance: MigInstance) -> tuple[Node, Node]:
    """Return the nodes that open a GPU instance and its compute instance. Raises DeviceError if one is not there."""
    major = _read_majors(root).get("nvidia-caps")
    if major is None:
        raise DeviceError("/dev/nvidia-caps: no such device, want a driver with MIG")
    gpu_instance = f"gpu{gpu_minor}/mig/gi{instance.gpu_instance}"
    folders = (gpu_instance, f"{gpu_instance}/ci{instance.compute_instance}")
    first, second = (_read_capability_minor(root, f"{folder}/access") for folder in folders)
    return Node(f"nvidia-caps/nvidia-cap{first}", major, first), Node(f"nvidia-caps/nvidia-cap{second}", major, second)


def _find_gpu_major(majors: dict[str, int]) -> int:
    for name in ("nvidia", "nvidia-frontend"):
        if name in majors:
            return majors[name]
    raise DeviceError("/dev/nvidiactl: no such device, want the kernel module 'nvidia' loaded")


def _read_majors(root: DriverRoot) -> dict[str, int]:
    lines = _read(root, "devices").split("Block devices:")[0].splitlines()
    fields = (line.split() for line in lines)
    return {each[1]: int(each[0]) for each in fields if len(each) == 2 and each[0].isdigit()}  # noqa: PLR2004 - a pair


def _read_capability_minor(root: DriverRoot, name: str) -> int:
    name = f"driver/nvidia/capabilities/{name}"
    for line in _read(root, name).splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "DeviceFileMinor" and value.strip().isdigit():
            return int(value)
    raise DeviceError(f"/proc/{name}: no DeviceFileMinor in it")


def _read(root: DriverRoot, name: str) -> str:
    try:
        return (root.proc / name).read_text("ascii", "replace")
    except OSError as error:
        raise DeviceError(f"/proc/{name}: {explain_os_error(error)}") from error
