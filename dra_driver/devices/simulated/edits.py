"""Container edits of simulated devices: what the backend knows goes in, a CDI fragment comes out. Pure."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cdi import ContainerEdits, DeviceNode, Mount
from dra_driver.devices.model import Device, DeviceName, Partition
from dra_driver.devices.simulated.flavour import control_number, find_flavour
from dra_driver.devices.simulated.node import CharacterDevice

INFO_DIRECTORY = "/run/simulated-devices"
"""Where a container finds a file about each of its simulated devices."""

_SLOTS_OF_A_DEVICE = 64
_SLOTS_OF_A_NODE = 128 * _SLOTS_OF_A_DEVICE
_MINORS = 2**20
_READ_ONLY = ("ro", "nosuid", "nodev", "noexec", "rbind", "rprivate")


@dataclass(frozen=True, slots=True)
class WantedNode:
    """A device node that a container shall see at `/dev/<name>`, and its minor."""

    name: str
    minor: int


def plan_nodes(device: Device, position: int, placement: int | None, node_number: int) -> tuple[WantedNode, ...]:
    """The nodes of a device, or of its partition with that number: the vendor's shared ones, then its own.

    Minors are distinct on a node: 64 shared, then 64 a device, the device itself first and its partitions after it.
    """
    flavour = find_flavour(device.vendor)
    base = node_number * _SLOTS_OF_A_NODE % _MINORS
    shared = tuple(WantedNode(name, base + control_number(name)) for name in flavour.control)
    slot = (position + 1) * _SLOTS_OF_A_DEVICE
    if placement is None:
        return (*shared, WantedNode(flavour.device_node(device.minor or 0, position), base + slot))
    slot += 1 + placement
    return (*shared, WantedNode(flavour.partition_node(slot), base + slot))


def render_info(device: Device, partition: Partition | None, uuid: str) -> bytes:
    """The file that a container finds about its device: JSON, one line."""
    info = {
        "name": device.name if partition is None else device.partition_name(partition),
        "vendor": device.vendor,
        "model": device.model,
        "uuid": uuid,
        "memory": device.memory if partition is None else partition.memory,
    }
    return json.dumps(info, sort_keys=True).encode() + b"\n"


def build_edits(
    device: Device, name: DeviceName, uuid: str, nodes: Sequence[tuple[WantedNode, CharacterDevice]], info: Path
) -> ContainerEdits:
    """Join variables, nodes and the info file.

    The variable carries the device's name, so that several devices in one container do not overwrite each other's.
    """
    variable = f"SIMULATED_DEVICE_{name.upper().replace('-', '_')}={uuid}"
    return ContainerEdits(
        env=(*find_flavour(device.vendor).env, variable),
        device_nodes=tuple(_device_node(wanted, made) for wanted, made in nodes),
        mounts=(Mount(host_path=str(info), container_path=f"{INFO_DIRECTORY}/{name}.json", options=_READ_ONLY),),
    )


def _device_node(wanted: WantedNode, made: CharacterDevice) -> DeviceNode:
    return DeviceNode(
        path=f"/dev/{wanted.name}",
        host_path=str(made.path),
        type="c",
        major=made.major,
        minor=made.minor,
        file_mode=0o666,
        permissions="rw",
    )
