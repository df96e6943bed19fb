"""What a person is told about publishing: Events on the Node, log lines and metrics, each once until it changes."""

from collections.abc import Callable, Iterable
from typing import Final

import structlog

from dra_driver.allocator import Allocator
from dra_driver.api.resource_v1 import ResourceSlice
from dra_driver.devices.model import LeftOut
from dra_driver.kube.event import EventType, reference_to_node
from kubeletplugin.publish.coexistence import OtherOwner
from kubeletplugin.publish.diff import SyncPlan
from kubeletplugin.publish.drop import DroppedField
from kubeletplugin.publish.feature import Features
from kubeletplugin.publish.layout import Pool, PoolOwner
from kubeletplugin.publish.metric import PublishMetrics
from kubeletplugin.publish.negotiation import Terms
from kubeletplugin.publish.store import EventSink

log = structlog.get_logger(__name__)

_UNTAINTED: Final = {
    Allocator.SCHEDULER: "unhealthy devices are not published",
    Allocator.CONTROLLER: "no device of this node is published, since they are the controller's",
}


class Reporter:
    """Remembers what was told. `now` gives the Unix time in seconds."""

    def __init__(self, events: EventSink, metrics: PublishMetrics, now: Callable[[], float]) -> None:
        self._events = events
        self._metrics = metrics
        self._now = now
        self._left_out: frozenset[LeftOut] = frozenset()
        self._not_shareable: frozenset[LeftOut] = frozenset()
        self._others: frozenset[OtherOwner] = frozenset()
        self._dropped: frozenset[DroppedField] = frozenset()
        self._failure = ""
        self._may_write = True

    def report_turn(self, *, may_write: bool) -> None:
        """Tell whether it is this process that keeps the slices."""
        if may_write != self._may_write:
            self._may_write = may_write
            log.info("publishing again" if may_write else "publishing left to a newer plugin of this node")

    def report_written(self, pool: Pool, plan: SyncPlan) -> None:
        """Tell that a plan was carried out."""
        log.info(
            "pool published",
            driver=pool.owner.driver,
            pool=pool.name,
            allocator=pool.owner.allocator.value,
            generation=plan.generation,
            devices=pool.device_count,
            slices=len(pool.slices),
            created=len(plan.creates),
            updated=len(plan.updates),
            deleted=len(plan.deletes),
        )

    def report_published(self, pool: Pool, generation: int, terms: Terms) -> None:
        """Tell that the stored pool is complete and as it should be."""
        self._failure = ""
        self._report_dropped(pool.owner, terms)
        self._report_left_out(pool.owner, pool.left_out)
        self._report_not_shareable(pool.owner, pool.not_shareable)
        self._report_others(pool.owner, pool.others)
        self._metrics.devices.set(pool.device_count)
        self._metrics.left_out_devices.set(len(pool.left_out))
        self._metrics.slices.set(len(pool.slices))
        self._metrics.generation.set(generation)
        self._metrics.last_timestamp_seconds.set(self._now())

    def report_undeleted(self, item: ResourceSlice, error: Exception) -> None:
        """Tell that an obsolete slice stays, since this identity may not delete it."""
        log.error("obsolete slice not deleted", slice=item.metadata.name, error=str(error))

    def report_first(self, duration_s: float) -> None:
        """Tell how long the first publication took."""
        self._metrics.first_seconds.set(duration_s)

    def report_attempt(self, *, duration_s: float, succeeded: bool) -> None:
        """Count an attempt."""
        result = "success" if succeeded else "error"
        self._metrics.publishes.labels(result).inc()
        self._metrics.duration_seconds.labels(result).observe(duration_s)

    def report_retry(self, error: Exception, delay_s: float) -> None:
        """Tell that the API server is to be tried again."""
        log.warning("pool not published", error=str(error), retry_in_s=round(delay_s, 3))

    def report_failure(self, owner: PoolOwner, error: Exception, delay_s: float) -> None:
        """Tell that the API server does not accept what is published, which a person must mend."""
        log.error("pool refused", error=str(error), retry_in_s=round(delay_s, 3))
        if str(error) != self._failure:
            self._failure = str(error)
            self._warn(owner, "PublishFailed", f"devices of this node are not up to date: {error}")

    def _report_left_out(self, owner: PoolOwner, left_out: Iterable[LeftOut]) -> None:
        told, self._left_out = self._left_out, frozenset(left_out)
        for item in _sorted(self._left_out - told):
            log.warning("device left out", subject=item.subject, error=item.problem)
            self._warn(owner, "DeviceLeftOut", f"left out {item.subject}: {item.problem}")

    def _report_not_shareable(self, owner: PoolOwner, not_shareable: Iterable[LeftOut]) -> None:
        told, self._not_shareable = self._not_shareable, frozenset(not_shareable)
        for item in _sorted(self._not_shareable - told):
            log.warning("device not shareable", device=item.subject, error=item.problem)
            self._warn(
                owner, "DeviceNotShareable", f"device {item.subject} is given to one claim at a time: {item.problem}"
            )

    def _report_others(self, owner: PoolOwner, others: Iterable[OtherOwner]) -> None:
        told, self._others = self._others, frozenset(others)
        for other in sorted(self._others - told):
            log.warning("devices in use by another", vendor=other.vendor, owner=other.name)
            self._warn(
                owner,
                "DevicesInUse",
                f"devices of {other.vendor} are {other}, and not given to new claims until that ends; "
                "remove it from this node, or this driver",
            )
        taken = {other.vendor for other in self._others}
        for other in sorted(other for other in told if other.vendor not in taken):
            log.info("devices not in use by another any more", vendor=other.vendor, owner=other.name)
            self._record(
                owner,
                "DevicesNotInUse",
                f"devices of {other.vendor} may be used again: no longer {other}",
                EventType.NORMAL,
            )

    def _report_dropped(self, owner: PoolOwner, terms: Terms) -> None:
        self._metrics.dropped_fields.set(len(terms.dropped))
        if terms.dropped == self._dropped:
            return
        self._dropped = terms.dropped
        if not terms.dropped:
            log.info("fields kept again")
            return
        fields = sorted(terms.dropped, key=lambda field: field.path)
        gates = sorted({field.gate for field in fields if field.gate})
        log.error("fields dropped", fields=[field.path for field in fields], gates=gates)
        self._warn(owner, "FieldsDropped", render_dropped(fields, terms.features, owner.allocator))

    def _warn(self, owner: PoolOwner, reason: str, message: str) -> None:
        self._record(owner, reason, message, EventType.WARNING)

    def _record(self, owner: PoolOwner, reason: str, message: str, event_type: EventType) -> None:
        self._events.record(reference_to_node(owner.node_name), reason, message, type=event_type)


def _sorted(items: Iterable[LeftOut]) -> list[LeftOut]:
    return sorted(items, key=lambda item: (item.subject, item.problem))


def render_dropped(
    fields: Iterable[DroppedField], features: Features, allocator: Allocator = Allocator.SCHEDULER
) -> str:
    """Say which fields are lost, what to do about it, and what it means until then."""
    fields = tuple(fields)
    gates = sorted({str(field.gate) for field in fields if field.gate})
    parts = [f"the API server does not keep {', '.join(field.path for field in fields)}"]
    if gates:
        noun = "feature gate" if len(gates) == 1 else "feature gates"
        parts.append(f"enable the {noun} {', '.join(gates)} in kube-apiserver, kube-scheduler and kubelet")
    lost = [
        text
        for kept, text in (
            (features.sharing, "a device is given to one claim at a time"),
            (features.partitions, "devices are not partitioned on demand"),
            (features.taints, _UNTAINTED[allocator]),
        )
        if not kept
    ]
    if lost:
        parts.append(f"until then {', '.join(lost)}")
    return "; ".join(parts)
