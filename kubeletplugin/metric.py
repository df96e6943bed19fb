"""The metrics of preparing claims. All series exist from the start, failures are counted as successes are."""

import contextlib
import time
from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from kubeletplugin.background import Task

OPERATIONS = ("prepare", "unprepare")
RESULTS = ("success", "error")

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 45)


class Operation:
    """One prepare or unprepare that is being measured."""

    def __init__(self) -> None:
        self.result = "success"
        self._started = time.monotonic()

    @property
    def duration_s(self) -> float:
        """Seconds since it began."""
        return round(time.monotonic() - self._started, 6)

    def failed(self) -> None:
        """Note that it came to nothing."""
        self.result = "error"


class Metrics:
    """Counts and times the calls of the kubelet."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._total = {
            name: Counter(
                f"dra_kubeletplugin_{name}", f"Claims that {name} was called for.", ["result"], registry=registry
            )
            for name in OPERATIONS
        }
        self._seconds = {
            name: Histogram(
                f"dra_kubeletplugin_{name}_duration_seconds",
                f"How long {name} of one claim took.",
                ["result"],
                buckets=_BUCKETS,
                registry=registry,
            )
            for name in OPERATIONS
        }
        self.prepared_claims = Gauge(
            "dra_kubeletplugin_prepared_claims", "Claims that hold devices of this node.", registry=registry
        )
        self.claim_statuses = Counter(
            "dra_kubeletplugin_claim_statuses",
            "Writes of what status.devices of claims says; each failed attempt is an error.",
            ["result"],
            registry=registry,
        )
        self.corrupt_records = Counter(
            "dra_kubeletplugin_corrupt_records", "Claim records that could not be read.", registry=registry
        )
        self.background_failures = Counter(
            "dra_kubeletplugin_background_failures",
            "How often what goes on beside the calls of the kubelet was interrupted; it begins anew.",
            ["task"],
            registry=registry,
        )
        self.unhealthy_devices = Gauge(
            "dra_kubeletplugin_unhealthy_devices", "Whole devices that should not be used.", registry=registry
        )
        self._device_healthy = Gauge(
            "dra_kubeletplugin_device_healthy",
            "1 while the whole device may be used, 0 while it is unhealthy.",
            ["device"],
            registry=registry,
        )
        self.damped_health_changes = Counter(
            "dra_kubeletplugin_damped_health_changes",
            "Changes of devices' health that were held back, since a device must stay well to count as well.",
            registry=registry,
        )
        self.registered = Gauge(
            "dra_kubeletplugin_registered", "1 while the kubelet has accepted the plugin.", registry=registry
        )
        for task in Task:
            self.background_failures.labels(task)
        for result in RESULTS:
            self.claim_statuses.labels(result)
        for name in OPERATIONS:
            for result in RESULTS:
                self._total[name].labels(result)
                self._seconds[name].labels(result)

    def set_health(self, healthy: Mapping[str, bool]) -> None:
        """Say which devices there are, and whether they are well. Those that are gone lose their series."""
        self._device_healthy.clear()
        for device, is_healthy in healthy.items():
            self._device_healthy.labels(device).set(is_healthy)
        self.unhealthy_devices.set(len(healthy) - sum(healthy.values()))

    @contextlib.contextmanager
    def operation(self, name: str) -> Iterator[Operation]:
        """Measure one claim's prepare or unprepare."""
        operation = Operation()
        try:
            yield operation
        except BaseException:
            operation.failed()
            raise
        finally:
            self._total[name].labels(operation.result).inc()
            self._seconds[name].labels(operation.result).observe(operation.duration_s)
