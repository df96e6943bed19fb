"""Deletes the slices of drivers that are not on the node, so that nobody is sent to devices without a driver."""

import asyncio
import random
import time
from typing import Final

import structlog

from dra_driver.errors import ApiError, ApiNotFoundError
from dra_driver.kube.backoff import Backoff
from dra_driver.kube.client import ApiClient
from dra_driver.kube.resource import RESOURCE_SLICES, Selection
from sandbox.node.registration import Registry

log = structlog.get_logger(__name__)

_RETRY: Final = Backoff(initial_s=0.05, max_s=2.0)


class SliceWiper:
    """Someone runs `run`, and sets `changed` when drivers come or go. A driver may be away for `after_s`."""

    def __init__(self, client: ApiClient, registry: Registry, node_name: str, after_s: float) -> None:
        self.changed = asyncio.Event()
        self._client = client
        self._registry = registry
        self._node_name = node_name
        self._after_s = after_s

    async def run(self) -> None:
        """Delete the slices of drivers that were here and stay away, until cancelled."""
        known: set[str] = set()
        until: dict[str, float] = {}
        while True:
            self.changed.clear()
            there, now = self._registry.drivers.keys(), time.monotonic()
            known |= there
            until = {name: until.get(name, now + self._after_s) for name in known - there}
            for name in [name for name, end in until.items() if end <= now]:
                log.warning("driver lost, slices deleted", driver=name, node=self._node_name)
                await self.wipe(driver=name)
                known.discard(name)
                del until[name]
            await wait_for(self.changed, min(until.values()) - time.monotonic() if until else None)

    async def wipe(self, *, driver: str = "") -> None:
        """Delete the node's slices: all when the kubelet starts, as the drivers publish them again, or one driver's."""
        wanted = f"spec.nodeName={self._node_name}" + (f",spec.driver={driver}" if driver else "")
        selection = Selection(field_selector=wanted)
        attempt = 0
        while True:
            try:
                for each in (await self._client.list(RESOURCE_SLICES, selection)).items:
                    await self._client.delete(RESOURCE_SLICES, each.metadata.name)
            except ApiNotFoundError:
                continue
            except ApiError as error:
                log.warning("slices not deleted", node=self._node_name, error=str(error))
                await asyncio.sleep(_RETRY.delay_s(attempt, random.random()))  # noqa: S311 - jitter
                attempt += 1
            else:
                return


async def wait_for(event: asyncio.Event, timeout_s: float | None) -> None:
    """Wait for an event, for a while at most."""
    try:
        async with asyncio.timeout(timeout_s):
            await event.wait()
    except TimeoutError:
        pass
