"""Looks at the node's devices again and again, so that what is added, removed or unwell is noticed while it runs."""

import asyncio
import threading
from collections.abc import Callable, Sequence

import structlog

from dra_driver.devices.backend import Backend
from dra_driver.devices.model import Inventory, LeftOut
from dra_driver.devices.sharing import SharingPolicy, apply_policy
from dra_driver.errors import DeviceError
from kubeletplugin.catalog import Catalog, build_catalog

log = structlog.get_logger(__name__)


class Discovery:
    """The devices of all backends, as last seen, with their sharing strategies.

    A backend that fails keeps what it last reported.
    """

    def __init__(self, backends: Sequence[Backend], sharing: SharingPolicy | None = None) -> None:
        self._backends = tuple(backends)
        self._sharing = sharing or SharingPolicy()
        self._reading = threading.Lock()
        self._seen: dict[str, Inventory] = {}
        self._catalog: Catalog | None = None

    def current(self) -> Catalog:
        """Return the devices as last seen, looking first if nobody has. May block as long as the backends do."""
        return self._catalog or self.read()

    def read(self) -> Catalog:
        """Ask every backend, and return what they see."""
        with self._reading:
            inventories = [
                (backend, apply_policy(self._read_backend(backend), self._sharing)) for backend in self._backends
            ]
            self._catalog = build_catalog(inventories)
            return self._catalog

    async def run(self, interval_s: float, changed: Callable[[Catalog], None]) -> None:
        """Read every `interval_s` seconds, for ever; call `changed` with the first catalog and each different one."""
        last: Inventory | None = None
        while True:
            catalog = await asyncio.to_thread(self.read)
            if catalog.inventory != last:
                last = catalog.inventory
                log.info("devices found", devices=len(last.devices), left_out=len(last.left_out))
                changed(catalog)
            await asyncio.sleep(interval_s)

    def _read_backend(self, backend: Backend) -> Inventory:
        try:
            inventory = backend.read_inventory()
        except DeviceError as error:
            log.warning("backend not readable", backend=backend.name, error=str(error))
            last = self._seen.get(backend.name, Inventory())
            left_out = LeftOut(subject=f"backend {backend.name}", problem=str(error))
            return Inventory(devices=last.devices, left_out=(*last.left_out, left_out))
        self._seen[backend.name] = inventory
        return inventory
