"""A publisher against the API server of the tests."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from dra_driver.api.core_v1 import ObjectReference
from dra_driver.devices.model import Device, Inventory, LeftOut
from dra_driver.kube.backoff import Backoff
from dra_driver.kube.event import EventType
from kubeletplugin.publish.kube_store import KubeSliceStore
from kubeletplugin.publish.metric import PublishMetrics
from kubeletplugin.publish.publisher import Publisher
from kubeletplugin.publish.timing import PublishTiming
from kubeletplugin.publish.turn import Turn
from tests.support.api_server import Request, TestApiServer
from tests.support.builder import DRIVER, NODE
from tests.support.kube import a_client, running

_QUICK = Backoff(initial_s=0.01, max_s=0.05)
QUICK = PublishTiming(gather_s=0.01, refused_s=0.05, retry=_QUICK, mend=_QUICK)
"""Everything at once, but no dry run without a cause."""


def a_node() -> dict[str, Any]:
    return {"metadata": {"name": NODE}}


@dataclass
class Running:
    """A publisher that runs, and what it told."""

    publisher: Publisher
    registry: CollectorRegistry
    events: list[tuple[str, str]]

    def show(self, *devices: Device, left_out: Iterable[LeftOut] = ()) -> None:
        self.publisher.set_inventory(Inventory(devices=devices, left_out=tuple(left_out)))

    def reasons(self) -> list[str]:
        return [reason for reason, _ in self.events]

    def metric(self, name: str, **labels: str) -> float:
        value = self.registry.get_sample_value(f"dra_kubeletplugin_{name}", labels)
        assert value is not None
        return value

    async def ready(self) -> None:
        async with asyncio.timeout(15):
            await self.publisher.ready.wait()


class _Told:
    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []

    def record(self, target: ObjectReference, reason: str, message: str, *, type: EventType) -> None:  # noqa: A002 - its name in the API
        good = reason == "DevicesNotInUse"
        assert (target.kind, target.name, type is EventType.NORMAL) == ("Node", NODE, good)
        self.events.append((reason, message))


class Pods:
    """Pods of the node: `held` are the extended resources that they hold, None while the kubelet does not say."""

    def __init__(self, *held: str) -> None:
        self.held: frozenset[str] | None = frozenset(held)

    async def read_held(self) -> frozenset[str] | None:
        return self.held


@asynccontextmanager
async def a_publisher(  # noqa: PLR0913 - what a test may want to be otherwise
    server: TestApiServer,
    folder: Path,
    timing: PublishTiming = QUICK,
    turn: Turn | None = None,
    *,
    pods: Pods | None = None,
    hold_s: float = 0.0,
) -> AsyncIterator[Running]:
    """Run a publisher until the block ends."""
    told = _Told()
    registry = CollectorRegistry()
    async with a_client(server, folder) as client:
        publisher = Publisher(
            store=KubeSliceStore(client, node_name=NODE, driver=DRIVER, pods=pods, look_every_s=0.01, hold_s=hold_s),
            events=told,
            metrics=PublishMetrics(registry),
            driver=DRIVER,
            node_name=NODE,
            timing=timing,
            turn=turn,
        )
        async with running(publisher.run()):
            yield Running(publisher, registry, told.events)


def slices(server: TestApiServer) -> list[dict[str, Any]]:
    """What is stored, by name."""
    return server.all("resourceslices")


def device_names(server: TestApiServer, driver: str = DRIVER) -> list[str]:
    return [device["name"] for device in devices(server, driver)]


def devices(server: TestApiServer, driver: str = DRIVER) -> list[dict[str, Any]]:
    ours = [item for item in slices(server) if item["spec"]["driver"] == driver]
    return [device for item in ours for device in item["spec"].get("devices", [])]


def generations(server: TestApiServer) -> list[int]:
    return [item["spec"]["pool"].get("generation", 0) for item in slices(server)]


def writes(server: TestApiServer) -> list[Request]:
    """Requests that changed a slice: no dry runs."""
    return [
        request
        for request in server.requests
        if request.method in ("POST", "PUT", "PATCH", "DELETE")
        and "resourceslices" in request.path
        and "dryRun" not in request.query
    ]
