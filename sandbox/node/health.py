"""What a kubelet remembers of devices' health, and what it writes of that into the status of a container. Pure.

Source: kubernetes/kubernetes pkg/kubelet/cm/dra, healthinfo.go and UpdateAllocatedResourcesStatus (KEP-4680).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sandbox.node.claim_record import ClaimRecord, PreparedDevice
from sandbox.node.pod import Container

UNKNOWN: Final = "Unknown"
_TIMEOUT_S: Final = 30.0

DeviceKey = tuple[str, str, str]
"""Driver, pool and device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceHealth:
    """What a driver says of a device: `Healthy`, `Unhealthy` or `Unknown`, for so many seconds; 0 is 30."""

    pool: str
    device: str
    health: str
    message: str = ""
    timeout_s: float = 0.0


class HealthCache:
    """What drivers said last. `now` is in seconds of a clock that never jumps."""

    def __init__(self) -> None:
        self._known: dict[DeviceKey, tuple[DeviceHealth, float]] = {}

    def update(self, driver: str, reports: Iterable[DeviceHealth], now: float) -> frozenset[DeviceKey]:
        """Take in a report, whose age counts from now. Returns the devices of which it says something new.

        A device that is left out keeps what was said of it until that is too old.
        """
        changed = set()
        for report in reports:
            key = (driver, report.pool, report.device)
            before = self._known.get(key)
            if before is None or before[0] != report:
                changed.add(key)
            self._known[key] = (report, now)
        for key, (report, since) in tuple(self._known.items()):
            if key[0] == driver and now - since > _timeout_s(report):
                del self._known[key]
                changed.add(key)
        return frozenset(changed)

    def forget(self, driver: str) -> None:
        """Forget all that a driver said: its stream has ended."""
        self._known = {key: value for key, value in self._known.items() if key[0] != driver}

    def find(self, key: DeviceKey, now: float) -> tuple[str, str]:
        """Return health and message of a device; unknown if nothing was said lately."""
        report, since = self._known.get(key, (None, now))
        if report is None or now - since > _timeout_s(report):
            return UNKNOWN, ""
        return report.health, report.message


def build_allocated_resources(
    container: Container, records: Mapping[str, ClaimRecord], cache: HealthCache, now: float
) -> list[dict[str, Any]]:
    """Build `allocatedResourcesStatus` of a container; `records` are by the name that the Pod has for the claim."""
    found: dict[str, list[dict[str, Any]]] = {}
    for use in container.resources.claims:
        record = records.get(use.name)
        entries: dict[str, dict[str, Any]] = {}
        for driver, devices in record.devices.items() if record is not None else ():
            for device in devices:
                if not use.request or not device.requests or use.request.partition("/")[0] in device.requests:
                    entry = _build_entry(driver, device, cache, now)
                    entries.setdefault(entry["resourceID"], entry)
        name = f"claim:{use.name}/{use.request}" if use.request else f"claim:{use.name}"
        if entries:
            found[name] = list(entries.values())
    return [{"name": name, "resources": resources} for name, resources in found.items()]


def _build_entry(driver: str, device: PreparedDevice, cache: HealthCache, now: float) -> dict[str, Any]:
    health, message = cache.find((driver, device.pool, device.device), now)
    named = device.cdi_ids[0] if device.cdi_ids else f"{driver}/{device.pool}/{device.device}"
    return {"resourceID": named, "health": health} | ({"message": message} if message else {})


def _timeout_s(report: DeviceHealth) -> float:
    return report.timeout_s if report.timeout_s > 0 else _TIMEOUT_S
