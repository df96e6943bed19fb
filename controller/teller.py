"""Telling people why a Pod waits: Events on the Pod and on its claims, each text once, and none for what passes by."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

import structlog

from controller.decision import Code, Refuse
from dra_driver.api.core_v1 import ObjectReference, Pod
from dra_driver.kube.event import EventType, reference_to
from dra_driver.kube.resource import KubernetesObject, ObjectKey, key_of

log = structlog.get_logger(__name__)

REASON: Final = "DevicesDoNotFit"
_AGAIN_S: Final = 3600.0
_CLAIMS_MAX: Final = 16  # a Pod with hundreds leaves others a word
_REMEMBERED_MAX: Final = 10_000


class EventSink(Protocol):
    """Where Events go."""

    def record(self, target: ObjectReference, reason: str, message: str, *, type: EventType) -> None:  # noqa: A002 - its name in the API
        """Take note of an Event."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a refusal must last before it is told, in seconds; what will mostly pass by itself, longer.

    A Pod's reason is looked for again after `again_s` at the earliest.
    """

    refused_s: float = 1.0
    missing_s: float = 10.0
    again_s: float = 10.0


@dataclass(slots=True, eq=False)
class Teller:
    """Tells what stays true for a while. `explain` finds the words when it is time to tell; someone runs `run`."""

    events: EventSink
    explain: Callable[[Pod, Refuse], str]
    patience: Patience = field(default_factory=Patience)
    monotonic: Callable[[], float] = time.monotonic
    _refusals: dict[ObjectKey, tuple[Pod, Refuse]] = field(default_factory=dict)
    _timers: dict[ObjectKey, asyncio.TimerHandle] = field(default_factory=dict)
    _due: dict[ObjectKey, None] = field(default_factory=dict)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _explained: dict[ObjectKey, float] = field(default_factory=dict)
    _told: dict[tuple[str, str], tuple[str, float]] = field(default_factory=dict)

    def refuse(self, pod: Pod, refusal: Refuse) -> None:
        """Take note that a Pod has to wait, and why."""
        key = key_of(pod)
        self._refusals[key] = (pod, refusal)
        if key not in self._timers and key not in self._due:
            is_passing = refusal.code in (Code.CLAIM_MISSING, Code.GATED, Code.UNDECIDED)
            delay_s = self.patience.missing_s if is_passing else self.patience.refused_s
            since_s = self.monotonic() - self._explained.get(key, -self.patience.again_s)
            delay_s = max(delay_s, self.patience.again_s - since_s)
            self._timers[key] = asyncio.get_running_loop().call_later(delay_s, self._ring, key)

    def clear(self, key: ObjectKey) -> None:
        """Take note that a Pod has not to wait, or is gone."""
        for each in (self._refusals, self._due, self._explained):
            each.pop(key, None)
        handle = self._timers.pop(key, None)
        if handle is not None:
            handle.cancel()

    def clear_all(self) -> None:
        """Forget everything but what was told."""
        for key in {*self._refusals, *self._explained}:
            self.clear(key)

    async def run(self) -> None:
        """Tell, one after the other, until cancelled; at least half of the time is left to others."""
        while True:
            while not self._due:
                self._wake.clear()
                await self._wake.wait()
            key = next(iter(self._due))
            del self._due[key]
            started = self.monotonic()
            self._explained[key] = started
            # What was told is not kept: it names nodes, of which there are many.
            self._tell(*self._refusals.pop(key))
            await asyncio.sleep(self.monotonic() - started)

    def warn(self, target: KubernetesObject, reason: str, text: str) -> None:
        """Record an Event, unless the same was recorded for the object within the hour."""
        topic, now = (target.metadata.uid, reason), self.monotonic()
        told, at = self._told.pop(topic, ("", -_AGAIN_S))
        if told == text and now - at < _AGAIN_S:
            self._told[topic] = (told, at)
            return
        self._told[topic] = (text, now)
        if len(self._told) > _REMEMBERED_MAX:
            del self._told[next(iter(self._told))]
        self.events.record(reference_to(target), reason, text, type=EventType.WARNING)
        log.info("told", kind=target.kind, name=str(key_of(target)), reason=reason, text=text)

    def _ring(self, key: ObjectKey) -> None:
        self._timers.pop(key, None)
        self._due[key] = None
        self._wake.set()

    def _tell(self, pod: Pod, refusal: Refuse) -> None:
        text = self.explain(pod, refusal)
        targets: tuple[KubernetesObject, ...] = (pod, *refusal.claims[:_CLAIMS_MAX])
        for target in targets if text else ():
            self.warn(target, REASON, text)
