"""Keeps the node's ResourceSlices as they should be: after a change of devices, of the Node, by others, of the server.

A watch says *when* there is something to do; what is done follows from a fresh list, so a late watch costs one request
and never creates a slice twice.
What others change is mended at once (the kubelet deletes all slices of its node when it starts), but ever more slowly
while somebody keeps on: during an update two versions may want different slices.
Slices stay when the process ends: the next one takes them over without a write, and claims keep their devices.
Where two processes run, as during an update, the older one stands back from the younger one's first attempt on, so that
two versions that want different slices do not take turns at writing them; it goes on if the younger one fails or ends.
"""

import asyncio
import random
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from dra_driver.api.resource_v1 import ResourceSlice
from dra_driver.devices.model import Inventory
from dra_driver.errors import ApiError, ApiForbiddenError, ApiInvalidError, ApiUnavailableError
from dra_driver.kube.backoff import Backoff
from kubeletplugin.publish.diff import SyncPlan, Written, plan_sync, restore_sent
from kubeletplugin.publish.drop import DroppedField, diff_kept
from kubeletplugin.publish.layout import Pool, PoolOwner, Refusals
from kubeletplugin.publish.metric import PublishMetrics
from kubeletplugin.publish.negotiation import Offering, Terms, read_terms
from kubeletplugin.publish.offer import SharePolicy
from kubeletplugin.publish.report import Reporter
from kubeletplugin.publish.store import EventSink, NodeFacts, SliceStore


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishTiming:
    """How often, in seconds. Periods are shortened at random by up to a half, so that nodes do not act together.

    - `gather_s`: how long changes are gathered before they are looked at
    - `probe_s`: between two dry runs of everything where fields are dropped or devices refused, to find that they no
      longer are; an API server that was away is asked at once
    - `recheck_s`: the same where nothing is, to find gates that were disabled
    - `refused_s`: between two attempts where a person has to mend something
    - `forbidden`: so many refusals in a row by the server's roles are retried soon, and without a word to a person: an
      API server that has just started knows no roles yet
    - `quiet_s`: changes by others that are further apart than this are mended at once
    - `turn_s`: how often a process that stands back looks whether it still has to
    - `patience`: so many failures in a row, and an older process may try
    """

    gather_s: float = 0.05
    probe_s: float = 600.0
    recheck_s: float = 3600.0
    refused_s: float = 60.0
    forbidden: int = 5
    quiet_s: float = 60.0
    turn_s: float = 1.0
    patience: int = 5
    retry: Backoff = field(default_factory=lambda: Backoff(initial_s=0.2, max_s=30.0))
    mend: Backoff = field(default_factory=lambda: Backoff(initial_s=0.1, max_s=30.0))


class Turn(Protocol):
    """Which of the node's processes writes slices."""

    def take_turn(self) -> bool:
        """Say that this process writes from now on. Return whether it may: no younger one said so."""
        ...

    def give_turn_back(self) -> None:
        """Say that this process does not write, so that an older one may."""
        ...


class Alone:
    """There is no other process."""

    def take_turn(self) -> bool:
        """Return that this process may write."""
        return True

    def give_turn_back(self) -> None:
        """Do nothing: nobody waits."""


