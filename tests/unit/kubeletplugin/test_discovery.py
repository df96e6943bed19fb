"""Discovery looks when a backend has news, and does not outlive its task."""

import asyncio
import threading
from dataclasses import replace

from structlog.testing import capture_logs

from dra_driver.devices.model import Device, Health, Inventory
from dra_driver.errors import DeviceError
from kubeletplugin.catalog import Catalog
from kubeletplugin.discovery import Discovery
from tests.support.builder import FakeBackend, a_device
from tests.support.kube import running
from tests.support.wait import until


class Reporting(FakeBackend):
    """A backend whose hardware reports events."""

    def __init__(self, *devices: Device) -> None:
        super().__init__(devices)
        self.news = threading.Event()
        self.waits: list[float] = []

    def wait_for_change(self, timeout_s: float) -> None:
        self.waits.append(timeout_s)
        self.news.wait(10)
        self.news.clear()


class Deaf(FakeBackend):
    """A backend that cannot wait."""

    waits = 0

    def wait_for_change(self, timeout_s: float) -> None:
        self.waits += 1
        raise DeviceError("events: not supported")


async def test_news_are_looked_at_long_before_the_interval_is_over() -> None:
    backend = Reporting(a_device())
    seen: list[Inventory] = []

    def changed(catalog: Catalog) -> None:
        seen.append(catalog.inventory)

    async with running(Discovery([backend]).run(3600.0, changed)):
        await until(lambda: len(seen) == 1 and backend.waits == [3600.0])
        backend.devices = (replace(a_device(), health=Health(reason="xid-79", message="")),)
        backend.news.set()
        await until(lambda: len(seen) == 2)
    backend.news.set()


async def test_a_backend_that_cannot_wait_is_looked_at_in_turn() -> None:
    backend = Deaf((a_device(),))
    seen: list[Inventory] = []
    with capture_logs() as logs:
        async with running(Discovery([backend]).run(0.01, lambda catalog: seen.append(catalog.inventory))):
            await until(lambda: len(seen) == 1)
            backend.devices = ()
            await until(lambda: len(seen) == 2 and backend.waits > 2)
    assert [each["error"] for each in logs if each["log_level"] == "warning"] == ["events: not supported"]


async def test_nobody_waits_for_a_backend_at_the_end() -> None:
    backend = Reporting(a_device())
    async with asyncio.timeout(5), running(Discovery([backend]).run(3600.0, lambda _: None)):
        await until(lambda: backend.waits)
    backend.news.set()
