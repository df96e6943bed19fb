"""Writing what was decided about a whole Pod: its claims, a look whether somebody was faster, then its gate."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

import structlog

from controller.allocator import AllocationError
from controller.decider import Decider
from controller.decision import Place
from controller.double import find_double, find_earlier
from controller.metric import Metrics
from controller.ownership import is_gated
from controller.state import State, find_node
from controller.writer import GivenUpError, Wanted, Writer, is_final
from dra_driver.api.core_v1 import Pod
from dra_driver.api.resource_v1 import ResourceClaim
from dra_driver.errors import ApiConflictError, ApiError, LeadershipLostError
from dra_driver.kube.resource import ObjectKey, key_of

log = structlog.get_logger(__name__)


@dataclass(slots=True, eq=False)
class PodWriter:
    """Writes a Pod. Methods raise what `Writer` raises."""

    state: State
    decider: Decider
    writer: Writer
    metrics: Metrics

    async def write_claims(self, pod: Pod, place: Place, flying: set[ObjectKey], wanted: Wanted) -> None:
        """Write the claims one after the other, and wait until all is known that was written before them.

        `flying` are the keys of the claims to allocate. One that may still be allocated later on is removed from it.
        """
        versions: list[str] = []
        for claim, allocation in place.allocations:
            try:
                written = await self.writer.allocate(claim, allocation, pod, wanted)
            except (ApiError, GivenUpError, LeadershipLostError, asyncio.CancelledError) as error:
                if not isinstance(error, ApiError) or not is_final(error):
                    flying.discard(key_of(claim))
                raise
            versions.append(written.metadata.resource_version)
        for claim in place.reservations:
            written = await self.writer.reserve(claim, pod, wanted)
            versions.append(written.metadata.resource_version)
        for version in versions:
            await self.writer.claims.reached(version)

    async def let_go(self, pod: Pod, wanted: Wanted) -> None:
        """Remove the gate of the Pod as it is now, unless somebody else was given its devices before."""
        current = self.state.pods.get(key_of(pod))
        if current is None or current.metadata.uid != pod.metadata.uid:
            raise GivenUpError("pod is gone")
        lost = [claim for claim in self.decider.find_held(current) if self._is_second(claim)]
        if lost:
            self.metrics.conflicts.inc()
            await self.take_back(lost, wanted)
            raise ApiConflictError(f"pod {key_of(pod)}: another controller was faster")
        if is_gated(current):
            if self.decider.has_unallocated(current):
                raise ApiConflictError(f"pod {key_of(pod)}: an allocation was taken back")
            await self.writer.ungate(current, wanted)

    def _is_second(self, claim: ResourceClaim) -> bool:
        """Tell whether a device of an allocation was somebody else's before; everything until then must be known."""
        own = self.state.own
        node = find_node(claim.status.allocation) if claim.status.allocation is not None else ""
        try:
            pools = own.pools(node) if node in own.nodes else ()
        except AllocationError:
            pools = ()  # a slice that cannot be read: then whole devices are all that can be told
        devices = find_double(claim, own.state, pools)
        if not devices:
            return False
        earlier = find_earlier(claim, devices, self.state.claims.values(), self.state.since)
        if earlier is not None:
            log.warning("device allocated twice", claim=str(key_of(claim)), earlier=str(key_of(earlier)), node=node)
        return earlier is not None

    async def take_back(self, claims: Iterable[ResourceClaim], wanted: Wanted) -> None:
        """Take back allocations."""
        for claim in claims:
            await self.writer.take_back(claim, wanted)
            self.metrics.taken_back.inc()
