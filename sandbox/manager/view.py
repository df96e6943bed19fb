"""What the control plane of the sandbox knows: the objects that its parts read, each kind watched once."""

import asyncio
from typing import Any

from dra_driver.kube.cache import Cache
from dra_driver.kube.client import ApiClient
from dra_driver.kube.resource import (
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    NODES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
)
from dra_driver.kube.watch import Watch


class ClusterView:
    """A cache a kind. Someone runs `run`."""

    def __init__(self, client: ApiClient) -> None:
        self.pods = Cache(Watch(client, PODS))
        self.nodes = Cache(Watch(client, NODES))
        self.claims = Cache(Watch(client, RESOURCE_CLAIMS))
        self.templates = Cache(Watch(client, RESOURCE_CLAIM_TEMPLATES))
        self.slices = Cache(Watch(client, RESOURCE_SLICES))
        self.classes = Cache(Watch(client, DEVICE_CLASSES))
        self.taint_rules = Cache(Watch(client, DEVICE_TAINT_RULES))
        self._caches: tuple[Cache[Any], ...] = (
            *(self.pods, self.nodes, self.claims, self.templates),
            *(self.slices, self.classes, self.taint_rules),
        )

    async def run(self) -> None:
        """Follow the API server until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for cache in self._caches:
                tasks.create_task(cache.run())

    async def synced(self) -> None:
        """Wait until everything was listed once."""
        for cache in self._caches:
            await cache.synced()
