"""Kubernetes Events: what a person must know about an object, shown by `kubectl describe`.

They are core/v1 Events that count, since those carry the times and the source that `kubectl describe` shows.
"""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from enum import StrEnum
from random import random

import msgspec
import structlog

from dra_driver.api.core_v1 import Event, EventSource, ObjectReference
from dra_driver.api.meta_v1 import ObjectMeta, render_time
from dra_driver.errors import ApiConflictError, ApiError, ApiNotFoundError, ApiUnavailableError
from dra_driver.kube.backoff import Backoff
from dra_driver.kube.client import ApiClient
from dra_driver.kube.event_series import Occurrence, SeriesBook, Topic, build_message, build_name
from dra_driver.kube.resource import EVENTS, KubernetesObject

_MOST_WAITING = 256
_ATTEMPTS = 12
_BACKOFF = Backoff(initial_s=0.5, max_s=15.0)
_CLUSTER_SCOPED_NAMESPACE = "default"


class EventType(StrEnum):
    """`Warning` wants somebody to look."""

    NORMAL = "Normal"
    WARNING = "Warning"


def reference_to(value: KubernetesObject) -> ObjectReference:
    """Return the reference by which an Event is about an object."""
    metadata = value.metadata
    return ObjectReference(
        api_version=value.api_version,
        kind=value.kind,
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
    )


def reference_to_node(name: str) -> ObjectReference:
    """Return the reference by which an Event is about a Node: like the kubelet's, with the name as UID.

    `kubectl describe node` looks for that.
    """
    return ObjectReference(api_version="v1", kind="Node", name=name, uid=name)


class EventRecorder:
    """Records Events. `record` only takes note; someone runs `run`, which writes.

    `component` is the driver's name, `host` the node. `dropped` counts what was not written: too much waiting, an
    object over its budget, an API server that was away for minutes or refused.
    """

    def __init__(  # noqa: PLR0913 - clock, sleep and chance are given by tests only
        self,
        client: ApiClient,
        *,
        component: str,
        host: str,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        chance: Callable[[], float] = random,
    ) -> None:
        self.dropped = 0
        self._client = client
        self._source = EventSource(component=component, host=host)
        self._clock = clock
        self._monotonic = monotonic
        self._sleep = sleep
        self._chance = chance
        self._book = SeriesBook()
        self._waiting: dict[Topic, Occurrence] = {}
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._log = structlog.get_logger("dra_driver.kube.event")

    def record(
        self,
        target: ObjectReference,
        reason: str,
        message: str,
        *,
        type: EventType = EventType.NORMAL,  # noqa: A002 - as in the API
    ) -> None:
        """Take note of an Event, to be written soon. Never waits and never raises; call it in the event loop's thread.

        `reason` is one word in UpperCamelCase; a message of more than 1024 bytes is cut.
        """
        topic = Topic(msgspec.structs.replace(target, resource_version=""), type.value, reason, build_message(message))
        now = render_time(self._clock())
        occurrence = Occurrence(topic, now, now)
        earlier = self._waiting.get(topic)
        if earlier is None and len(self._waiting) >= _MOST_WAITING:
            self.dropped += 1
            return
        self._waiting[topic] = earlier.plus(occurrence) if earlier else occurrence
        self._idle.clear()
        self._wake.set()

    async def idle(self) -> None:
        """Wait until everything is written or dropped, as before the process ends. Bound it with a timeout."""
        await self._idle.wait()

    async def run(self) -> None:
        """Write what is recorded, until cancelled. May be run again after an error, which costs one Event."""
        self._wake.set()
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                occurrence = self._waiting.pop(next(iter(self._waiting)))
                await self._deliver(occurrence)
            self._idle.set()

    async def _deliver(self, occurrence: Occurrence) -> None:
        if not self._book.take_budget(occurrence.topic.target, self._monotonic()):
            self.dropped += occurrence.count
            return
        # One name for all attempts: a create whose answer was lost then conflicts with itself, and is done.
        name = build_name(occurrence.topic.target, secrets.token_hex(8))
        for attempt in range(_ATTEMPTS):
            try:
                await self._write(occurrence, name)
            except ApiUnavailableError as error:
                problem: ApiError = error
                await self._sleep(_BACKOFF.delay_s(attempt, self._chance()))
            except ApiError as error:
                problem = error
                break
            else:
                return
        self.dropped += occurrence.count
        self._log.warning("event dropped", reason=occurrence.topic.reason, error=str(problem))

    async def _write(self, occurrence: Occurrence, name: str) -> None:
        topic, now = occurrence.topic, self._monotonic()
        namespace = topic.target.namespace or _CLUSTER_SCOPED_NAMESPACE
        if (series := self._book.series_of(topic, now)) is not None:
            count = series.count + occurrence.count
            patch = {"count": count, "lastTimestamp": occurrence.last}
            try:
                await self._client.patch(EVENTS, series.name, patch, namespace=namespace)
            except ApiNotFoundError:
                pass  # expired or deleted: tell it as a new one
            else:
                self._book.record(topic, series.name, count, now)
                return
        with suppress(ApiConflictError):  # an earlier attempt arrived, and its answer did not
            await self._client.create(EVENTS, self._event(occurrence, name, namespace))
        self._book.record(topic, name, occurrence.count, now)

    def _event(self, occurrence: Occurrence, name: str, namespace: str) -> Event:
        topic = occurrence.topic
        return Event(
            metadata=ObjectMeta(name=name, namespace=namespace),
            involved_object=topic.target,
            type=topic.type,
            reason=topic.reason,
            message=topic.message,
            source=self._source,
            first_timestamp=occurrence.first,
            last_timestamp=occurrence.last,
            count=occurrence.count,
            reporting_component=self._source.component,
            reporting_instance=self._source.host,
        )
