"""What is looked after from time to time: allocations that nobody uses, and allocated devices that are not well."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from controller.ailment import find_ailments, gather_devices
from controller.decider import Decider
from controller.pod_writer import PodWriter
from controller.state import State
from controller.teller import Teller
from controller.writer import GivenUpError
from dra_driver.api.resource_v1 import ResourceClaim
from dra_driver.errors import ApiError, LeadershipLostError
from dra_driver.kube.resource import ObjectKey, key_of
from dra_driver.pod_claim import is_live

log = structlog.get_logger(__name__)


@dataclass(slots=True, eq=False)
class Sweeper:
    """Looks every `look_s`. For `orphan_s` an allocation whose Pods are all gone is left to Kubernetes to take back."""

    state: State
    decider: Decider
    writer: PodWriter
    teller: Teller
    look_s: float
    orphan_s: float
    monotonic: Callable[[], float] = time.monotonic
    _orphans: dict[ObjectKey, float] = field(default_factory=dict)

    async def run(self) -> None:
        """Look until cancelled."""
        self._orphans.clear()
        self.state.changed_pools |= {
            (slice_.spec.driver, slice_.spec.pool.name) for slice_ in self.state.slices.values()
        }
        while True:
            self._look_at_devices()
            for key in self._find_orphans():
                await self._take_back(key)
            await asyncio.sleep(self.look_s)

    def _find_orphans(self) -> list[ObjectKey]:
        now = self.monotonic()
        orphans = [key for key, claim in self.state.claims.items() if self._is_orphan(claim)]
        self._orphans = {key: self._orphans.get(key, now) for key in orphans}
        return [key for key, since in self._orphans.items() if now - since >= self.orphan_s]

    async def _take_back(self, key: ObjectKey) -> None:
        claim = self.state.claims.get(key)
        if claim is None or not self._is_orphan(claim):
            return
        try:
            await self.writer.take_back([claim], lambda: False)
        except (ApiError, GivenUpError, LeadershipLostError) as error:
            log.warning("allocation not taken back", claim=str(key), error=str(error))
        else:
            log.info("allocation of pods that are gone taken back", claim=str(key))

    def _is_orphan(self, claim: ResourceClaim) -> bool:
        """Tell whether an allocation of ours is reserved for Pods that are gone, and nobody else."""
        if claim.status.allocation is None or not claim.status.reserved_for or not self.decider.is_own_claim(claim):
            return False
        for consumer in claim.status.reserved_for:
            if consumer.resource != "pods" or consumer.api_group:
                return False
            pod = self.state.pods.get(ObjectKey(claim.metadata.namespace, consumer.name))
            if pod is not None and pod.metadata.uid == consumer.uid and is_live(pod):
                return False
        return True

    def _look_at_devices(self) -> None:
        """Tell of devices that became unhealthy or vanished although they are allocated."""
        pools, self.state.changed_pools = self.state.changed_pools, set()
        if not pools:
            return
        slices = (each for each in self.state.slices.values() if (each.spec.driver, each.spec.pool.name) in pools)
        devices = gather_devices(slices)
        for claim in self.state.claims.values():
            allocation = claim.status.allocation
            results = allocation.devices.results if allocation is not None else ()
            if any((result.driver, result.pool) in pools for result in results) and self.decider.is_own_claim(claim):
                for reason, text in find_ailments(claim, devices):
                    log.warning("allocated device not well", claim=str(key_of(claim)), reason=reason, problem=text)
                    self.teller.warn(claim, reason, text)
