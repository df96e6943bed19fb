"""Keeps `status.devices` of claims as their devices are: in the background, never in the way of a prepare.

Written by server-side apply, so that what others say in the same list stays: entries of other drivers, network data.
What cannot be written for now is tried again; of several changes to one claim the last one is written.
When a claim is deallocated the API server itself takes its entries away.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from random import random
from typing import Final, Protocol

import structlog

import cdi
from dra_driver.api.config_v1alpha1 import Strategy
from dra_driver.api.meta_v1 import render_time
from dra_driver.api.resource_v1 import AllocatedDeviceStatus, ResourceClaim
from dra_driver.errors import ApiConflictError, ApiError, ApiNotFoundError, ApiUnavailableError
from dra_driver.kube.backoff import Backoff
from kubeletplugin.catalog import Catalog, Entry
from kubeletplugin.claim_status.entry import (
    Readiness,
    build_entry,
    build_failed_entries,
    explain_readiness,
    is_stored,
    keep_times,
    key_of,
    render_data,
    unique,
)
from kubeletplugin.prepare.record import ClaimRecord, ClaimRef, ClaimState
from kubeletplugin.prepare.spec import Names

log = structlog.get_logger(__name__)

_BACKOFF: Final = Backoff(initial_s=0.5, max_s=30.0)

_Told = tuple[tuple[Readiness, str | None], ...]
"""What was last told of a claim's devices: how they are, and a partition's UUID, which is known a little later."""


class Claims(Protocol):
    """Where claims are, and what is said of their devices."""

    async def read_claim(self, ref: ClaimRef) -> ResourceClaim:
        """Return the claim as the API server has it now. Raises ApiError."""
        ...

    async def apply_devices(self, ref: ClaimRef, devices: tuple[AllocatedDeviceStatus, ...]) -> None:
        """Say this and nothing else of the driver's devices. Raises ApiError, also if the name is another claim's."""
        ...


@dataclass(frozen=True, slots=True)
class _Failure:
    reason: str
    message: str


_Wish = ClaimRecord | _Failure | None
"""What a claim's entries shall say: how the devices of a record are, that they failed, or nothing."""


