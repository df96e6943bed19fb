"""The node's slices, and the Node, in a real API server."""

import asyncio
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

from dra_driver.allocator import allocator_of
from dra_driver.api.core_v1 import Node
from dra_driver.api.resource_v1 import ResourceSlice
from dra_driver.errors import ApiNotFoundError
from dra_driver.kube.cache import Cache
from dra_driver.kube.client import ApiClient, Preconditions
from dra_driver.kube.resource import NODES, RESOURCE_SLICES, Selection
from dra_driver.kube.watch import Watch
from kubeletplugin.publish.coexistence import OtherOwner, OwnerHold, find_other_owners, find_told_owners
from kubeletplugin.publish.store import HeldReader, NodeFacts


class KubeSliceStore:
    """Implements `SliceStore`: the watches see this node and its slices only, and show own writes at once.

    With the name of the own `driver` it looks at who else serves the node's devices; without, it does not care.
    `pods` is asked every `look_every_s` seconds what Pods hold; what is not known is as it was known last. Who serves
    devices, too, is taken to do so for `hold_s` seconds more.
    """

    def __init__(  # noqa: PLR0913 - all but the client are keywords
        self,
        client: ApiClient,
        *,
        node_name: str,
        driver: str = "",
        pods: HeldReader | None = None,
        look_every_s: float = 5.0,
        hold_s: float = 0.0,
    ) -> None:
        self._client = client
        self._node_name = node_name
        self._driver = driver
        self._selection = Selection(field_selector=f"spec.nodeName={node_name}")
        self._cache = Cache(Watch(client, RESOURCE_SLICES, self._selection, interrupted=self._interrupt))
        this_node = Selection(field_selector=f"metadata.name={node_name}")
        self._nodes = Cache(Watch(client, NODES, this_node))
        self._interrupted: Callable[[], None] | None = None
        self._pods = pods
        self._look_every_s = look_every_s
        self._held: frozenset[str] | None = None
        self._hold = OwnerHold(hold_s)
        self._looked = False

    async def follow(self, notice: Callable[[], None], interrupted: Callable[[], None]) -> None:
        """Watch until cancelled."""
        self._interrupted = interrupted
        with self._cache.subscribe() as subscription:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._cache.run())
                tasks.create_task(self._follow_node(notice))
                tasks.create_task(self._look_again(notice))
                async for _ in subscription:
                    notice()

    async def _follow_node(self, notice: Callable[[], None]) -> None:
        """Watch the Node; most of its changes are the kubelet's signs of life, and no news."""
        with self._nodes.subscribe() as subscription:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._nodes.run())
                known = self.node()
                async for _ in subscription:
                    if (seen := self.node()) != known:
                        known = seen
                        notice()

    async def _look_again(self, notice: Callable[[], None]) -> None:
        """Notice what no watch tells: what Pods hold, and that somebody has been gone for long enough."""
        while self._driver:
            known = self.node()
            await asyncio.sleep(self._look_every_s)
            await self._read_held()
            if self.node() != known:
                notice()

    async def _read_held(self) -> None:
        held = await self._pods.read_held() if self._pods is not None else None
        if held is not None:
            self._held = held

    def _interrupt(self) -> None:
        if self._interrupted is not None:
            self._interrupted()

    def slices(self) -> tuple[ResourceSlice, ...] | None:
        """Return what the watch has seen."""
        return self._cache.list() if self._cache.is_synced else None

    async def list_slices(self) -> tuple[ResourceSlice, ...]:
        """Return all slices of this node now."""
        listing = await self._client.list(RESOURCE_SLICES, self._selection)
        return listing.items

    async def create_slice(self, item: ResourceSlice, *, dry_run: bool = False) -> ResourceSlice:
        """Create a slice."""
        kept = await self._client.create(RESOURCE_SLICES, item, dry_run=dry_run)
        if not dry_run:
            self._cache.record_write(kept)
        return kept

    async def update_slice(self, item: ResourceSlice) -> ResourceSlice:
        """Replace a slice."""
        kept = await self._client.update(RESOURCE_SLICES, item)
        self._cache.record_write(kept)
        return kept

    async def delete_slice(self, item: ResourceSlice) -> None:
        """Delete a slice, if it is still the same."""
        metadata = item.metadata
        same = Preconditions(uid=metadata.uid, resource_version=metadata.resource_version)
        with suppress(ApiNotFoundError):
            await self._client.delete(RESOURCE_SLICES, metadata.name, preconditions=same)
        self._cache.record_delete(item)

    def node(self) -> NodeFacts | None:
        """Return what the watch has seen of the Node."""
        node = self._nodes.get(self._node_name)
        return self._facts(node, self._cache.list()) if node is not None else None

    async def read_node(self) -> NodeFacts:
        """Return what is true of the Node now."""
        node = await self._client.get(NODES, self._node_name)
        slices = self.slices()
        if slices is None:
            slices = await self.list_slices() if self._driver else ()
        if self._driver and not self._looked:
            self._looked = True
            self._hold.settle(find_told_owners(slices, driver=self._driver), time.monotonic())
            await self._read_held()
        return self._facts(node, slices)

    def _facts(self, node: Node, slices: Iterable[ResourceSlice]) -> NodeFacts:
        others = self._find_others(node, slices) if self._driver else ()
        return NodeFacts(uid=node.metadata.uid, allocator=allocator_of(node.metadata.labels), others=others)

    def _find_others(self, node: Node, slices: Iterable[ResourceSlice]) -> tuple[OtherOwner, ...]:
        held = self._held or frozenset()
        found = find_other_owners(node.status.allocatable, slices, driver=self._driver, held=held)
        return self._hold.settle(found, time.monotonic())
