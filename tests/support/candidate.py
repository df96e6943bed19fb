"""Candidates of a leader election whose machines, clocks and connections misbehave as told, in virtual time."""

import asyncio
import random
from dataclasses import dataclass, field

from msgspec.structs import replace

from dra_driver.api.coordination_v1 import Lease
from dra_driver.errors import ApiConflictError, ApiNotFoundError, ApiUnavailableError
from dra_driver.kube.lease import LeaderElection
from dra_driver.kube.resource import LEASES, Resource
from tests.support.virtual_time import now

NAMESPACE, NAME = "dra-driver", "dra-controller"


@dataclass(slots=True)
class Server:
    """One lease, and what was written under it: which reign, whose."""

    lease: Lease | None = None
    version: int = 0
    uids: int = 0
    reigns: int = 0
    writes: list[tuple[int, str]] = field(default_factory=list)

    def get(self) -> Lease:
        if self.lease is None:
            raise ApiNotFoundError("get leases: 404", status=404)
        return self.lease

    def create(self, value: Lease) -> Lease:
        if self.lease is not None:
            raise ApiConflictError("create leases: 409 AlreadyExists", status=409)
        self.uids += 1
        return self._store(replace(value, metadata=replace(value.metadata, uid=f"uid-{self.uids}")))

    def update(self, value: Lease) -> Lease:
        if value.metadata.resource_version != self.get().metadata.resource_version:
            raise ApiConflictError("update leases: 409 Conflict", status=409)
        return self._store(value)

    def delete(self) -> None:
        self.lease = None

    def _store(self, value: Lease) -> Lease:
        self.version += 1
        self.lease = replace(value, metadata=replace(value.metadata, resource_version=str(self.version)))
        return self.lease


class Candidate:
    """A process that wants to lead, and writes every 0.3 s while it does; a LeaseClient of its own as well."""

    def __init__(self, server: Server, name: str, chance: random.Random, *, rate: float = 1.0) -> None:
        self.name = name
        self.server = server
        self.rate = rate
        self.requests = 0
        self.latency_s = 0.01
        self.hangs = False
        self.refused = False
        self.loses_answers = False
        self.ending_s = 0.0
        self.leads = False
        self._awake = asyncio.Event()
        self._awake.set()
        self.election = LeaderElection(
            self,
            namespace=NAMESPACE,
            name=NAME,
            identity=name,
            clock=lambda: now() * rate + 1000.0,
            sleep=self.sleep,
            chance=chance.random,
        )

    def freeze(self) -> None:
        """Stop the process, as SIGSTOP does. Its clock goes on."""
        self._awake.clear()

    def thaw(self) -> None:
        self._awake.set()

    async def run(self) -> None:
        await self.election.run(self._lead)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / self.rate)
        await self._awake.wait()

    async def _lead(self) -> None:
        self.server.reigns += 1
        reign = self.server.reigns
        self.leads = True
        try:
            while True:
                self.write(reign)
                await self.sleep(0.3)
        finally:
            await asyncio.sleep(self.ending_s)
            self.leads = False

    def write(self, reign: int) -> None:
        self.election.confirm()
        self.server.writes.append((reign, self.name))

    # LeaseClient

    async def get(self, resource: Resource[Lease], name: str, *, namespace: str = "") -> Lease:
        assert (resource, name, namespace) == (LEASES, NAME, NAMESPACE)
        await self._send()
        found = self.server.get()
        await self._receive()
        return found

    async def create(self, resource: Resource[Lease], value: Lease) -> Lease:
        await self._send()
        written = self.server.create(value)
        await self._receive()
        return written

    async def update(self, resource: Resource[Lease], value: Lease) -> Lease:
        await self._send()
        written = self.server.update(value)
        await self._receive()
        return written

    async def _send(self) -> None:
        self.requests += 1
        await self._awake.wait()
        if self.refused:
            raise ApiUnavailableError("leases: no answer from the API server: refused")
        if self.hangs:
            await asyncio.Event().wait()
        await asyncio.sleep(self.latency_s)

    async def _receive(self) -> None:
        if self.loses_answers:
            await asyncio.Event().wait()
        await asyncio.sleep(self.latency_s)
        await self._awake.wait()