class ClaimStatusWriter:
    """Takes note of what happens to claims, and writes it. All methods but `run` return at once; use one event loop.

    `daemon_problems` tells, by device, why MPS daemons that are down cannot be used.
    `written(result)` counts writes as `success` or `error`.
    """

    def __init__(  # noqa: PLR0913 - clock and sleep are given by tests only
        self,
        claims: Claims,
        *,
        names: Names,
        pool: str,
        specs: cdi.SpecStore,
        catalog: Callable[[], Catalog],
        daemon_problems: Callable[[], Mapping[str, str]] = dict,
        written: Callable[[str], None] = lambda _: None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._claims = claims
        self._names = names
        self._pool = pool
        self._specs = specs
        self._catalog = catalog
        self._daemon_problems = daemon_problems
        self._written = written
        self._clock = clock
        self._sleep = sleep
        self._waiting: dict[str, tuple[ClaimRef, _Wish]] = {}
        self._told: dict[str, _Told] = {}
        self._wake = asyncio.Event()

    def prepared(self, record: ClaimRecord) -> None:
        """Take note that a claim is prepared."""
        if record.devices:
            self._note(record.ref, record)

    def failed(self, ref: ClaimRef, reason: str, message: str) -> None:
        """Take note that a claim could not be prepared or unprepared."""
        self._note(ref, _Failure(reason, message))

    def unprepared(self, ref: ClaimRef) -> None:
        """Take note that a claim is not prepared any more."""
        self._note(ref, None)

    async def refresh(self, records: Iterable[ClaimRecord]) -> None:
        """Look whether devices of prepared claims have changed, or were not told of by this process yet."""
        for record in await asyncio.to_thread(self._find_changed, tuple(records)):
            if record.uid not in self._waiting:
                self.prepared(record)

    async def follow(self, records: Callable[[], Iterable[ClaimRecord]], interval_s: float) -> None:
        """Refresh every so many seconds, until cancelled."""
        while True:
            await self.refresh(await asyncio.to_thread(records))
            await self._sleep(interval_s)

    async def run(self) -> None:
        """Write what was noted, until cancelled. May be run again after an error, which costs one note."""
        failures = 0
        self._wake.set()
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                uid = next(iter(self._waiting))
                ref, wish = self._waiting.pop(uid)
                try:
                    await self._write(ref, wish)
                except (ApiUnavailableError, ApiConflictError) as error:
                    self._written("error")
                    log.debug("claim status waits", claim=str(ref), claim_uid=uid, error=str(error))
                    self._waiting.setdefault(uid, (ref, wish))
                    await self._sleep(_BACKOFF.delay_s(failures, random()))  # noqa: S311 - spreads load, no secret
                    failures += 1
                except ApiError as error:
                    self._written("error")
                    log.warning("claim status not written", claim=str(ref), claim_uid=uid, error=str(error))
                else:
                    failures = 0

    def _note(self, ref: ClaimRef, wish: _Wish) -> None:
        self._waiting[ref.uid] = (ref, wish)
        self._wake.set()

    async def _write(self, ref: ClaimRef, wish: _Wish) -> None:
        if isinstance(wish, ClaimRecord):
            told, entries = await asyncio.to_thread(self._describe, wish)
            if self._told.get(ref.uid) == told:
                return
            self._told[ref.uid] = told  # also where the API refuses it: asking again would not help
        else:
            self._told.pop(ref.uid, None)
            entries = ()
        try:
            claim = await self._claims.read_claim(ref)
            if claim.metadata.uid != ref.uid or claim.status.allocation is None:
                return  # another one by now, or deallocated: the server has cleared what was said
            if isinstance(wish, _Failure):
                entries = build_failed_entries(claim, self._names.driver, self._pool, wish.reason, wish.message)
            await self._apply(ref, claim, entries)
        except ApiNotFoundError:
            return
        except (ApiUnavailableError, ApiConflictError):
            self._told.pop(ref.uid, None)
            raise

    async def _apply(self, ref: ClaimRef, claim: ResourceClaim, entries: tuple[AllocatedDeviceStatus, ...]) -> None:
        ours = (self._names.driver, self._pool)
        stored = {key_of(each): each for each in claim.status.devices if (each.driver, each.pool) == ours}
        wanted = keep_times(entries, stored, render_time(self._clock()))
        if not is_stored(wanted, stored):
            await self._claims.apply_devices(ref, wanted)
            self._written("success")

    def _describe(self, record: ClaimRecord) -> tuple[_Told, tuple[AllocatedDeviceStatus, ...]]:
        catalog, nodes = self._catalog(), self._read_nodes(record.uid)
        found = [(device, catalog.find(device.device)) for device in record.devices]
        told = _build_told(catalog, record, self._daemon_problems())
        entries = (
            build_entry(
                self._names.driver,
                device,
                readiness,
                render_data(device, entry, nodes.get(self._names.device(record.uid, device), ())),
            )
            for (device, entry), (readiness, _) in zip(found, told, strict=True)
        )
        return told, unique(entries)

    def _read_nodes(self, uid: str) -> dict[str, tuple[str, ...]]:
        """Return the device nodes that containers get, by CDI device; nothing if the spec is gone."""
        try:
            spec = self._specs.read_spec(self._names.spec(uid))
        except cdi.CdiError:
            return {}
        devices = spec.devices if spec is not None else ()
        return {each.name: tuple(node.path for node in each.container_edits.device_nodes) for each in devices}

    def _find_changed(self, records: tuple[ClaimRecord, ...]) -> tuple[ClaimRecord, ...]:
        catalog, problems = self._catalog(), self._daemon_problems()
        return tuple(
            record
            for record in records
            if record.state is ClaimState.COMPLETED
            and self._told.get(record.uid, ()) != _build_told(catalog, record, problems)
        )


def _build_told(catalog: Catalog, record: ClaimRecord, daemon_problems: Mapping[str, str]) -> _Told:
    told = []
    for device in record.devices:
        entry = catalog.find(device.device)
        problem = daemon_problems.get(device.device) if device.strategy is Strategy.MPS else None
        told.append((explain_readiness(entry, problem), _partition_uuid(entry)))
    return tuple(told)


def _partition_uuid(entry: Entry | None) -> str | None:
    return entry.partition.uuid if entry is not None and entry.partition is not None else None
