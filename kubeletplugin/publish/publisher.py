"""Keeps the node's ResourceSlices as they should be: after a change of devices, of the Node, by others, of the server.

A watch says *when* there is something to do; `PoolWriter` finds out what, and does it.
What others change is mended at once (the kubelet deletes all slices of its node when it starts), but ever more slowly
while somebody keeps on: during an update two versions may want different slices.
Slices stay when the process ends: the next one takes them over without a write, and claims keep their devices.
Where two processes run, as during an update, the older one stands back from the younger one's first attempt on, so that
two versions that want different slices do not take turns at writing them; it goes on if the younger one fails or ends.
"""

import asyncio
import random
import time

from dra_driver.devices.model import Inventory
from dra_driver.errors import (
    ApiConflictError,
    ApiError,
    ApiForbiddenError,
    ApiInvalidError,
    ApiNotFoundError,
    ApiUnavailableError,
)
from kubeletplugin.publish.layout import PoolOwner
from kubeletplugin.publish.metric import PublishMetrics
from kubeletplugin.publish.offer import SharePolicy
from kubeletplugin.publish.pool_writer import PoolWriter, jittered
from kubeletplugin.publish.report import Reporter
from kubeletplugin.publish.store import EventSink, SliceStore
from kubeletplugin.publish.timing import PublishTiming
from kubeletplugin.publish.turn import Alone, Turn


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
        self._timing = timing or PublishTiming()
        self._writer = PoolWriter(
            store,
            self._report,
            owner=PoolOwner(driver=driver, node_name=node_name, node_uid=""),
            shares=shares or SharePolicy(),
            timing=self._timing,
        )
        self._turn = turn or Alone()
        self._wake = asyncio.Event()
        self._changed = asyncio.Event()
        self._inventory: Inventory | None = None
        self._failures = 0
        self._passing = 0
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
        if self._writer.lacks_something:
            self._writer.next_probe_s = 0.0
            self._wake.set()

    async def _keep(self) -> None:
        started_s = _now_s()
        while self._inventory is None:
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
                pause_s = await self._sync(self._inventory)
            except ApiError as error:
                delay_s = self._handle(error)
                if self._failures >= self._timing.patience:
                    self._turn.give_turn_back()
                # A Node that is not there may come back at any time, and the watch tells.
                await _wait_for(self._wake if isinstance(error, ApiNotFoundError) else self._changed, delay_s)
                await asyncio.sleep(self._timing.gather_s)
                continue
            self._failures = self._passing = 0
            if not self.ready.is_set():
                self._report.report_first(_now_s() - started_s)
                self.ready.set()
            await _wait_for(self._changed, pause_s)
            await _wait_for(self._wake, max(self._writer.next_probe_s - _now_s(), 0.0))
            await asyncio.sleep(self._timing.gather_s)

    def _handle(self, error: ApiError) -> float:
        """Tell about an error. Return how many seconds to wait before the next attempt."""
        may_pass = isinstance(error, ApiForbiddenError | ApiConflictError)
        self._passing = self._passing + 1 if may_pass else 0
        self._failures += 1
        attempt = (self._passing or self._failures) - 1
        delay_s = self._timing.retry.delay_s(attempt, random.random())  # noqa: S311 - it spreads requests
        if isinstance(error, ApiInvalidError) or self._passing > self._timing.passing:
            delay_s = max(delay_s, jittered(self._timing.refused_s))
            self._report.report_failure(self._writer.owner, error, delay_s)
            return delay_s
        if isinstance(error, ApiUnavailableError):
            self._writer.next_probe_s = 0.0
            delay_s = max(delay_s, min(error.retry_after_s or 0.0, self._timing.retry_after_s))
        self._report.report_retry(error, delay_s)
        return delay_s

    async def _sync(self, inventory: Inventory) -> float:
        """Bring the stored slices up to date. Return how many seconds others' changes should wait from now."""
        if self._writer.is_current(inventory):
            return 0.0
        started_s = _now_s()
        try:
            mended = await self._writer.write(inventory)
        except ApiError:
            self._report.report_attempt(duration_s=_now_s() - started_s, succeeded=False)
            raise
        self._report.report_attempt(duration_s=_now_s() - started_s, succeeded=True)
        return self._pace(mended=mended)

    def _pace(self, *, mended: bool) -> float:
        """Return how long to stand back, the longer the more often others change what is published."""
        if not mended:
            return 0.0
        now_s = _now_s()
        self._mends = self._mends + 1 if now_s - self._last_mend_s < self._timing.quiet_s else 0
        self._last_mend_s = now_s
        return self._timing.mend.delay_s(self._mends, random.random())  # noqa: S311 - likewise


async def _wait_for(event: asyncio.Event, longest_s: float) -> None:
    try:
        async with asyncio.timeout(longest_s):
            await event.wait()
    except TimeoutError:
        return


def _now_s() -> float:
    return asyncio.get_running_loop().time()
