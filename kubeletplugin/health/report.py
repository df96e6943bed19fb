"""What the kubelet is told of each device's health, made from what the plugin knows of its devices. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from dra_driver.devices.model import Device, DeviceName, Inventory

MESSAGE_LIMIT = 1024
"""Bytes of a message; the kubelet cuts a longer one, wherever that falls (KEP-4680)."""

DEVICE_LIMIT = 16_384
"""The most devices of one driver that the kubelet takes note of (KEP-4680)."""

GONE = "not found on this node any more"


class HealthStatus(StrEnum):
    """The kubelet's words for a device's health."""

    UNKNOWN = "UNKNOWN"
    HEALTHY = "HEALTHY"
    UNHEALTHY = "UNHEALTHY"


@dataclass(frozen=True, slots=True)
class DeviceReport:
    """The health of one published name. `message` is for people, at most `MESSAGE_LIMIT` bytes."""

    device: DeviceName
    status: HealthStatus
    message: str = ""


def build_reports(inventory: Inventory, before: Iterable[DeviceReport] = ()) -> tuple[DeviceReport, ...]:
    """Report on every device and partition, in physical order; a partition is as well as its device.

    What was reported `before` and is not there any more is unknown from now on: the kubelet never tells Pods that a
    report has become too old, so without a last word a lost device would stay as it was for ever.
    """
    reports = tuple(_device_reports(inventory))
    names = {report.device for report in reports}
    gone = (DeviceReport(each.device, HealthStatus.UNKNOWN, GONE) for each in before if each.device not in names)
    return (*reports, *gone)[:DEVICE_LIMIT]


def build_unknown(reports: Iterable[DeviceReport], message: str) -> tuple[DeviceReport, ...]:
    """Report on the same devices that nothing is known of them now."""
    return tuple(DeviceReport(each.device, HealthStatus.UNKNOWN, message) for each in reports)


def _device_reports(inventory: Inventory) -> Iterator[DeviceReport]:
    for device in inventory.devices:
        status, message = _judge(device)
        yield DeviceReport(device.name, status, message)
        for partition in device.partitions:
            yield DeviceReport(device.partition_name(partition), status, message)


def _judge(device: Device) -> tuple[HealthStatus, str]:
    if device.health is None:
        return HealthStatus.HEALTHY, ""
    return HealthStatus.UNHEALTHY, _cut(f"{device.health.reason}: {device.health.message}")


def _cut(message: str) -> str:
    """Shorten a message to the limit, between two characters."""
    text = message.encode("utf-8", "replace")
    if len(text) <= MESSAGE_LIMIT:
        return text.decode()
    return text[: MESSAGE_LIMIT - 3].decode("utf-8", "ignore") + "..."
