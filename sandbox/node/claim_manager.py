"""Prepares the claims of Pods, and unprepares them when the last Pod is gone.

That a claim is prepared is remembered in memory only: a kubelet that starts again asks for every claim again.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from dra_driver.api.core_v1 import PodResourceClaim
from dra_driver.api.resource_v1 import ResourceClaim
from dra_driver.errors import ApiError
from dra_driver.kube.client import ApiClient
from dra_driver.kube.resource import RESOURCE_CLAIMS, ObjectKey
from sandbox.node.claim_record import ClaimRecord, PreparedDevice
from sandbox.node.claim_rule import collect_cdi_ids, explain_refusal, find_claim_name, list_drivers
from sandbox.node.claim_store import read_records, write_records
from sandbox.node.driver import Driver, Refusal
from sandbox.node.error import NodeError
from sandbox.node.health import DeviceKey
from sandbox.node.pod import Container, Pod
from sandbox.node.registration import Registry

_OLD: Final = "a claim of the same name with UID {} is still prepared, want it unprepared first"


class ClaimManager:
    """The claims of one node. Every method may be called for several Pods at once: claims have a lock each."""

    def __init__(self, directory: Path, client: ApiClient, registry: Registry) -> None:
        self._directory = directory
        self._client = client
        self._registry = registry
        self._records: dict[ObjectKey, ClaimRecord] = {}
        self._prepared: set[str] = set()
        self._locks: defaultdict[ObjectKey, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._writing = asyncio.Lock()

    async def read(self) -> None:
        """Take up what an earlier kubelet left. Raises NodeError."""
        records = await asyncio.to_thread(read_records, self._directory)
        self._records = {ObjectKey(record.namespace, record.name): record for record in records}

    @property
    def pods(self) -> frozenset[str]:
        """The UIDs of all Pods that use claims."""
        return frozenset(uid for record in self._records.values() for uid in record.pods)

    def claims_of(self, pod_uid: str) -> tuple[ClaimRecord, ...]:
        """Return the claims that a Pod uses."""
        return tuple(record for record in self._records.values() if pod_uid in record.pods)

    async def prepare(self, pod: Pod) -> None:
        """Prepare all claims of a Pod, those of one driver in one call. Raises NodeError, to be called again."""
        entries = {entry: find_claim_name(pod, entry) for entry in pod.spec.resource_claims}
        keys = {ObjectKey(pod.metadata.namespace, name) for name in entries.values() if name is not None}
        async with self._locked(keys):
            claims = [await self._read_claim(pod, entry, name) for entry, name in entries.items() if name is not None]
            batches: defaultdict[str, list[ClaimRecord]] = defaultdict(list)
            for claim in claims:
                record = self._take_up(claim, pod)
                for driver in record.devices:
                    if record.uid not in self._prepared:
                        batches[driver].append(record)
            if not claims:
                return
            await self._write()
            for name, records in batches.items():
                await self._call_prepare(self._driver(name), records)
            self._prepared.update(claim.metadata.uid for claim in claims)
            if batches:
                await self._write()

    async def unprepare(self, pod_uid: str) -> None:
        """Let a Pod go: claims that no other Pod uses are unprepared. Raises NodeError, to be called again."""
        keys = {ObjectKey(record.namespace, record.name) for record in self.claims_of(pod_uid)}
        async with self._locked(keys):
            batches: defaultdict[str, list[ClaimRecord]] = defaultdict(list)
            last: list[ObjectKey] = []
            for key in keys:
                record = self._records.get(key)
                if record is None or pod_uid not in record.pods:
                    continue
                if record.pods != (pod_uid,):
                    self._records[key] = record.without_pod(pod_uid)
                    continue
                last.append(key)
                self._prepared.discard(record.uid)
                for driver in record.devices:
                    batches[driver].append(record)
            for name, records in batches.items():
                await self._call_unprepare(self._driver(name), records)
            for key in last:
                del self._records[key]
            if keys:
                await self._write()

    def cdi_ids(self, pod: Pod, container: Container) -> tuple[str, ...]:
        """Return the CDI ids that a container of a prepared Pod gets."""
        return collect_cdi_ids(container, self.records_of(pod))

    def records_of(self, pod: Pod) -> dict[str, ClaimRecord]:
        """Return the claims that the Pod uses here, by the names that it has for them."""
        entries = {entry.name: find_claim_name(pod, entry) for entry in pod.spec.resource_claims}
        keys = {alias: ObjectKey(pod.metadata.namespace, name) for alias, name in entries.items() if name is not None}
        used = {alias: self._records.get(key) for alias, key in keys.items()}
        return {alias: record for alias, record in used.items() if record is not None}

    def pods_with(self, devices: frozenset[DeviceKey]) -> frozenset[str]:
        """Return the UIDs of the Pods that have one of these devices."""
        return frozenset(
            uid
            for record in self._records.values()
            for uid in record.pods
            if any(
                (driver, device.pool, device.device) in devices
                for driver, prepared in record.devices.items()
                for device in prepared
            )
        )

    async def _read_claim(self, pod: Pod, entry: PodResourceClaim, name: str) -> ResourceClaim:
        try:
            claim = await self._client.get(RESOURCE_CLAIMS, name, namespace=pod.metadata.namespace)
        except ApiError as error:
            raise NodeError(f"claim {pod.metadata.namespace}/{name}: {error}") from error
        if (problem := explain_refusal(pod, entry, claim)) is not None:
            raise NodeError(problem)
        return claim

    def _take_up(self, claim: ResourceClaim, pod: Pod) -> ClaimRecord:
        """Note that the Pod uses the claim. Raises NodeError if it cannot."""
        key = ObjectKey(claim.metadata.namespace, claim.metadata.name)
        record = self._records.get(key)
        if record is not None and record.uid != claim.metadata.uid:
            raise NodeError(f"claim {key}: {_OLD.format(record.uid)}")
        drivers = list_drivers(claim)
        for driver in drivers:
            self._driver(driver)
        if record is None:
            devices: dict[str, tuple[PreparedDevice, ...]] = dict.fromkeys(drivers, ())
            record = ClaimRecord(uid=claim.metadata.uid, namespace=key.namespace, name=key.name, devices=devices)
        self._records[key] = record = record.with_pod(pod.metadata.uid)
        return record

    def _driver(self, name: str) -> Driver:
        driver = self._registry.find(name)
        if driver is None:
            raise NodeError(f"driver {name}: not registered on this node")
        return driver

    async def _call_prepare(self, driver: Driver, records: Iterable[ClaimRecord]) -> None:
        by_uid = {record.uid: record for record in records}
        answers = await driver.prepare([record.claim for record in by_uid.values()])
        refused = []
        for uid, record in by_uid.items():
            answer = answers[uid]
            if isinstance(answer, Refusal):
                refused.append(f"claim {record.claim}: {answer.problem}")
                continue
            key = ObjectKey(record.namespace, record.name)
            self._records[key] = self._records[key].with_devices(driver.name, answer)
        if refused:
            raise NodeError("; ".join(refused))

    async def _call_unprepare(self, driver: Driver, records: Iterable[ClaimRecord]) -> None:
        by_uid = {record.uid: record for record in records}
        answers = await driver.unprepare([record.claim for record in by_uid.values()])
        refused = [
            f"claim {by_uid[uid].claim}: {answer.problem}" for uid, answer in answers.items() if answer is not None
        ]
        if refused:
            raise NodeError("; ".join(refused))

    async def _write(self) -> None:
        async with self._writing:
            await asyncio.to_thread(write_records, self._directory, tuple(self._records.values()))

    @asynccontextmanager
    async def _locked(self, keys: Iterable[ObjectKey]) -> AsyncIterator[None]:
        """Keep others off some claims. In one order, so that nobody waits for one who waits."""
        async with AsyncExitStack() as stack:
            for key in sorted(keys):
                await stack.enter_async_context(self._locks[key])
            yield