class Publisher:
    """Publishes one pool. `run` it in a task; it ends by being cancelled only.

    `ready` is set once the first complete pool is stored.
    """

    def __init__(  # noqa: PLR0913 - what it works with, by keyword
        self,
        *,
        store: SliceStore,
        events: EventSink,
        metrics: PublishMetrics,
        driver: str,
        node_name: str,
        shares: SharePolicy | None = None,
        timing: PublishTiming | None = None,
        turn: Turn | None = None,
    ) -> None:
        self.ready = asyncio.Event()
        self._store = store
        self._report = Reporter(events, metrics, now=time.time)
        self._owner = PoolOwner(driver=driver, node_name=node_name, node_uid="")
        self._shares = shares or SharePolicy()
        self._timing = timing or PublishTiming()
        self._turn = turn or Alone()
        self._wake = asyncio.Event()
        self._changed = asyncio.Event()
        self._inventory: Inventory | None = None
        self._published: Offering | None = None
        self._terms: Terms | None = None
        self._next_probe_s = 0.0
        self._written: dict[str, Written] = {}
        self._undeletable: set[str] = set()
        self._failures = 0
        self._forbidden = 0
        self._mends = 0
        self._last_mend_s = 0.0

    def set_inventory(self, inventory: Inventory) -> None:
        """Say what is there now. Call it in the event loop; the same inventory again costs nothing."""
        if inventory == self._inventory:
            return
        self._inventory = inventory
        self._changed.set()
        self._wake.set()

    async def run(self) -> None:
        """Publish, and keep what is published, until cancelled. May be run again after an error."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._store.follow(self._wake.set, self._ask_anew))
            await self._keep()

    def _ask_anew(self) -> None:
        """Probe an API server that was away, if it lacked something: it may be back with other gates."""
        if self._terms is not None and self._terms != Terms():
            self._next_probe_s = 0.0
            self._wake.set()

    async def _keep(self) -> None:
        started_s = _now_s()
        if self._inventory is None:
            await self._changed.wait()
        while True:
            self._wake.clear()
            self._changed.clear()
            may_write = self._turn.take_turn()
            self._report.report_turn(may_write=may_write)
            if not may_write:
                await asyncio.sleep(self._timing.turn_s)
                continue
            try:
                pause_s = await self._sync()
            except ApiError as error:
                delay_s = self._handle(error)
                if self._failures >= self._timing.patience:
                    self._turn.give_turn_back()
                await _wait_for(self._changed, delay_s)
                continue
            self._failures = self._forbidden = 0
            if not self.ready.is_set():
                self._report.report_first(_now_s() - started_s)
                self.ready.set()
            await _wait_for(self._changed, pause_s)
            await _wait_for(self._wake, max(self._next_probe_s - _now_s(), 0.0))
            await asyncio.sleep(self._timing.gather_s)

    def _handle(self, error: ApiError) -> float:
        """Tell about an error. Return how many seconds to wait before the next attempt."""
        delay_s = self._timing.retry.delay_s(self._failures, _random())
        self._failures += 1
        self._forbidden = self._forbidden + 1 if isinstance(error, ApiForbiddenError) else 0
        match error:
            case ApiForbiddenError() if self._forbidden <= self._timing.forbidden:
                delay_s = self._timing.retry.delay_s(self._forbidden - 1, _random())
            case ApiInvalidError() | ApiForbiddenError():
                delay_s = max(delay_s, _jittered(self._timing.refused_s))
                self._report.report_failure(self._owner, error, delay_s)
                return delay_s
            case ApiUnavailableError():
                self._next_probe_s = 0.0
                delay_s = max(delay_s, error.retry_after_s or 0.0)
            case _:
                pass
        self._report.report_retry(error, delay_s)
        return delay_s

    async def _sync(self) -> float:
        """Bring the stored slices up to date. Return how many seconds others' changes should wait from now."""
        inventory, terms = self._inventory, self._terms
        if inventory is None or (terms is not None and self._is_current(inventory, terms)):
            return 0.0
        started_s = _now_s()
        try:
            pause_s = await self._publish(inventory, terms)
        except ApiError:
            self._report.report_attempt(duration_s=_now_s() - started_s, succeeded=False)
            raise
        self._report.report_attempt(duration_s=_now_s() - started_s, succeeded=True)
        return pause_s

    def _is_current(self, inventory: Inventory, terms: Terms) -> bool:
        """Whether nothing has to be done, as far as the watch has seen."""
        offering = self._offering(inventory)
        if self._is_probe_due() or offering != self._published or not self._is_owner(self._store.node()):
            return False
        seen = self._store.slices()
        if seen is None:
            return True
        pool = offering.build_pool(terms)
        return plan_sync(pool, self._as_sent(seen)).is_empty

    async def _publish(self, inventory: Inventory, terms: Terms | None) -> float:
        """Write what is missing, on terms that are settled first. Raises ApiError."""
        node = await self._store.read_node()
        self._owner = replace(self._owner, node_uid=node.uid, allocator=node.allocator, others=node.others)
        offering = self._offering(inventory)
        tried = terms is None or self._is_probe_due()
        if terms is None or tried:
            terms = await self._probe(offering)
        elif offering != self._published:
            terms = replace(terms, refusals=Refusals())
        wrote = False
        while True:
            stored = self._as_sent(await self._store.list_slices())
            if not tried:
                terms = await read_terms(self._store, offering, terms, partial(_writes, stored))
            tried = False
            pool = offering.build_pool(terms)
            plan = plan_sync(pool, stored)
            dropped = await self._apply(plan, terms)
            if not plan.is_empty and not dropped:
                self._report.report_written(pool, plan)
            wrote = wrote or not plan.is_empty
            if not dropped:
                break
            terms = terms.after_drop(dropped)
        self._terms = terms
        self._report.report_published(pool, plan.generation, terms)
        mended = wrote and offering == self._published
        self._published = offering
        return self._pace(mended=mended)

    async def _probe(self, offering: Offering) -> Terms:
        """Find out anew what the API server keeps and takes of all that there is."""
        terms = await read_terms(self._store, offering, Terms(), lambda pool: pool.slices)
        narrowed = terms != Terms()
        self._next_probe_s = _now_s() + _jittered(self._timing.probe_s if narrowed else self._timing.recheck_s)
        return terms

    async def _apply(self, plan: SyncPlan, terms: Terms) -> tuple[DroppedField, ...]:
        """Write, until all is written or a field is dropped that was not known to be. Return such fields."""
        for item in plan.deletes:
            await self._delete(item)
        for item in plan.updates:
            if dropped := self._compare(item, await self._store.update_slice(item), terms):
                return dropped
        for item in plan.creates:
            if dropped := self._compare(item, await self._store.create_slice(item), terms):
                return dropped
        return ()

    async def _delete(self, item: ResourceSlice) -> None:
        try:
            await self._store.delete_slice(item)
        except ApiForbiddenError as error:
            self._undeletable.add(item.metadata.uid)
            self._report.report_undeleted(item, error)

    def _compare(self, sent: ResourceSlice, kept: ResourceSlice, terms: Terms) -> tuple[DroppedField, ...]:
        name = sent.metadata.name
        self._written[name] = Written(sent=sent, resource_version=kept.metadata.resource_version)
        return tuple(field for field in diff_kept(sent, kept) if field not in terms.dropped)

    def _as_sent(self, stored: Iterable[ResourceSlice]) -> tuple[ResourceSlice, ...]:
        """Return what is stored, without what this identity must not delete, and as it was sent."""
        mine = (item for item in stored if item.metadata.uid not in self._undeletable)
        return restore_sent(mine, self._written)

    def _offering(self, inventory: Inventory) -> Offering:
        return Offering(inventory=inventory, owner=self._owner, shares=self._shares)

    def _is_owner(self, node: NodeFacts | None) -> bool:
        """Whether slices are laid out for the Node as it was seen last; one that was not seen is no reason to act."""
        owner = self._owner
        return node is None or (node.uid, node.allocator, node.others) == (
            owner.node_uid,
            owner.allocator,
            owner.others,
        )

    def _is_probe_due(self) -> bool:
        return _now_s() >= self._next_probe_s

    def _pace(self, *, mended: bool) -> float:
        """Return how long to stand back, the longer the more often others change what is published."""
        if not mended:
            return 0.0
        now_s = _now_s()
        self._mends = self._mends + 1 if now_s - self._last_mend_s < self._timing.quiet_s else 0
        self._last_mend_s = now_s
        return self._timing.mend.delay_s(self._mends, _random())


def _writes(stored: tuple[ResourceSlice, ...], pool: Pool) -> tuple[ResourceSlice, ...]:
    plan = plan_sync(pool, stored)
    return (*plan.updates, *plan.creates)


async def _wait_for(event: asyncio.Event, longest_s: float) -> None:
    try:
        async with asyncio.timeout(longest_s):
            await event.wait()
    except TimeoutError:
        return


def _now_s() -> float:
    return asyncio.get_running_loop().time()


def _random() -> float:
    return random.random()  # noqa: S311 - it spreads requests in time


def _jittered(period_s: float) -> float:
    return period_s * (1.0 - _random() / 2)
