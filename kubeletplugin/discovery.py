"""Looks at the node's devices again and again, so that what is added, removed or unwell is noticed while it runs."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import structlog

from dra_driver.devices.backend import Backend
from dra_driver.devices.model import Inventory, LeftOut
from dra_driver.devices.sharing import SharingPolicy, apply_policy
from dra_driver.errors import DeviceError
from kubeletplugin.catalog import Catalog, build_catalog

log = structlog.get_logger(__name__)

GATHER_S: Final = 0.02
"""How long events of the hardware are gathered before a look, so that many of them are one."""


class Judge(Protocol):
    """Who decides which devices are well."""

    def judge(self, inventories: Sequence[Inventory]) -> list[Inventory]:
        """Return the inventories with the health that counts, in the same order."""
        ...


class Discovery:
    """The devices of all backends, as last seen, with their sharing strategies.

    A backend that fails keeps what it last reported.
    """

    def __init__(
        self, backends: Sequence[Backend], sharing: SharingPolicy | None = None, judge: Judge | None = None
    ) -> None:
        self._backends = tuple(backends)
        self._sharing = sharing or SharingPolicy()
        self._judge = judge
        self._reading = threading.Lock()
        self._seen: dict[str, Inventory] = {}
        self._problems: dict[str, str] = {}
        self._catalog: Catalog | None = None
        self._looked_at_s = time.monotonic()

    def age_s(self) -> float:
        """Return the seconds since the devices were last looked at, or since the start."""
        return time.monotonic() - self._looked_at_s

    def current(self) -> Catalog:
        """Return the devices as last seen, looking first if nobody has. May block as long as the backends do."""
        return self._catalog or self.read()

    def read(self) -> Catalog:
        """Ask every backend, and return what they see."""
        with self._reading:
            inventories = [apply_policy(self._read_backend(backend), self._sharing) for backend in self._backends]
            if self._judge is not None:
                inventories = self._judge.judge(inventories)
            self._catalog = build_catalog(zip(self._backends, inventories, strict=True))
            self._looked_at_s = time.monotonic()
            return self._catalog

    async def run(self, interval_s: float, changed: Callable[[Catalog], None]) -> None:
        """Read when a backend knows of something new, and every `interval_s` seconds, for ever.

        Calls `changed` with the first catalog and each different one. The threads that wait for the backends are
        nobody's concern at the end: each ends by itself within `interval_s`, and a process does not wait for them.
        """
        last: Inventory | None = None
        news, ended = asyncio.Event(), threading.Event()
        loop = asyncio.get_running_loop()

        def tell() -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits for news any more
                loop.call_soon_threadsafe(news.set)

        try:
            for backend in self._backends:
                arguments, name = (backend, interval_s, tell, ended), f"wait-{backend.name}"
                threading.Thread(target=_wait_for_news, args=arguments, name=name, daemon=True).start()
            while True:
                news.clear()
                catalog = await asyncio.to_thread(self.read)
                if catalog.inventory != last:
                    last = catalog.inventory
                    log.info("devices found", devices=len(last.devices), left_out=len(last.left_out))
                    changed(catalog)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(interval_s):
                        await news.wait()
                await asyncio.sleep(GATHER_S)
        finally:
            ended.set()

    def _read_backend(self, backend: Backend) -> Inventory:
        try:
            inventory = backend.read_inventory()
        except DeviceError as error:
            if self._problems.get(backend.name) != str(error):
                self._problems[backend.name] = str(error)
                log.warning("backend not readable", backend=backend.name, error=str(error))
            last = self._seen.get(backend.name, Inventory())
            left_out = LeftOut(subject=f"backend {backend.name}", problem=str(error))
            return Inventory(devices=last.devices, left_out=(*last.left_out, left_out))
        self._seen[backend.name] = inventory
        self._problems.pop(backend.name, None)
        return inventory


def _wait_for_news(backend: Backend, interval_s: float, tell: Callable[[], None], ended: threading.Event) -> None:
    """Tell of everything that may be new, until told to end. A backend that cannot wait is looked at in turn."""
    problem = ""
    while not ended.is_set():
        try:
            backend.wait_for_change(interval_s)
            problem = ""
        except (DeviceError, OSError) as error:
            if problem != str(error):
                problem = str(error)
                log.warning("backend reports no events", backend=backend.name, error=problem)
            ended.wait(interval_s)
        tell()
