"""Builders that keep a test to the fields it is about."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cdi import ContainerEdits, DeviceNode
from dra_driver.api.config_v1alpha1 import Interval
from dra_driver.api.meta_v1 import ObjectMeta
from dra_driver.api.quantity import Quantity
from dra_driver.api.resource_v1 import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    OpaqueDeviceConfiguration,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
)
from dra_driver.devices.model import Device, DeviceType, Inventory, Partition, ShareEnforcement
from dra_driver.errors import DeviceError
from kubeletplugin.prepare.record import ClaimRef

DRIVER = "accel.dra-driver.io"
NODE = "node-a"
GIB = 1 << 30


def a_device(identity: str = "GPU-0", **fields: Any) -> Device:
    """A well, shareable whole device of 80Gi."""
    values: dict[str, Any] = {
        "vendor": "nvidia",
        "type": DeviceType.GPU,
        "identity": identity,
        "model": "H100",
        "memory": 80 * GIB,
        "share_enforcement": ShareEnforcement.SHIM,
    }
    return Device(**(values | fields))


def a_partition(profile: str = "1g.10gb", start: int = 0, size: int = 1, **fields: Any) -> Partition:
    """A partition that takes the memory slices `start` to `start + size`."""
    values: dict[str, Any] = {
        "profile": profile,
        "start": start,
        "size": size,
        "memory": size * 10 * GIB,
        "counters": {f"memory-slice-{index}": 1 for index in range(start, start + size)},
    }
    return Partition(**(values | fields))


def a_partitionable_device(identity: str = "GPU-P", *partitions: Partition, slices: int = 8) -> Device:
    """A device of `slices` memory slices; by default with two small partitions and one that covers both."""
    return a_device(
        identity,
        partitions=partitions or (a_partition(start=0), a_partition("2g.20gb", size=2), a_partition(start=1)),
        counters={f"memory-slice-{index}": 1 for index in range(slices)},
    )


def a_result(device: str, request: str = "main", **fields: Any) -> DeviceRequestAllocationResult:
    """An exclusive allocation of a device of this driver and node."""
    values: dict[str, Any] = {"request": request, "driver": DRIVER, "pool": NODE, "device": device}
    return DeviceRequestAllocationResult(**(values | fields))


def a_share(
    device: str, share_id: str, *, memory: str = "8Gi", cores: int = 1, slots: int = 1, **fields: Any
) -> DeviceRequestAllocationResult:
    """An allocation of a share of a device."""
    consumed = {"memory": memory, "cores": str(cores), "slots": str(slots)}
    return a_result(
        device,
        share_id=share_id,
        consumed_capacity={name: Quantity.parse(text) for name, text in consumed.items()},
        **fields,
    )


def a_config(
    parameters: Mapping[str, Any], *, source: str = "FromClaim", requests: Sequence[str] = (), driver: str = DRIVER
) -> DeviceAllocationConfiguration:
    """An opaque config as it stands in an allocation."""
    return DeviceAllocationConfiguration(
        source=source,
        requests=tuple(requests),
        opaque=OpaqueDeviceConfiguration(driver=driver, parameters=dict(parameters)),
    )


def device_config(**sharing: Any) -> dict[str, Any]:
    """The parameters of a DeviceConfig."""
    return {"apiVersion": "resource.dra-driver.io/v1alpha1", "kind": "DeviceConfig", "sharing": sharing}


def a_ref(uid: str = "uid-1", name: str = "claim-1") -> ClaimRef:
    """A claim as the kubelet names it."""
    return ClaimRef("default", name, uid)


def a_claim(
    *results: DeviceRequestAllocationResult,
    ref: ClaimRef | None = None,
    config: Sequence[DeviceAllocationConfiguration] = (),
) -> ResourceClaim:
    """An allocated claim."""
    ref = ref or a_ref()
    allocation = AllocationResult(devices=DeviceAllocationResult(results=results, config=tuple(config)))
    return ResourceClaim(
        metadata=ObjectMeta(name=ref.name, namespace=ref.namespace, uid=ref.uid),
        spec=ResourceClaimSpec(),
        status=ResourceClaimStatus(allocation=allocation),
    )


@dataclass
class FakeBackend:
    """A backend whose devices are what a test says; it remembers the partitions that exist."""

    devices: tuple[Device, ...] = ()
    name: str = "fake"
    partitions: set[str] = field(default_factory=set)
    time_slices: dict[str, Interval] = field(default_factory=dict)
    exclusive: set[str] = field(default_factory=set)
    broken: str = ""

    def read_inventory(self) -> Inventory:
        """What the test put there."""
        return Inventory(devices=self.devices)

    def wait_for_change(self, timeout_s: float) -> None:
        """Wait out the time: nothing is ever reported."""
        threading.Event().wait(timeout_s)

    def render_edits(self, device: Device, partition: Partition | None) -> ContainerEdits:
        """One device node, named after the device."""
        if self.broken:
            raise DeviceError(self.broken)
        name = device.name if partition is None else device.partition_name(partition)
        return ContainerEdits(device_nodes=(DeviceNode(path=f"/dev/fake/{name}"),))

    def apply_whole(self, device: Device) -> None:
        """Refuse while there are partitions of it."""
        if left := self.partitions & {device.partition_name(each) for each in device.partitions}:
            raise DeviceError(f"device {device.name}: has {left}")

    def apply_partition(self, device: Device, partition: Partition) -> None:
        """Note that the partition exists."""
        self.partitions.add(device.partition_name(partition))

    def undo_partition(self, device: Device, partition: Partition) -> None:
        """Note that it does not."""
        self.partitions.discard(device.partition_name(partition))

    def apply_time_slice(self, device: Device, interval: Interval) -> None:
        """Note the length of turns."""
        self.time_slices[device.name] = interval

    def undo_time_slice(self, device: Device) -> None:
        """Forget it."""
        self.time_slices.pop(device.name, None)

    def apply_exclusive_process(self, device: Device) -> None:
        """Note the mode."""
        self.exclusive.add(device.name)

    def undo_exclusive_process(self, device: Device) -> None:
        """Forget it."""
        self.exclusive.discard(device.name)
