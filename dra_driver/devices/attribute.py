"""The words in which devices are published: attributes and capacities, the same for every vendor.

Attributes are a closed table. What is not known is left out, and so is a value that the API would refuse: an odd
serial number must not cost a node its devices. Names without a domain belong to the driver.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from dra_driver.api.quantity import Quantity
from dra_driver.api.resource_v1 import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    DeviceAttribute,
    DeviceCapacity,
)
from dra_driver.api.semver import mend_semver
from dra_driver.devices.model import (
    FULL_CORES,
    MEMORY_STEP,
    UNLIMITED_CORES,
    Device,
    Link,
    Partition,
    ShareEnforcement,
)

DEFAULT_SLOTS: Final = 16
"""The most sharers of one device, unless a setting says otherwise."""

MAX_VALUE_BYTES: Final = 64
"""The longest string or version that the API takes (resource.k8s.io/v1, DeviceAttribute)."""

NVLINK: Final = "NVLink"


class AttributeType(StrEnum):
    """The types of the API."""

    STRING = "string"
    INT = "int"
    BOOL = "bool"
    VERSION = "version"


Value = str | int | bool | None
Read = Callable[[Device, Partition | None], Value]


@dataclass(frozen=True, slots=True)
class Attribute:
    """One word: what it means, an example, and how it is read from a device or one of its partitions."""

    name: str
    type: AttributeType
    meaning: str
    example: str
    read: Read


def render_attributes(device: Device, partition: Partition | None = None) -> dict[str, DeviceAttribute]:
    """The attributes of a whole device, or of one of its partitions, in the order of `ATTRIBUTES`."""
    rendered = {attribute.name: _render(attribute, device, partition) for attribute in ATTRIBUTES}
    return {name: value for name, value in rendered.items() if value is not None}


def explain_not_shareable(device: Device, *, share_unenforced: bool = False) -> str | None:
    """Why only one claim at a time can have the device; None if several can share it.

    `share_unenforced` is an administrator's word that shares need not be held to their limits.
    """
    if device.memory is None:
        return "its memory is not known"
    if device.share_memory is None:
        return f"it has {device.memory} bytes of memory, want at least 1Mi"
    if device.share_enforcement is ShareEnforcement.NONE and not share_unenforced:
        return "nothing holds its shares to their limits"
    return None


def render_capacity(
    device: Device,
    partition: Partition | None = None,
    *,
    slots: int = DEFAULT_SLOTS,
    share_unenforced: bool = False,
) -> dict[str, DeviceCapacity]:
    """The capacities of a whole device, or of one of its partitions.

    A device that can be shared has `memory`, `cores` and `slots`, each with a request policy (KEP-5075), so that a
    claim that asks for nothing has the device alone. Anything else has plain memory, if that is known.
    """
    if partition is not None:
        return _plain_memory(partition.memory)
    memory = device.share_memory
    if memory is None or explain_not_shareable(device, share_unenforced=share_unenforced):
        return _plain_memory(device.memory or 0)
    size = Quantity.of_bytes(memory)
    return {
        "memory": _shared(size, step=Quantity.of_bytes(MEMORY_STEP), default=size),
        "cores": _shared(Quantity.of_int(FULL_CORES), default=Quantity.of_int(UNLIMITED_CORES)),
        "slots": _shared(Quantity.of_int(slots)),
    }


_ONE: Final = Quantity.of_int(1)


def _shared(value: Quantity, *, step: Quantity = _ONE, default: Quantity = _ONE) -> DeviceCapacity:
    """A capacity that claims take parts of: from 0 (adminAccess only) to all of it."""
    valid_range = CapacityRequestPolicyRange(min=Quantity.of_int(0), max=value, step=step)
    return DeviceCapacity(value=value, request_policy=CapacityRequestPolicy(default=default, valid_range=valid_range))


def _plain_memory(memory: int) -> dict[str, DeviceCapacity]:
    return {"memory": DeviceCapacity(value=Quantity.of_bytes(memory))} if memory > 0 else {}


def _render(attribute: Attribute, device: Device, partition: Partition | None) -> DeviceAttribute | None:
    match attribute.type, attribute.read(device, partition):
        case AttributeType.BOOL, bool() as value:
            return DeviceAttribute(bool=value)
        case AttributeType.INT, int() as value if -(2**63) <= value < 2**63:
            return DeviceAttribute(int=value)
        case AttributeType.STRING, str() as value if _fits(value):
            return DeviceAttribute(string=value)
        case AttributeType.VERSION, str() as value:
            version = mend_semver(value)
            return DeviceAttribute(version=version) if version and _fits(version) else None
        case _:
            return None


def _fits(value: str) -> bool:
    """Whether the API takes the text: not empty, UTF-8, at most 64 bytes, nothing that a terminal would act on."""
    return value.isprintable() and 0 < len(value.encode("utf-8", "replace")) <= MAX_VALUE_BYTES


def _whole(read: Callable[[Device], Value]) -> Read:
    """A word that partitions do not have."""
    return lambda device, partition: read(device) if partition is None else None


def _part(read: Callable[[Device, Partition], Value]) -> Read:
    """A word that only partitions have."""
    return lambda device, partition: read(device, partition) if partition else None


def _link(read: Callable[[Link], Value]) -> Read:
    """A word of the link, which partitions have no part in."""
    return lambda device, partition: read(device.link) if device.link and partition is None else None


def _both(read: Callable[[Device], Value]) -> Read:
    """A word that partitions take from their device."""
    return lambda device, _: read(device)


def _uuid(device: Device, partition: Partition | None) -> str | None:
    """The UUID. A partition that comes and goes has none here: a slice must not change with every prepared claim."""
    if partition is None:
        return device.uuid
    return partition.uuid if partition.permanent else None


def _compute_units(device: Device, partition: Partition | None) -> int | None:
    return partition.compute_units if partition else device.compute_units


def _raw_version(device: Device) -> str | None:
    version = device.driver_version
    return version if version is not None and mend_semver(version) != version else None


_STRING, _INT, _BOOL, _VERSION = AttributeType.STRING, AttributeType.INT, AttributeType.BOOL, AttributeType.VERSION
_A_UUID: Final = "GPU-1637d3bc-dc81-5164-48de-5007ee7e9f15"
_STANDARD: Final = "resource.kubernetes.io"

ATTRIBUTES: Final = (
    Attribute("vendor", _STRING, "who makes the device", "nvidia", _both(lambda d: d.vendor)),
    Attribute("type", _STRING, "`gpu` or `npu`", "gpu", _both(lambda d: d.type.value)),
    Attribute(
        "partition", _BOOL, "whether it is a part of a device", "false", lambda _, partition: partition is not None
    ),
    Attribute("model", _STRING, "model, as short as it is unique", "H100", _both(lambda d: d.model)),
    Attribute("family", _STRING, "architecture or chip family", "hopper", _both(lambda d: d.family)),
    Attribute(
        "productName", _STRING, "the vendor's full name", "NVIDIA H100 80GB HBM3", _both(lambda d: d.product_name)
    ),
    Attribute("uuid", _STRING, "the device's UUID", _A_UUID, _uuid),
    Attribute("serial", _STRING, "serial number", "1652823054321", _whole(lambda d: d.serial)),
    Attribute("index", _INT, "number that the vendor's tools show", "0", _whole(lambda d: d.index)),
    Attribute("minor", _INT, "minor number of the device node", "0", _whole(lambda d: d.minor)),
    Attribute("memoryType", _STRING, "kind of memory", "HBM3", _both(lambda d: d.memory_type)),
    Attribute("computeCapability", _VERSION, "what kernels it runs", "9.0.0", _both(lambda d: d.compute_capability)),
    Attribute("computeUnits", _INT, "SMs, AI cores or CUs", "132", _compute_units),
    Attribute("driverVersion", _VERSION, "version of the driver", "570.195.3", _both(lambda d: d.driver_version)),
    Attribute("driverVersionRaw", _STRING, "its own text, where that is no semver", "570.195.03", _both(_raw_version)),
    Attribute("runtimeVersion", _VERSION, "CUDA, CANN, ROCm … version", "12.8.0", _both(lambda d: d.runtime_version)),
    Attribute(
        "linkDomain",
        _STRING,
        "devices with the same value are joined by a fast link",
        _A_UUID,
        _link(lambda link: link.domain),
    ),
    Attribute("linkType", _STRING, "kind of link: NVLink, HCCS, xGMI …", "NVLink", _link(lambda link: link.type)),
    Attribute(
        "linkFullMesh", _BOOL, "every pair of the domain is joined directly", "true", _link(lambda link: link.full_mesh)
    ),
    Attribute(
        "nvlinkDomain",
        _STRING,
        "the same as `linkDomain` where the link is NVLink",
        _A_UUID,
        _link(lambda link: link.domain if link.type == NVLINK else None),
    ),
    Attribute(
        "fabricDomain",
        _STRING,
        "domain beyond the node: NVLink clique, super pod",
        "8f5b1c9e.1",
        _whole(lambda d: d.fabric_domain),
    ),
    Attribute(
        "shareEnforcement",
        _STRING,
        "who holds a share to its limits: `shim`, `hardware` or `none`",
        "shim",
        _whole(lambda d: d.share_enforcement.value),
    ),
    Attribute(
        "sharingStrategy",
        _STRING,
        "how shares get along: `Shim`, `TimeSlicing`, `MPS` or `None`",
        "Shim",
        _whole(lambda d: d.sharing_strategy.value if d.sharing_strategy else None),
    ),
    Attribute("partitionProfile", _STRING, "profile of a partition", "1g.10gb", _part(lambda _, p: p.profile)),
    Attribute(
        "parentUUID",
        _STRING,
        "UUID, else identity, of the device that a partition is cut from",
        _A_UUID,
        _part(lambda d, _: d.uuid or d.identity),
    ),
    Attribute(f"{_STANDARD}/numaNode", _INT, "NUMA node that it is attached to", "0", _both(lambda d: d.numa_node)),
    Attribute(f"{_STANDARD}/pcieRoot", _STRING, "PCIe root complex", "pci0000:15", _both(lambda d: d.pcie_root)),
    Attribute(f"{_STANDARD}/pciBusID", _STRING, "PCI address", "0000:1b:00.0", _both(lambda d: d.pci_bus_id)),
)
"""Every attribute that the driver publishes. The reference in the documentation is generated from it."""
