"""Which devices fell ill, or recovered, between two looks at them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dra_driver.devices.model import DeviceName, Health, Inventory


@dataclass(frozen=True, slots=True)
class HealthChange:
    """A device whose health is another one now; None is well."""

    device: DeviceName
    health: Health | None


def diff_health(
    before: Inventory, after: Inventory, told: Mapping[DeviceName, Health] | None = None
) -> Iterator[HealthChange]:
    """Yield what changed, in physical order. A new device counts as well before; one that is gone is left out.

    `told` is what was said of new devices by a process before.
    """
    known: dict[DeviceName, Health | None] = {**(told or {})}
    known |= {device.name: device.health for device in before.devices}
    for device in after.devices:
        if device.health != known.get(device.name):
            yield HealthChange(device.name, device.health)
