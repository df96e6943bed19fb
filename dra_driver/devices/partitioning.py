"""Whether devices are cut into partitions: a word for the node, and another one for single devices.

- `none`: devices are given out whole or in shares;
- `static`: the partitions that exist are given out as they are, none is made or removed;
- `dynamic`: every partition that is possible is offered, made when a claim that has it is prepared, and removed after.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, assert_never

from dra_driver.devices.model import Device, Partition
from dra_driver.errors import SettingError
from dra_driver.suggestion import explain_meant


class PartitionMode(StrEnum):
    """What happens to a device's partitions."""

    NONE = "none"
    STATIC = "static"
    DYNAMIC = "dynamic"


DEFAULT_PARTITION_MODE: Final = PartitionMode.DYNAMIC
"""Every possible partition is a device, as long as nobody says otherwise: it costs nothing until a claim has one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionPolicy:
    """The mode of a node's devices, and of those that differ, by device name, UUID or serial number."""

    default: PartitionMode = DEFAULT_PARTITION_MODE
    devices: Mapping[str, PartitionMode] = field(default_factory=dict)

    def find_mode(self, device: Device) -> PartitionMode:
        """The mode of a device: its name counts before its UUID, that before its serial number."""
        for key in (device.name, device.uuid, device.serial):
            if key is not None and key in self.devices:
                return self.devices[key]
        return self.default


def parse_partition_policy(default: PartitionMode, overrides: Iterable[str]) -> PartitionPolicy:
    """Read overrides of the form `<device name, UUID or serial>=<mode>`.

    Raises SettingError that names everything that is wrong; the same device may be named twice if it says the same.
    """
    devices: dict[str, PartitionMode] = {}
    problems: list[str] = []
    for text in overrides:
        device, _, word = text.rpartition("=")
        mode = _MODES.get(word)
        if not device:
            problems.append(f"{text!r}: want <device name or UUID>=<mode>")
        elif mode is None:
            problems.append(f"{text!r}: unknown mode {word!r}, want {_KNOWN}{explain_meant(word, _MODES)}")
        elif devices.setdefault(device, mode) is not mode:
            problems.append(f"{text!r}: {device!r} is {devices[device]} already, want one mode a device")
    if problems:
        raise SettingError("; ".join(f"--partitions-of: {problem}" for problem in problems))
    return PartitionPolicy(default=default, devices=devices)


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


_MODES: Final = {mode.value: mode for mode in PartitionMode}
_KNOWN: Final = " or ".join(map(repr, _MODES))
