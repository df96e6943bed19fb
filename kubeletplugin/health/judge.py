"""Gives each look at the devices its verdicts, and keeps them over restarts."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import structlog

from dra_driver.devices.model import DeviceName, Health, Inventory
from dra_driver.errors import StateError
from kubeletplugin.health.store import read_memories, write_memories
from kubeletplugin.health.verdict import HoldPolicy, Verdicts, find_ruled_out, restore_verdicts, weigh_health

log = structlog.get_logger(__name__)


class HealthJudge:
    """Replaces what backends see of health by verdicts. Not for several threads at once.

    `path` is where verdicts are kept; `boot_id` is that of this boot, None if it is not known, and then there is never
    a reboot. A file that cannot be read is as none; one that cannot be written is written again at the next look.
    Verdicts of before for one of the reasons `ruled_out` fall at once: settings say that such devices are well.
    `count_damped` is told how many changes of health a look held back.
    """

    def __init__(  # noqa: PLR0913 - all but two are keywords
        self,
        path: Path,
        policy: HoldPolicy,
        *,
        boot_id: str | None,
        ruled_out: frozenset[str] = frozenset(),
        count_damped: Callable[[int], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = path
        self._policy = policy
        self._boot_id = boot_id or ""
        self._ruled_out = ruled_out
        self._count_damped = count_damped
        self._clock = clock
        self._fallen: dict[DeviceName, Health] = {}
        self._verdicts: Verdicts | None = None
        self._written: object = None
        self._problem = ""

    def take_fallen(self) -> dict[DeviceName, Health]:
        """Return the verdicts of before that fell since settings ruled them out: once."""
        fallen, self._fallen = self._fallen, {}
        return fallen

    def judge(self, inventories: Sequence[Inventory]) -> list[Inventory]:
        """Return the inventories with the health that counts, in the same order."""
        before = self._verdicts or self._read()
        seen = [(device.name, device.health) for inventory in inventories for device in inventory.devices]
        self._verdicts = verdicts = weigh_health(before, seen, now_s=self._clock(), policy=self._policy)
        self._count_damped(verdicts.damped)
        self._write(verdicts)
        return [_with_verdicts(inventory, verdicts) for inventory in inventories]

    def _read(self) -> Verdicts:
        try:
            memories, boot_id = read_memories(self._path)
        except StateError as error:
            log.warning("health of devices not remembered", error=str(error))
            return Verdicts()
        self._written = memories if boot_id == self._boot_id else None
        self._fallen = find_ruled_out(memories, self._ruled_out)
        memories = {name: memory for name, memory in memories.items() if name not in self._fallen}
        rebooted = bool(boot_id and self._boot_id and boot_id != self._boot_id)
        return restore_verdicts(memories, rebooted=rebooted, now_s=self._clock())

    def _write(self, verdicts: Verdicts) -> None:
        memories = dict(verdicts.memories)
        if memories == self._written or (self._written is None and not memories and not self._path.exists()):
            return
        try:
            write_memories(self._path, memories, self._boot_id)
        except StateError as error:
            if self._problem != str(error):
                self._problem = str(error)
                log.warning("health of devices not written", error=self._problem)
        else:
            self._problem = ""
            self._written = memories


def _with_verdicts(inventory: Inventory, verdicts: Verdicts) -> Inventory:
    devices = tuple(
        device if (health := verdicts.health_of(device.name)) == device.health else replace(device, health=health)
        for device in inventory.devices
    )
    return inventory if devices == inventory.devices else replace(inventory, devices=devices)
