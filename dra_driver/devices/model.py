"""The vendor-neutral device model: what a backend reports, and what slices and CDI specs are made from.

Everything here is pure and immutable. Absent knowledge is `None`, never -1 or "".
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NewType

from dra_driver.api.config_v1alpha1 import Strategy

DeviceName = NewType("DeviceName", str)
"""A device's name in a pool: `<type>-<12 hex>` or `<parent>-<profile>-<start>`, a DNS label."""

MEMORY_STEP = 1 << 20
"""Shares are counted in steps of 1Mi."""

FULL_CORES = 100
"""`cores` is a percentage: a share that takes them all admits nobody else."""

UNLIMITED_CORES = 1
"""A share of one core (the default) has no compute limit."""


class DeviceType(StrEnum):
    """What kind of accelerator it is."""

    GPU = "gpu"
    NPU = "npu"


class ShareEnforcement(StrEnum):
    """Who holds a share of a device to its limits."""

    SHIM = "shim"
    HARDWARE = "hardware"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """The set of devices that a device is joined to (NVLink, HCCS, xGMI …).

    `domain` is deterministic: the fabric's id, else the smallest member's identity.
    """

    domain: str
    type: str
    full_mesh: bool | None = None


UNHEALTHY_TAINT: Final = "dra-driver.io/unhealthy"
"""The key of the taint of a device that should not be used; its value is the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """Why a device should not be used. `reason` is a taint value, so a label value; `message` is for people."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """A partition that a device offers or has: one placement of one profile.

    `start` and `size` are in the vendor's placement units (MIG: memory slices), `memory` in bytes.
    `counters` is what it takes from its parent's counters. `uuid` is known once it exists.
    `permanent` is true of a partition that an administrator made: it is there already and is never removed.
    A device that has one offers its permanent partitions only. One that exists, is not permanent and that no claim has
    was left behind by this driver, and is removed.
    `offered` is false of one that is only here until its claim ends: the device is cut in another way now.
    """

    profile: str
    start: int
    size: int
    memory: int
    compute_units: int | None = None
    counters: Mapping[str, int]
    uuid: str | None = None
    permanent: bool = False
    offered: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A whole physical accelerator.

    `identity` is what never changes: the UUID, else the serial number, never an index.
    `memory` is in bytes. `counters` are the totals that partitions draw from; empty without partitions.
    `usable_whole` is false of a device that is switched to partitions, and stays so: nothing can use the whole of it.
    `health` is None while the device is well.
    `sharing_strategy` is the operator's word (`sharing.apply_policy`), no backend's.
    """

    vendor: str
    type: DeviceType
    identity: str
    model: str
    family: str | None = None
    product_name: str | None = None
    uuid: str | None = None
    serial: str | None = None
    index: int | None = None
    minor: int | None = None
    memory: int | None = None
    memory_type: str | None = None
    compute_capability: str | None = None
    compute_units: int | None = None
    driver_version: str | None = None
    runtime_version: str | None = None
    link: Link | None = None
    fabric_domain: str | None = None
    share_enforcement: ShareEnforcement = ShareEnforcement.NONE
    sharing_strategy: Strategy | None = None
    numa_node: int | None = None
    pcie_root: str | None = None
    pci_bus_id: str | None = None
    partitions: tuple[Partition, ...] = ()
    counters: Mapping[str, int] = field(default_factory=dict)
    usable_whole: bool = True
    health: Health | None = None

    @property
    def name(self) -> DeviceName:
        """The device's name: stable as long as vendor and identity are."""
        digest = hashlib.sha256(f"{self.vendor}\0{self.identity}".encode()).hexdigest()
        return DeviceName(f"{self.type}-{digest[:12]}")

    @property
    def offered_whole(self) -> bool:
        """Whether the whole device can be given out: not where an administrator has cut it up already."""
        return self.usable_whole and not self.has_permanent

    @property
    def has_permanent(self) -> bool:
        """Whether an administrator has made a partition of it."""
        return any(partition.permanent for partition in self.partitions)

    @property
    def share_memory(self) -> int | None:
        """What shares divide among them, in bytes: the memory rounded down to 1Mi; None if less or unknown."""
        return self.memory // MEMORY_STEP * MEMORY_STEP or None if self.memory is not None else None

    def partition_name(self, partition: Partition) -> DeviceName:
        """The name of one of this device's partitions: parent, profile and start, as a DNS label."""
        profile = partition.profile.lower().replace("+", "-plus-").replace(".", "-")
        return DeviceName(f"{self.name}-{profile}-{partition.start}")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """What is there but cannot be offered, and why (one line).

    `subject` is a device's name, or whatever names it best: a PCI address, a backend, the file that is wrong.
    """

    subject: str
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """What a backend sees now, in physical order (PCI address), and what it had to leave out."""

    devices: tuple[Device, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
