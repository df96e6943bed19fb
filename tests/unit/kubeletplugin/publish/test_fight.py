"""Whoever changes slices again and again gets an answer each time, but ever more slowly: an hour of it, in no time."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from dra_driver.allocator import Allocator
from dra_driver.api.core_v1 import ObjectReference
from dra_driver.api.resource_v1 import ResourceSlice
from dra_driver.devices.model import Device, Inventory
from dra_driver.errors import ApiConflictError
from dra_driver.kube.event import EventType
from kubeletplugin.publish.metric import PublishMetrics
from kubeletplugin.publish.publisher import Publisher
from kubeletplugin.publish.store import NodeFacts
from tests.support.builder import DRIVER, NODE, a_device
from tests.support.kube import running
from tests.support.virtual_time import now, run_virtually

HOUR_S = 3600.0
MOST_WRITES = 300  # one every 15 to 30 seconds, and some at the start


class Cluster:
    """An API server's slices of the node, with optimistic locking, and when each publisher wrote."""

    def __init__(self) -> None:
        self.slices: dict[str, ResourceSlice] = {}
        self.writes_s: list[float] = []
        self.notices: list[Callable[[], None]] = []
        self._versions = itertools.count(1)

    def put(self, item: ResourceSlice, uid: str = "") -> ResourceSlice:
        version = str(next(self._versions))
        metadata = replace(item.metadata, uid=uid or f"uid-{version}", resource_version=version)
        self.slices[item.metadata.name] = replace(item, metadata=metadata)
        self._tell()
        return self.slices[item.metadata.name]

    def remove(self, name: str) -> None:
        del self.slices[name]
        self._tell()

    def _tell(self) -> None:
        for notice in self.notices:
            notice()

    def spoil(self) -> None:
        """Empty every slice, as somebody else would."""
        for item in tuple(self.slices.values()):
            self.put(replace(item, spec=replace(item.spec, devices=())), item.metadata.uid)

    def remove_all(self) -> None:
        for name in tuple(self.slices):
            self.remove(name)


class Store:
    """Implements `SliceStore` for one publisher. Each request takes a little time."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def follow(self, notice: Callable[[], None], _: Callable[[], None]) -> None:
        self._cluster.notices.append(notice)
        await asyncio.Event().wait()

    def slices(self) -> tuple[ResourceSlice, ...]:
        return tuple(self._cluster.slices.values())

    async def list_slices(self) -> tuple[ResourceSlice, ...]:
        await asyncio.sleep(0.01)
        return self.slices()

    async def create_slice(self, item: ResourceSlice, *, dry_run: bool = False) -> ResourceSlice:
        await asyncio.sleep(0.01)
        if dry_run:
            return item
        if item.metadata.name in self._cluster.slices:
            raise ApiConflictError("create: 409", status=409, reason="AlreadyExists")
        self._cluster.writes_s.append(now())
        return self._cluster.put(item)

    async def update_slice(self, item: ResourceSlice) -> ResourceSlice:
        await asyncio.sleep(0.01)
        self._require(item)
        self._cluster.writes_s.append(now())
        return self._cluster.put(item, item.metadata.uid)

    async def delete_slice(self, item: ResourceSlice) -> None:
        await asyncio.sleep(0.01)
        self._require(item)
        self._cluster.writes_s.append(now())
        self._cluster.remove(item.metadata.name)

    def node(self) -> NodeFacts:
        return NodeFacts(uid="uid-of-node-a", allocator=Allocator.SCHEDULER)

    async def read_node(self) -> NodeFacts:
        return self.node()

    def _require(self, item: ResourceSlice) -> None:
        stored = self._cluster.slices.get(item.metadata.name)
        if stored is None or stored.metadata.resource_version != item.metadata.resource_version:
            raise ApiConflictError("update: 409", status=409, reason="Conflict")


class Silent:
    def record(self, target: ObjectReference, reason: str, message: str, *, type: EventType) -> None:  # noqa: A002 - its name
        pass


@asynccontextmanager
async def a_publisher(cluster: Cluster, *devices: Device) -> AsyncIterator[Publisher]:
    publisher = Publisher(
        store=Store(cluster),
        events=Silent(),
        metrics=PublishMetrics(CollectorRegistry()),
        driver=DRIVER,
        node_name=NODE,
    )
    async with running(publisher.run()):
        publisher.set_inventory(Inventory(devices=devices))
        await publisher.ready.wait()
        yield publisher


def some_devices(count: int, model: str = "H100") -> list[Device]:
    return [a_device(f"GPU-{number}", model=model) for number in range(count)]


@pytest.mark.parametrize("every_s", [0.5, 20.0])
@pytest.mark.parametrize("harm", [Cluster.spoil, Cluster.remove_all])
def test_somebody_who_spoils_slices_for_an_hour_costs_few_writes_and_loses(
    harm: Callable[[Cluster], None], every_s: float
) -> None:
    async def fight() -> tuple[int, list[ResourceSlice], list[ResourceSlice]]:
        cluster = Cluster()
        async with a_publisher(cluster, *some_devices(2)):
            before = list(cluster.slices.values())
            cluster.writes_s.clear()
            while now() < HOUR_S:
                harm(cluster)
                await asyncio.sleep(every_s)
            writes = len(cluster.writes_s)
            await asyncio.sleep(60)
            return writes, before, list(cluster.slices.values())

    writes, before, after = run_virtually(fight())
    assert 0 < writes <= MOST_WRITES
    assert [item.spec.devices for item in after] == [item.spec.devices for item in before]


def test_two_publishers_that_want_different_slices_and_know_nothing_of_each_other_write_seldom() -> None:
    async def fight() -> int:
        cluster = Cluster()
        async with AsyncExitStack() as stack:
            for version in ("old", "new"):
                await stack.enter_async_context(a_publisher(cluster, *some_devices(1, version)))
            await asyncio.sleep(HOUR_S)
        return len(cluster.writes_s)

    assert run_virtually(fight()) <= 2 * MOST_WRITES


def test_what_is_changed_once_in_a_while_is_mended_at_once() -> None:
    async def fight() -> list[float]:
        cluster = Cluster()
        took_s: list[float] = []
        async with a_publisher(cluster, *some_devices(1)):
            for _ in range(5):
                await asyncio.sleep(120)
                spoilt_s, known = now(), len(cluster.writes_s)
                cluster.spoil()
                while len(cluster.writes_s) == known:  # noqa: ASYNC110 - in virtual time
                    await asyncio.sleep(0.01)
                took_s.append(now() - spoilt_s)
        return took_s

    assert max(run_virtually(fight())) < 0.5


def test_a_change_of_devices_is_published_at_once_in_the_middle_of_a_fight() -> None:
    async def fight() -> float:
        cluster = Cluster()

        async def spoil() -> None:
            while True:
                cluster.spoil()
                await asyncio.sleep(0.5)

        async with a_publisher(cluster, *some_devices(1)) as publisher, running(spoil()):
            await asyncio.sleep(HOUR_S)
            changed_s, known = now(), len(cluster.writes_s)
            publisher.set_inventory(Inventory(devices=tuple(some_devices(2))))
            while len(cluster.writes_s) == known:  # noqa: ASYNC110 - in virtual time
                await asyncio.sleep(0.01)
            return now() - changed_s

    assert run_virtually(fight()) < 1
