"""Brings the stored slices of a pool up to what a node has, on the terms of its API server.

What is done follows from a fresh list, so a late watch costs one request and never creates a slice twice.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from functools import partial

from dra_driver.api.resource_v1 import ResourceSlice
from dra_driver.devices.model import Inventory
from dra_driver.errors import ApiForbiddenError, ApiInvalidError
from kubeletplugin.publish.diff import SyncPlan, Written, plan_sync, restore_sent
from kubeletplugin.publish.drop import diff_kept
from kubeletplugin.publish.layout import Pool, PoolOwner, Refusals
from kubeletplugin.publish.negotiation import Offering, Terms, read_terms
from kubeletplugin.publish.offer import SharePolicy
from kubeletplugin.publish.report import Reporter
from kubeletplugin.publish.store import NodeFacts, SliceStore
from kubeletplugin.publish.timing import PublishTiming


class PoolWriter:
    """One pool as it was written last. `owner` is whose it is, as far as that is known.

    `next_probe_s`, in the event loop's time, is when everything is to be tried anew in dry runs.
    """

    def __init__(
        self, store: SliceStore, report: Reporter, *, owner: PoolOwner, shares: SharePolicy, timing: PublishTiming
    ) -> None:
        self.owner = owner
        self.next_probe_s = 0.0
        self._store = store
        self._report = report
        self._shares = shares
        self._timing = timing
        self._published: Offering | None = None
        self._terms: Terms | None = None
        self._built: tuple[Offering, Terms, Pool] | None = None
        self._written: dict[str, Written] = {}
        self._undeletable: set[str] = set()

    @property
    def lacks_something(self) -> bool:
        """Whether the API server dropped a field or refused a device."""
        return self._terms is not None and self._terms != Terms()

    def is_current(self, inventory: Inventory) -> bool:
        """Whether nothing has to be done, as far as the watch has seen."""
        offering = self._offering(inventory)
        if self._terms is None or self._is_probe_due() or offering != self._published:
            return False
        if not self._is_owner(self._store.node()):
            return False
        seen = self._store.slices()
        if seen is None:
            return True
        pool = self._build_pool(offering, self._terms)
        return plan_sync(pool, self._as_sent(seen)).is_empty

    async def write(self, inventory: Inventory) -> bool:
        """Write what is missing. Return whether what was published already had to be mended. Raises ApiError."""
        node = await self._store.read_node()
        self.owner = replace(self.owner, node_uid=node.uid, allocator=node.allocator, others=node.others)
        offering = self._offering(inventory)
        terms, is_settled = self._terms, False
        if terms is None or self._is_probe_due():
            terms, is_settled = await self._probe(offering), True
        elif offering != self._published:
            terms = replace(terms, refusals=Refusals())
        wrote = False
        while True:
            stored = self._as_sent(await self._store.list_slices())
            if not is_settled:
                terms = await read_terms(
                    self._store, partial(self._build_pool, offering), terms, partial(_writes, stored)
                )
            pool = self._build_pool(offering, terms)
            plan = plan_sync(pool, stored)
            learnt = await self._apply(plan, terms)
            wrote = wrote or not plan.is_empty
            if learnt == terms:
                break
            terms, is_settled = learnt, False
        if not plan.is_empty:
            self._report.report_written(pool, plan)
        self._report.report_published(pool, plan.generation, terms)
        mended = wrote and offering == self._published
        self._terms, self._published = terms, offering
        return mended

    async def _probe(self, offering: Offering) -> Terms:
        """Find out anew what the API server keeps and takes of all that there is."""
        terms = await read_terms(self._store, partial(self._build_pool, offering), Terms(), lambda pool: pool.slices)
        narrowed = terms != Terms()
        period_s = self._timing.probe_s if narrowed else self._timing.recheck_s
        self.next_probe_s = _now_s() + jittered(period_s)
        return terms

    async def _apply(self, plan: SyncPlan, terms: Terms) -> Terms:
        """Write until all is written, or something is learnt of the API server that was not known. Return the terms."""
        for item in plan.deletes:
            await self._delete(item)
        updates = ((self._store.update_slice, item) for item in plan.updates)
        creates = ((self._store.create_slice, item) for item in plan.creates)
        for write, item in (*updates, *creates):
            learnt = await self._write_one(write, item, terms)
            if learnt != terms:
                return learnt
        return terms

    async def _write_one(
        self, write: Callable[[ResourceSlice], Awaitable[ResourceSlice]], item: ResourceSlice, terms: Terms
    ) -> Terms:
        try:
            kept = await write(item)
        except ApiInvalidError as error:
            return terms.after_refusal(item, error)
        self._written[item.metadata.name] = Written(sent=item, resource_version=kept.metadata.resource_version)
        return terms.after_drop(diff_kept(item, kept))

    async def _delete(self, item: ResourceSlice) -> None:
        try:
            await self._store.delete_slice(item)
        except ApiForbiddenError as error:
            self._undeletable.add(item.metadata.uid)
            self._report.report_undeleted(item, error)

    def _as_sent(self, stored: Iterable[ResourceSlice]) -> tuple[ResourceSlice, ...]:
        """Return what is stored, without what this identity must not delete, and as it was sent."""
        mine = (item for item in stored if item.metadata.uid not in self._undeletable)
        return restore_sent(mine, self._written)

    def _offering(self, inventory: Inventory) -> Offering:
        return Offering(inventory=inventory, owner=self.owner, shares=self._shares)

    def _build_pool(self, offering: Offering, terms: Terms) -> Pool:
        """Return the pool, built once: with many devices that takes a while, and each change of a slice asks for it."""
        if self._built is None or self._built[:2] != (offering, terms):
            self._built = offering, terms, offering.build_pool(terms)
        return self._built[2]

    def _is_owner(self, node: NodeFacts | None) -> bool:
        """Whether slices are laid out for the Node as it was seen last; one that was not seen is no reason to act."""
        owner = self.owner
        return node is None or (node.uid, node.allocator, node.others) == (
            owner.node_uid,
            owner.allocator,
            owner.others,
        )

    def _is_probe_due(self) -> bool:
        return _now_s() >= self.next_probe_s


def jittered(period_s: float) -> float:
    """Return a period that is shorter by up to a half, so that nodes do not act together."""
    return period_s * (1.0 - random.random() / 2)  # noqa: S311 - it spreads requests in time


def _writes(stored: tuple[ResourceSlice, ...], pool: Pool) -> tuple[ResourceSlice, ...]:
    plan = plan_sync(pool, stored)
    return (*plan.updates, *plan.creates)


def _now_s() -> float:
    return asyncio.get_running_loop().time()
