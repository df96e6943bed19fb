"""List and watch: the objects of a selection, and then every change of them, for ever.

The stream survives everything that happens to a watch: its end, a cut or silent connection, an API server that is away,
a resource version that is too old, a line that is not understood. It resumes where it can, and lists again where not.
"""

import asyncio
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Generic, TypeAlias

import msgspec
import structlog

from dra_driver.api import codec
from dra_driver.api.meta_v1 import ObjectMeta, Status, Wire
from dra_driver.errors import ApiError, ApiUnavailableError, InvalidError
from dra_driver.kube.backoff import Backoff
from dra_driver.kube.client import ApiClient
from dra_driver.kube.resource import EVERYTHING, Resource, Selection, T
from dra_driver.kube.status import build_error

_LONGEST_RETRY_AFTER_S = 60.0


@dataclass(frozen=True, slots=True)
class Replaced(Generic[T]):
    """These are all the objects, as of `resource_version`; what was known before is void."""

    objects: tuple[T, ...]
    resource_version: str


@dataclass(frozen=True, slots=True)
class Applied(Generic[T]):
    """The object was created or changed."""

    object: T


@dataclass(frozen=True, slots=True)
class Deleted(Generic[T]):
    """The object is gone, or has left the selection; this is its last state, with the version of the deletion."""

    object: T


Change: TypeAlias = Replaced[T] | Applied[T] | Deleted[T]


@dataclass(frozen=True, slots=True)
class WatchTiming:
    """How patient a watch is.

    The server is asked to end a watch after a random time between `shortest_s` and `longest_s`. It sends a bookmark
    about every minute: after `silence_s` without a byte the connection counts as dead. A watch that ends before
    `healthy_s` is a failure. After `resumes` failures in a row the resource version is given up and everything is
    listed again, since the server may have lost it (etcd restored from a backup).
    """

    shortest_s: int = 300
    longest_s: int = 600
    silence_s: float = 150.0
    healthy_s: float = 5.0
    resumes: int = 5
    backoff: Backoff = Backoff()  # noqa: RUF009 - frozen


class _Event(msgspec.Struct, frozen=True):
    """A line of a watch."""

    type: str
    object: msgspec.Raw


class _Bookmark(Wire, frozen=True, kw_only=True):
    metadata: ObjectMeta


class Watch(Generic[T]):
    """One list-and-watch. `changes` may be consumed once at a time; consumed again it goes on with a new list.

    `interrupted` is called whenever a list or watch has failed, before it is tried again.
    """

    def __init__(  # noqa: PLR0913 - clock, sleep and chance are given by tests only
        self,
        client: ApiClient,
        resource: Resource[T],
        selection: Selection = EVERYTHING,
        *,
        interrupted: Callable[[], None] = lambda: None,
        timing: WatchTiming = WatchTiming(),
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._resource = resource
        self._selection = selection
        self._interrupted = interrupted
        self._timing = timing
        self._sleep = sleep
        self._chance = chance
        self._monotonic = monotonic
        self._log = structlog.get_logger("dra_driver.kube.watch").bind(resource=resource.plural)
        self._version = ""
        self._failures = 0
        self._resumes = 0

    async def changes(self) -> AsyncGenerator[Change[T], None]:
        """Yield Replaced first, and then what happens. Never ends and raises no ApiError; close it with `aclosing`."""
        self._version = ""
        while True:
            try:
                if not self._version:
                    listing = await self._client.list(self._resource, self._selection)
                    self._version, self._resumes = listing.resource_version, 0
                    yield Replaced(listing.items, listing.resource_version)
                async with aclosing(self._events()) as events:
                    async for change in events:
                        yield change
            except ApiError as error:
                await self._recover(error)

    async def _events(self) -> AsyncGenerator[Change[T], None]:
        """Yield the changes of one watch until it ends well; raises ApiError if it does not."""
        timing = self._timing
        timeout_s = timing.shortest_s + round((timing.longest_s - timing.shortest_s) * self._chance())
        started = self._monotonic()
        watch = self._client.watch(
            self._resource, self._selection, self._version, timeout_s=timeout_s, silence_s=timing.silence_s
        )
        async with watch as chunks:
            async for line in split_lines(chunks):
                change = self._read(line)
                self._failures = self._resumes = 0
                if change is not None:
                    yield change
        if self._monotonic() - started < timing.healthy_s:
            raise ApiUnavailableError(f"watch {self._resource.plural}: ended at once", reason="Ended")
        self._failures = self._resumes = 0

    def _read(self, line: bytes) -> Change[T] | None:
        """Decode a line and move the resource version on; None for a bookmark."""
        try:
            event = codec.decode(line, _Event)
            if event.type == "ERROR":
                status = codec.decode(event.object, Status)
                raise build_error(f"watch {self._resource.plural}", status.code, status)
            if event.type == "BOOKMARK":
                self._version = codec.decode(event.object, _Bookmark).metadata.resource_version
                return None
            value = codec.decode(event.object, self._resource.struct)
        except InvalidError as error:
            raise self._not_understood(str(error)) from error
        self._version = value.metadata.resource_version
        match event.type:
            case "ADDED" | "MODIFIED":
                return Applied(value)
            case "DELETED":
                return Deleted(value)
        raise self._not_understood(f"unknown event type {event.type!r}")

    def _not_understood(self, problem: str) -> ApiError:
        return ApiError(f"watch {self._resource.plural}: event not understood: {problem}", reason="Undecodable")

    async def _recover(self, error: ApiError) -> None:
        """Tell, and wait before the next attempt; forget the resource version when it cannot be resumed from."""
        self._interrupted()
        retry_after_s = 0.0
        if isinstance(error, ApiUnavailableError):
            retry_after_s = min(error.retry_after_s or 0.0, _LONGEST_RETRY_AFTER_S)
        if not isinstance(error, ApiUnavailableError) or self._resumes >= self._timing.resumes:
            self._version = ""
        delay_s = max(self._timing.backoff.delay_s(self._failures, self._chance()), retry_after_s)
        self._failures += 1
        self._resumes += 1
        self._log.warning(
            "watch interrupted", error=str(error), resumes=bool(self._version), retry_in_s=round(delay_s, 3)
        )
        await self._sleep(delay_s)


async def split_lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Join chunks and cut them into lines of any length, without their ends; empty lines are left out.

    Raises ApiUnavailableError when the last line has no end: it was cut, and may be less than it looks.
    """
    parts: list[bytes] = []
    async for chunk in chunks:
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            parts.append(end)
            line = b"".join(parts)
            parts.clear()
            if line:
                yield line
        if rest:
            parts.append(rest)
    if parts:
        raise ApiUnavailableError("watch: ended in the middle of an event", reason="Cut")
