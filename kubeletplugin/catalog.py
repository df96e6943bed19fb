"""All devices of the node at one moment, whichever backend found them, by the name that slices give them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from dra_driver.devices.backend import Backend
from dra_driver.devices.model import Device, DeviceName, Inventory, LeftOut, Partition


@dataclass(frozen=True, slots=True)
class Entry:
    """A whole device, or one of its partitions, and the backend that it belongs to."""

    backend: Backend
    device: Device
    partition: Partition | None = None

    @property
    def name(self) -> DeviceName:
        """The name that it is published under."""
        return self.device.name if self.partition is None else self.device.partition_name(self.partition)


@dataclass(frozen=True, slots=True)
class Catalog:
    """An immutable snapshot of the node's devices. Where a name occurs twice, the first one has it."""

    inventory: Inventory = field(default_factory=Inventory)
    entries: Mapping[DeviceName, Entry] = field(default_factory=dict)

    def find(self, name: str) -> Entry | None:
        """Return the device or partition of that name, if it is there."""
        return self.entries.get(DeviceName(name))


def build_catalog(inventories: Iterable[tuple[Backend, Inventory]]) -> Catalog:
    """Join what the backends see, in the order of the backends."""
    devices: list[Device] = []
    left_out: list[LeftOut] = []
    entries: dict[DeviceName, Entry] = {}
    for backend, inventory in inventories:
        devices += inventory.devices
        left_out += inventory.left_out
        for entry in _entries(backend, inventory):
            entries.setdefault(entry.name, entry)
    return Catalog(Inventory(devices=tuple(devices), left_out=tuple(left_out)), entries)


def _entries(backend: Backend, inventory: Inventory) -> Iterator[Entry]:
    for device in inventory.devices:
        yield Entry(backend, device)
        for partition in device.partitions:
            yield Entry(backend, device, partition)
