"""How repeated Events become few writes: one Event that counts, and a budget of writes for each object.

The figures are those of Kubernetes' own clients: 25 writes about one object at once, then one every five minutes.
"""

from dataclasses import dataclass, replace
from typing import Any

from dra_driver.api.core_v1 import ObjectReference
from dra_driver.api.meta_v1 import Time
from dra_driver.api.name import SUBDOMAIN_MAX

LONGEST_MESSAGE = 1024

_BURST = 25.0
_SECONDS_PER_WRITE = 300.0
_SERIES_S = 3000.0  # an API server keeps an Event for an hour since its last change
_MOST_REMEMBERED = 4096


@dataclass(frozen=True, slots=True)
class Topic:
    """What makes two Events the same."""

    target: ObjectReference
    type: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Occurrence:
    """Something that happened `count` times between two moments."""

    topic: Topic
    first: Time
    last: Time
    count: int = 1

    def plus(self, later: "Occurrence") -> "Occurrence":
        """Add what happened later."""
        return replace(self, last=later.last, count=self.count + later.count)


@dataclass(frozen=True, slots=True)
class Series:
    """An Event that stands on the API server."""

    name: str
    count: int
    written_at: float


@dataclass(frozen=True, slots=True)
class _Budget:
    writes: float
    at: float


class SeriesBook:
    """Which Events stand on the API server, and how many writes each object has left; `now` is monotonic seconds."""

    def __init__(self) -> None:
        self._series: dict[Topic, Series] = {}
        self._budgets: dict[tuple[str, str, str, str], _Budget] = {}

    def series_of(self, topic: Topic, now: float) -> Series | None:
        """Return the Event to count up, if there is one that the API server still has."""
        series = self._series.get(topic)
        return series if series is not None and now - series.written_at < _SERIES_S else None

    def record(self, topic: Topic, name: str, count: int, now: float) -> None:
        """Remember an Event that was written."""
        self._series.pop(topic, None)
        self._series[topic] = Series(name, count, now)
        _trim(self._series)

    def take_budget(self, target: ObjectReference, now: float) -> bool:
        """Take one write from the budget of an object, if there is one left."""
        key = (target.kind, target.namespace, target.name, target.uid)
        before = self._budgets.pop(key, _Budget(_BURST, now))
        writes = min(_BURST, before.writes + (now - before.at) / _SECONDS_PER_WRITE)
        granted = writes >= 1.0
        self._budgets[key] = _Budget(writes - 1.0 if granted else writes, now)
        _trim(self._budgets)
        return granted


def build_message(text: str) -> str:
    """Cut a message to the bytes that the API server takes, between characters."""
    data = text.encode("utf-8", "replace")
    if len(data) <= LONGEST_MESSAGE:
        return data.decode()
    ellipsis = "…"
    return data[: LONGEST_MESSAGE - len(ellipsis.encode())].decode("utf-8", "ignore") + ellipsis


def build_name(target: ObjectReference, suffix: str) -> str:
    """Return the name of a new Event about an object."""
    return f"{target.name[: SUBDOMAIN_MAX - len(suffix) - 1].rstrip('.-')}.{suffix}"


def _trim(entries: dict[Any, Any]) -> None:
    """Forget the oldest."""
    while len(entries) > _MOST_REMEMBERED:
        del entries[next(iter(entries))]
