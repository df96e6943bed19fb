"""Whether devices are cut into partitions: a word for the node, and another one for single devices.

- `none`: devices are given out whole or in shares;
- `static`: the partitions that exist are given out as they are, none is made or removed;
- `dynamic`: every partition that is possible is offered, made when a claim that has it is prepared, and removed after.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, assert_never

from dra_driver.devices.model import Device, Partition
from dra_driver.devices.override import explain_overrides, find_override, parse_overrides


class PartitionMode(StrEnum):
    """What happens to a device's partitions."""

    NONE = "none"
    STATIC = "static"
    DYNAMIC = "dynamic"


DEFAULT_PARTITION_MODE: Final = PartitionMode.DYNAMIC
"""Every possible partition is a device, as long as nobody says otherwise: it costs nothing until a claim has one."""


_FLAG_OF: Final = "--partitions-of"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionPolicy:
    """The mode of a node's devices, and of those that differ, by device name, UUID or serial number."""

    default: PartitionMode = DEFAULT_PARTITION_MODE
    devices: Mapping[str, PartitionMode] = field(default_factory=dict)

    def find_mode(self, device: Device) -> PartitionMode:
        """Return the mode of a device."""
        return find_override(device, self.devices) or self.default


def parse_partition_policy(default: PartitionMode, overrides: Iterable[str]) -> PartitionPolicy:
    """Read overrides of the form `<device name, UUID or serial>=<mode>`. Raises SettingError, see `parse_overrides`."""
    devices = parse_overrides(overrides, PartitionMode, flag=_FLAG_OF, kind="mode")
    return PartitionPolicy(default=default, devices=devices)


def explain_policy(policy: PartitionPolicy, devices: Sequence[Device]) -> Iterator[str]:
    """Say what of a policy comes to nothing with these devices, as their modes leave them."""
    yield from explain_overrides(policy.devices, devices, flag=_FLAG_OF)
    for device in devices:
        if find_override(device, policy.devices) is not PartitionMode.DYNAMIC:
            continue
        if not device.partitions:
            yield f"{_FLAG_OF}: device {device.name}: it has no partitions, want one that can be cut now"
        elif device.has_permanent:
            yield f"{_FLAG_OF}: device {device.name}: an administrator has made partitions of it, it offers no others"


def plan_partitions(device: Device, mode: PartitionMode) -> Device:
    """Return the device with the partitions that its mode leaves it, of all that it has or could have.

    One that exists always stays, so that the claim that has it can be unprepared; it may not be offered any more.
    Once an administrator has made one, those are all that the device offers.
    """
    kept: Iterable[Partition]
    match mode:
        case PartitionMode.NONE:
            kept = (replace(each, offered=False) for each in device.partitions if each.uuid is not None)
        case PartitionMode.STATIC:
            kept = _existing(device)
        case PartitionMode.DYNAMIC if device.has_permanent:
            kept = _existing(device)
        case PartitionMode.DYNAMIC:
            return device
        case _:
            assert_never(mode)
    return replace(device, partitions=tuple(kept))


def _existing(device: Device) -> Iterator[Partition]:
    for partition in device.partitions:
        if partition.permanent:
            yield partition
        elif partition.uuid is not None:
            yield replace(partition, offered=False)
