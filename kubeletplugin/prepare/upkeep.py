"""Keeps the node in line with the claims that there are: puts back, rebuilds and sweeps, at start and while it runs."""

import asyncio
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from pathlib import Path
from typing import Final, Protocol, TypeVar

import structlog

from dra_driver.api.resource_v1 import ResourceClaim
from dra_driver.errors import ApiError, ApiNotFoundError, ClaimError, StateError
from kubeletplugin.prepare.checkpoint import Checkpoint, CorruptRecord
from kubeletplugin.prepare.preparer import Preparer
from kubeletplugin.prepare.record import ClaimRef

log = structlog.get_logger(__name__)

_T = TypeVar("_T")

LOOK_INTERVAL_S: Final = 300.0
"""How often the API server is asked whether the prepared claims are still there: one GET each."""

GONE_FOR_S: Final = 600.0
"""How long a claim has to be gone before it is unprepared here. The kubelet does so within a minute, if it knows it."""


class Claims(Protocol):
    """Where claims are read."""

    async def read_claim(self, ref: ClaimRef) -> ResourceClaim:
        """Return the claim as the API server has it now. Raises ApiError."""
        ...


class KubeletState:
    """What the kubelet remembers of claims, in a file of its own, where this process can see that."""

    def __init__(self, kubelet_dir: Path) -> None:
        self._path = kubelet_dir / "dra_manager_state"

    def remembers(self, uid: str) -> bool:
        """Whether the claim is named there. A file that is not to be seen says nothing."""
        try:
            return uid.encode() in self._path.read_bytes()
        except OSError:
            return False


class Upkeep:
    """What goes on beside the calls of the kubelet, claim by claim.

    `warn` tells people of the node, by reason and message, `warn_of_claim` of a claim;
    `count_corrupt` counts records that could not be read.
    `executor` has the threads; None is the event loop's own, which it needs itself where they wait for the API server.
    `remembers` says whether the kubelet still knows a claim, as far as that can be seen.
    `clock` gives seconds and never jumps.
    """

    def __init__(  # noqa: PLR0913 - all but two are keywords
        self,
        preparer: Preparer,
        checkpoint: Checkpoint,
        *,
        claims: Claims,
        warn: Callable[[str, str], None],
        warn_of_claim: Callable[[ClaimRef, str, str], None],
        executor: Executor | None = None,
        count_corrupt: Callable[[], None] = lambda: None,
        remembers: Callable[[str], bool] = lambda _: False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._preparer = preparer
        self._checkpoint = checkpoint
        self._claims = claims
        self._warn = warn
        self._warn_of_claim = warn_of_claim
        self._executor = executor
        self._count_corrupt = count_corrupt
        self._remembers = remembers
        self._clock = clock
        self._damaged: dict[str, ClaimRef] = {}
        self._not_rebuilt: dict[str, str] = {}
        self._gone_since: dict[str, float] = {}
        self._next_look = clock()
        self._told: frozenset[tuple[ClaimRef, str]] = frozenset()

    def tell_corrupt(self, corrupt: Iterable[CorruptRecord]) -> None:
        """Tell of records that could not be read, and remember to rebuild them."""
        for record in corrupt:
            self._count_corrupt()
            log.error("claim record corrupt", claim_uid=record.uid, kept_as=str(record.kept_as), error=record.problem)
            self._warn("CheckpointCorrupt", f"{record.problem}; kept as {record.kept_as.name}")
            if record.ref is not None:
                self._damaged[record.uid] = record.ref

    async def work(self) -> None:
        """Do once all that there is to do. Raises StateError if the node could not be looked through."""
        problems = [(ref, str(error)) for ref, error in await self._in_thread(self._preparer.restore)]
        for ref, problem in problems:
            if (ref, problem) not in self._told:
                log.error("claim not restored", claim=str(ref), claim_uid=ref.uid, error=problem)
                self._warn_of_claim(ref, "PrepareFailed", problem)
        self._told = frozenset(problems)
        self.tell_corrupt(self._checkpoint.take_corrupt())
        self._damaged |= {ref.uid: ref for ref in await self._in_thread(self._preparer.list_lost)}
        for ref in tuple(self._damaged.values()):
            if ref.uid not in self._gone_since:
                await self._rebuild(ref)
        if self._clock() >= self._next_look:
            self._next_look = self._clock() + LOOK_INTERVAL_S
            await self._unprepare_gone()
        await self._in_thread(self._preparer.sweep)

    async def _in_thread(self, act: Callable[..., _T], *args: object) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, act, *args)

    async def _rebuild(self, ref: ClaimRef) -> None:
        """Prepare a claim anew whose record was lost, if it is still allocated under the name that can be read.

        Until then it holds the devices that its CDI spec names.
        """
        try:
            claim = await self._claims.read_claim(ref)
        except ApiNotFoundError:
            claim = None
        except ApiError:
            return
        if claim is None or claim.metadata.uid != ref.uid:
            self._gone_since[ref.uid] = self._clock()
            return
        try:
            record = await self._in_thread(self._preparer.rebuild, ref, claim)
        except ClaimError as error:
            if self._not_rebuilt.get(ref.uid) != str(error):
                self._not_rebuilt[ref.uid] = str(error)
                log.warning("claim record not rebuilt", claim=str(ref), claim_uid=ref.uid, error=str(error))
            return
        self._not_rebuilt.pop(ref.uid, None)
        del self._damaged[ref.uid]
        if record is not None:
            log.info("claim record rebuilt", claim=str(ref), claim_uid=ref.uid)

    async def _unprepare_gone(self) -> None:
        """Unprepare the claims that have been gone from the API server for long, and that the kubelet forgot.

        One of which only a damaged record tells is forgotten: the name may be a wrong one, and the claim alive.
        """
        records = {record.uid: record.ref for record in self._checkpoint.list()}
        known = records | {ref.uid: ref for ref in await self._in_thread(self._preparer.list_lost)}
        asked = known | {uid: ref for uid, ref in self._damaged.items() if uid not in known}
        self._gone_since = {uid: since for uid, since in self._gone_since.items() if uid in asked}
        for ref in asked.values():
            gone = await self._is_gone(ref)
            if gone is False:
                self._gone_since.pop(ref.uid, None)
            if not gone:
                continue
            since = self._gone_since.setdefault(ref.uid, self._clock())
            if self._clock() - since < GONE_FOR_S or await self._in_thread(self._remembers, ref.uid):
                continue
            if ref.uid in known:
                await self._unprepare(ref)
            else:
                self._forget(ref.uid)

    async def _is_gone(self, ref: ClaimRef) -> bool | None:
        """Whether there is no such claim any more; None if nobody knows."""
        try:
            return (await self._claims.read_claim(ref)).metadata.uid != ref.uid
        except ApiNotFoundError:
            return True
        except ApiError:
            return None

    async def _unprepare(self, ref: ClaimRef) -> None:
        try:
            if await self._in_thread(self._preparer.is_busy, ref.uid):
                return
            await self._in_thread(self._preparer.unprepare, ref)
        except (ClaimError, StateError) as error:
            log.warning("claim that is gone not unprepared", claim=str(ref), claim_uid=ref.uid, error=str(error))
        else:
            self._forget(ref.uid)
            log.warning("claim that is gone unprepared", claim=str(ref), claim_uid=ref.uid)

    def _forget(self, uid: str) -> None:
        for notes in (self._damaged, self._gone_since, self._not_rebuilt):
            notes.pop(uid, None)
