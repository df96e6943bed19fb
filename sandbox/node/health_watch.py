"""The kubelet's streams of device health: one a driver that offers it, opened again when it ends."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

import structlog

from sandbox.node.driver import Driver
from sandbox.node.error import DriverCallError, NoHealthError
from sandbox.node.health import DeviceKey, HealthCache
from sandbox.node.registration import Registry

log = structlog.get_logger(__name__)

REOPEN_S: Final = 5.0


class HealthWatch:
    """Follows the drivers of a node. Someone runs `run`, and sets `changed` whenever drivers come or go.

    `told` is called with the devices of which something new is known.
    """

    def __init__(
        self, registry: Registry, told: Callable[[frozenset[DeviceKey]], None], *, reopen_s: float = REOPEN_S
    ) -> None:
        self.changed = asyncio.Event()
        self.cache = HealthCache()
        self._registry = registry
        self._told = told
        self._reopen_s = reopen_s
        self._tasks: dict[Driver, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Follow each registered driver as long as it is registered, until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                while True:
                    self.changed.clear()
                    drivers = {driver for driver in self._registry.drivers.values() if driver.health_version}
                    for driver in self._tasks.keys() - drivers:
                        self._tasks.pop(driver).cancel()
                    for driver in drivers - self._tasks.keys():
                        self._tasks[driver] = tasks.create_task(self._follow(driver))
                    await self.changed.wait()
        finally:
            self._tasks.clear()

    async def _follow(self, driver: Driver) -> None:
        while True:
            try:
                async for reports in driver.watch_health():
                    if changed := self.cache.update(driver.name, reports, time.monotonic()):
                        self._told(changed)
            except NoHealthError:
                return
            except DriverCallError as error:
                log.debug("health stream ended", driver=driver.name, error=str(error))
            finally:
                self.cache.forget(driver.name)
            await asyncio.sleep(self._reopen_s)
