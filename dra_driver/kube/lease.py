"""Leader election: of several replicas one leads, by a Lease, and none while another might still believe it does.

A leader that cannot renew in time (the API server is away, the process was stopped or the machine asleep) ends what it
leads before another one may begin. What it writes goes through a client that is guarded by `LeaderElection.confirm`, so
that a process that wakes up writes nothing before it has looked at the clock.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Coroutine
from datetime import UTC, datetime
from typing import Any, Protocol

import structlog

from dra_driver.api.coordination_v1 import Lease
from dra_driver.api.meta_v1 import MicroTime, ObjectMeta
from dra_driver.errors import (
    ApiConflictError,
    ApiError,
    ApiNotFoundError,
    ApiUnavailableError,
    LeadershipLostError,
)
from dra_driver.kube.leadership import Sighting, Terms, find_holder, plan_bid, plan_release, plan_sighting
from dra_driver.kube.resource import LEASES, Resource

Lead = Callable[[], Coroutine[Any, Any, None]]


class LeaseClient(Protocol):
    """The requests that are made: `get`, `create` and `update` on one Lease."""

    async def get(self, resource: Resource[Lease], name: str, *, namespace: str = "") -> Lease:
        """Read the lease."""
        ...

    async def create(self, resource: Resource[Lease], value: Lease) -> Lease:
        """Create the lease."""
        ...

    async def update(self, resource: Resource[Lease], value: Lease) -> Lease:
        """Replace the lease if it has not changed."""
        ...


def boot_time() -> float:
    """Return seconds since boot, those included in which the machine was asleep."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class LeaderElection:
    """One candidate for one Lease. `identity` must be of this process alone, as a Pod's name is.

    `client` must not be the guarded one; it needs `get`, `create` and `update` on `leases`. `clock` gives seconds that
    go on while the machine sleeps.
    """

    def __init__(  # noqa: PLR0913 - clock, sleep and chance are given by tests only
        self,
        client: LeaseClient,
        *,
        namespace: str,
        name: str,
        identity: str,
        lease_duration_s: float = 15.0,
        renew_deadline_s: float = 10.0,
        retry_period_s: float = 2.0,
        clock: Callable[[], float] = boot_time,
        wall: Callable[[], datetime] = lambda: datetime.now(UTC),
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._client = client
        self._metadata = ObjectMeta(namespace=namespace, name=name)
        self._identity = identity
        self._terms = Terms(lease_duration_s, renew_deadline_s, retry_period_s)
        self._clock = clock
        self._wall = wall
        self._sleep = sleep
        self._chance = chance
        self._sighting: Sighting | None = None
        self._renewed_at = 0.0
        self._leads = False
        self._lost = asyncio.Event()
        self._log = structlog.get_logger("dra_driver.kube.lease").bind(lease=f"{namespace}/{name}", identity=identity)

    @property
    def is_leading(self) -> bool:
        """Whether this process leads now."""
        return self._leads and self._clock() < self._renewed_at + self._terms.renew_deadline_s

    @property
    def holder(self) -> str:
        """Who was last seen to hold the lease; empty if nobody."""
        return find_holder(self._sighting, self._clock()) if self._sighting else ""

    def confirm(self) -> None:
        """Return if this process leads now; raise LeadershipLostError if not. Once raised, what is led will end."""
        if not self.is_leading:
            self._lose()
            raise LeadershipLostError(f"lease {self._metadata.namespace}/{self._metadata.name}: not leading")

    async def run(self, lead: Lead) -> None:
        """Run `lead` whenever this process leads, until `lead` ends by itself or this is cancelled.

        When leadership is lost, `lead` is cancelled and its end is awaited; then this process is a candidate again.
        What `lead` raises is raised, but for LeadershipLostError. At the end the lease is released.
        """
        while True:
            await self._acquire()
            if await self._reign(lead):
                return

    async def _acquire(self) -> None:
        """Return once this process holds the lease."""
        self._log.info("candidate for leadership")
        while not await self._attempt(self._terms.attempt_s):
            await self._sleep(self._terms.delay_s(self._chance()))

    async def _reign(self, lead: Lead) -> bool:
        """Run `lead` while the lease is held. Returns whether `lead` ended by itself."""
        self._lost.clear()
        self._leads = True
        self._log.info("leading")
        leading = asyncio.create_task(lead())
        renewing = asyncio.create_task(self._renew())
        try:
            await asyncio.wait((leading, renewing), return_when=asyncio.FIRST_COMPLETED)
            ended = leading.done()
        finally:
            # The lease is renewed, if it still can be, until `lead` has ended.
            await _end(leading)
            held = not renewing.done() and self._leads
            await _end(renewing)
            self._leads = False
            if held:
                await self._release()
        error = None if leading.cancelled() else leading.exception()
        if error is not None and not _is_loss(error):
            raise error
        return ended and error is None

    async def _renew(self) -> None:
        """Renew the lease until it is lost."""
        while True:
            await self._wait_for_loss(self._terms.retry_period_s)
            if self._lost.is_set() or not await self._renew_once():
                break
        self._lose()
        self._log.warning("leadership lost", holder=self.holder)

    async def _renew_once(self) -> bool:
        """Try until the lease is renewed, or until it is another's or too late."""
        while self.is_leading:
            if await self._attempt(min(self._terms.attempt_s, self._left_s())):
                return not self._lost.is_set()
            if self.holder not in ("", self._identity):
                return False
            await self._wait_for_loss(self._terms.retry_period_s * self._chance())
        return False

    async def _wait_for_loss(self, timeout_s: float) -> None:
        """Wait for that long at most; less if leadership is lost meanwhile."""
        waiting = (
            asyncio.create_task(self._lost.wait()),
            asyncio.ensure_future(self._sleep(max(0.0, min(timeout_s, self._left_s())))),
        )
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()

    async def _attempt(self, timeout_s: float) -> bool:
        """Bid for the lease once. Returns whether it is held, with time left; why not is logged."""
        started = self._clock()
        try:
            async with asyncio.timeout(timeout_s):
                won = await self._bid()
        except ApiConflictError:
            self._log.debug("lease was written by another")
            return False
        except TimeoutError:
            self._log.warning("lease not written", error="no answer in time from the API server")
            return False
        except ApiError as error:
            log = self._log.warning if isinstance(error, ApiUnavailableError) else self._log.error
            log("lease not written", error=str(error))
            return False
        if won:
            self._renewed_at = started
        return won and self._left_s() > 0

    async def _bid(self) -> bool:
        """Write the lease if nobody else holds it. Raises ApiError."""
        if self._leads and self._sighting is not None:
            try:
                return await self._write(self._sighting.lease)
            except (ApiConflictError, ApiNotFoundError):
                pass  # another one wrote it, or our own write went through without an answer: look
        try:
            current = await self._client.get(LEASES, self._metadata.name, namespace=self._metadata.namespace)
        except ApiNotFoundError:
            # Somebody deleted it. Whoever held it knows nothing of that yet; who never saw it cannot wait for that.
            if self.holder not in ("", self._identity):
                return False
            return await self._write(None)
        self._see(current)
        if self.holder not in ("", self._identity):
            return False
        return await self._write(current)

    async def _write(self, current: Lease | None) -> bool:
        bid = plan_bid(current, self._metadata, self._identity, self._terms, self._now())
        written = await (self._client.create if current is None else self._client.update)(LEASES, bid)
        self._see(written)
        return True

    def _see(self, lease: Lease) -> None:
        self._sighting = plan_sighting(self._sighting, lease, self._clock())

    async def _release(self) -> None:
        """Give the lease back. Another one waits for its end where that does not succeed."""
        if self._sighting is None:
            return
        try:
            async with asyncio.timeout(self._terms.attempt_s):
                released = await self._try_release(self._sighting.lease)
        except (ApiError, TimeoutError) as error:
            self._log.warning("lease not released", error=str(error))
            return
        if released:
            self._log.info("lease released")

    async def _try_release(self, current: Lease) -> bool:
        """Write a lease without a holder, unless it is another's. A last renewal may have arrived without an answer."""
        try:
            self._see(await self._client.update(LEASES, plan_release(current, self._now())))
        except ApiConflictError:
            current = await self._client.get(LEASES, self._metadata.name, namespace=self._metadata.namespace)
            if current.spec.holder_identity != self._identity:
                return False
            self._see(await self._client.update(LEASES, plan_release(current, self._now())))
        return True

    def _lose(self) -> None:
        self._leads = False
        self._lost.set()

    def _left_s(self) -> float:
        return self._renewed_at + self._terms.renew_deadline_s - self._clock()

    def _now(self) -> MicroTime:
        return self._wall().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


async def _end(task: asyncio.Task[None]) -> None:
    """Cancel a task and wait until it has ended, however it ends."""
    task.cancel()
    await asyncio.wait((task,))


def _is_loss(error: BaseException) -> bool:
    """Whether an error, or all of a group, say that leadership was lost."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(_is_loss, error.exceptions))
    return isinstance(error, LeadershipLostError)
