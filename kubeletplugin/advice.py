"""Tells an operator which settings come to nothing with the devices that the node has."""

from collections.abc import Callable, Iterator

import structlog

from dra_driver.devices import partitioning, sharing
from dra_driver.devices.model import Inventory
from kubeletplugin.setting import Settings

log = structlog.get_logger(__name__)


class Advice:
    """Remembers what was told: each thing is told once, until it ends. `warn` sends an Event about the Node."""

    def __init__(self, settings: Settings, warn: Callable[[str, str], None]) -> None:
        self._settings = settings
        self._warn = warn
        self._told: frozenset[str] = frozenset()

    def tell(self, inventory: Inventory) -> None:
        """Tell what is new with these devices. While there are none, nothing can be said."""
        told, self._told = self._told, frozenset(explain_settings(self._settings, inventory))
        for problem in sorted(self._told - told):
            log.warning("setting has no effect", problem=problem)
            self._warn("SettingHasNoEffect", problem)


def explain_settings(settings: Settings, inventory: Inventory) -> Iterator[str]:
    """Say which settings come to nothing. Pure. The settings are valid."""
    if not inventory.devices:
        return
    yield from sharing.explain_policy(settings.sharing_policy, inventory.devices, unenforced=settings.share_unenforced)
    yield from partitioning.explain_policy(settings.partition_policy, inventory.devices)
