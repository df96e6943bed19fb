"""Writing allocations: each request is insisted on until it is known what became of it.

A request without an answer may have arrived. It is sent again as it was, guarded by the resource version: then it
arrives once, or conflicts, and the object that is there tells whether the first one had arrived.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

import structlog

from controller.metric import Metrics
from controller.ownership import is_gated
from controller.patch import (
    build_allocation,
    build_deallocation,
    build_protection,
    build_release,
    build_reservation,
    build_ungating,
)
from dra_driver.api.core_v1 import Pod
from dra_driver.api.meta_v1 import render_time
from dra_driver.api.resource_v1 import AllocationResult, ResourceClaim
from dra_driver.errors import ApiConflictError, ApiError, ApiInvalidError, ApiUnavailableError
from dra_driver.kube.backoff import Backoff
from dra_driver.kube.cache import Cache
from dra_driver.kube.client import ApiClient, PatchKind
from dra_driver.kube.resource import PODS, RESOURCE_CLAIMS
from dra_driver.pod_claim import FINALIZER, is_reserved_for, refer_to

log = structlog.get_logger(__name__)
T = TypeVar("T")

_LONGEST_RETRY_AFTER_S = 60.0


class GivenUpError(Exception):
    """What is to be written is not wanted any more, and it is not known whether it was written."""


Wanted = Callable[[], bool]
"""Tells whether a write is still wanted; asked before each attempt but the first."""


@dataclass(slots=True)
class Writer:
    """Writes claims and Pods. `client` is one that refuses to write once leadership is lost.

    Methods raise ApiError where the API server refuses for good, ApiConflictError among them, and GivenUpError.
    """

    client: ApiClient
    claims: Cache[ResourceClaim]
    pods: Cache[Pod]
    metrics: Metrics
    backoff: Backoff = Backoff(initial_s=0.1, max_s=10.0)  # noqa: RUF009 - frozen
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    async def allocate(
        self, claim: ResourceClaim, allocation: AllocationResult, pod: Pod, wanted: Wanted
    ) -> ResourceClaim:
        """Protect a claim, and then allocate it and reserve it for the Pod at once."""
        if FINALIZER not in claim.metadata.finalizers:
            claim = await self._patch(
                claim,
                build_protection(claim),
                "",
                wanted,
                lambda found: _is_protected(found) and _is_unallocated(found),
            )
        stamp = render_time(self.now())
        patch = build_allocation(claim, allocation, refer_to(pod), stamp)

        def is_done(found: ResourceClaim) -> bool:
            has = found.status.allocation
            return has is not None and has.devices.results == allocation.devices.results and is_reserved_for(found, pod)

        return await self._patch(claim, patch, "status", wanted, is_done)

    async def reserve(self, claim: ResourceClaim, pod: Pod, wanted: Wanted) -> ResourceClaim:
        """Let one more Pod use an allocated claim."""
        patch = build_reservation(claim, refer_to(pod))
        return await self._patch(claim, patch, "status", wanted, lambda found: is_reserved_for(found, pod))

    async def take_back(self, claim: ResourceClaim, wanted: Wanted) -> ResourceClaim:
        """Deallocate a claim; the finalizer goes, too, as nothing is left to protect."""
        claim = await self._patch(claim, build_deallocation(claim), "status", wanted, _is_unallocated)
        if FINALIZER in claim.metadata.finalizers:
            claim = await self._patch(claim, build_release(claim), "", wanted, lambda found: not _is_protected(found))
        return claim

    async def ungate(self, pod: Pod, wanted: Wanted) -> None:
        """Remove the Pod's gate: kube-scheduler takes over."""
        name, namespace = pod.metadata.name, pod.metadata.namespace

        async def send() -> Pod:
            return await self.client.patch(PODS, name, build_ungating(pod), kind=PatchKind.JSON, namespace=namespace)

        async def read() -> Pod:
            return await self.client.get(PODS, name, namespace=namespace)

        try:
            written = await self._insist(send, wanted)
        except ApiInvalidError:
            # The gate is gone already, by an earlier attempt or somebody else; or the Pod is another one.
            written = await self._insist(read, wanted)
            if is_gated(written) and written.metadata.uid == pod.metadata.uid:
                raise
        self.pods.record_write(written)

    async def _patch(
        self,
        claim: ResourceClaim,
        patch: dict[str, Any],
        subresource: str,
        wanted: Wanted,
        is_done: Callable[[ResourceClaim], bool],
    ) -> ResourceClaim:
        """Patch a claim. After a conflict what is there is read, and shown to everybody, before the error is raised."""
        name, namespace = claim.metadata.name, claim.metadata.namespace

        async def send() -> ResourceClaim:
            return await self.client.patch(RESOURCE_CLAIMS, name, patch, namespace=namespace, subresource=subresource)

        async def read() -> ResourceClaim:
            return await self.client.get(RESOURCE_CLAIMS, name, namespace=namespace)

        try:
            written = await self._insist(send, wanted)
        except ApiConflictError:
            self.metrics.conflicts.inc()
            found = await self._insist(read, wanted)
            self.claims.record_write(found)
            if found.metadata.uid != claim.metadata.uid or not is_done(found):
                raise
            return found
        self.claims.record_write(written)
        return written

    async def _insist(self, send: Callable[[], Awaitable[T]], wanted: Wanted) -> T:
        """Send until there is an answer."""
        attempt = 0
        while True:
            try:
                return await send()
            except ApiUnavailableError as error:
                delay_s = self.backoff.delay_s(attempt, random.random())  # noqa: S311 - no secret
                delay_s = max(delay_s, min(error.retry_after_s or 0.0, _LONGEST_RETRY_AFTER_S))
                log.warning("write not answered", error=str(error), retry_in_s=round(delay_s, 3))
                await asyncio.sleep(delay_s)
            if not wanted():
                raise GivenUpError("not wanted any more")
            attempt += 1


def is_final(error: ApiError) -> bool:
    """Tell whether an error says for certain that nothing was written."""
    return error.status != 0 and not isinstance(error, ApiUnavailableError)


def _is_protected(claim: ResourceClaim) -> bool:
    return FINALIZER in claim.metadata.finalizers


def _is_unallocated(claim: ResourceClaim) -> bool:
    return claim.status.allocation is None
