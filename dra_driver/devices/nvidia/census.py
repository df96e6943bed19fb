"""The cards of a node, over time: what was read once and is not readable any more is unwell, not gone."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pynvml

from dra_driver.devices.model import Device, Health, LeftOut
from dra_driver.devices.nvidia.event import XidWatch
from dra_driver.devices.nvidia.health import RESET_REASONS
from dra_driver.devices.nvidia.link import build_links
from dra_driver.devices.nvidia.nvml_error import explain_error
from dra_driver.devices.nvidia.reader import Card, read_card, read_versions
from dra_driver.devices.nvidia.xid import explain_xid
from dra_driver.errors import DeviceError

_LOST: Final = Health(reason="gpu-lost", message="the GPU has fallen off the bus; want the node rebooted")


@dataclass(slots=True)
class Census:
    """Reads all cards again and again. `handles` are those of the cards that answered last, by identity.

    One thread reads at a time.
    """

    sysfs: Path
    xids: XidWatch
    ignored_xids: frozenset[int] = frozenset()
    handles: Mapping[str, Any] = field(default_factory=dict)
    _known: dict[int, Card] = field(default_factory=dict)
    _unwell: frozenset[str] = frozenset()

    def read(self, nvml: Any) -> tuple[tuple[Device, ...], tuple[LeftOut, ...]]:
        """Return the cards in the order of their PCI addresses, and those of which nothing is known.

        Raises NVMLError if no card can be read at all.
        """
        cards, failed = self._read_cards(nvml)
        answering = {card.device.identity for card in cards.values()}
        left_out: list[LeftOut] = []
        silent: dict[int, Card] = {}
        for index, error in failed.items():
            card = self._known.get(index)
            if card is not None and card.device.identity not in answering:
                silent[index] = replace(card, device=replace(card.device, health=_explain_silence(error)))
            else:
                left_out.append(LeftOut(subject=f"GPU {index}", problem=explain_error(error)))
        self._known = cards | silent
        unwell = frozenset(card.device.identity for card in self._known.values() if _wants_reset(card))
        self._forget_mended(answering - unwell)
        self._unwell = unwell
        return self._join(tuple(self._known.values())), tuple(left_out)

    def _read_cards(self, nvml: Any) -> tuple[dict[int, Card], dict[int, pynvml.NVMLError | DeviceError]]:
        versions = read_versions(nvml)
        cards: dict[int, Card] = {}
        failed: dict[int, pynvml.NVMLError | DeviceError] = {}
        handles: dict[str, Any] = {}
        for index in range(nvml.nvmlDeviceGetCount()):
            try:
                handle = nvml.nvmlDeviceGetHandleByIndex(index)
                card = read_card(nvml, handle, index, versions, sysfs=self.sysfs)
            except (pynvml.NVMLError, DeviceError) as error:
                failed[index] = error
            else:
                cards[index] = card
                handles[card.device.identity] = handle
        self.handles = handles
        return cards, failed

    def _forget_mended(self, well: set[str]) -> None:
        """A card that was lost, or wanted a reset, and is well again was reset: its XIDs are of the past."""
        for identity in self._unwell & well:
            self.xids.forget(identity)

    def _join(self, cards: tuple[Card, ...]) -> tuple[Device, ...]:
        links = build_links([card.ports for card in cards])
        devices = (
            replace(card.device, link=links.get(card.device.identity), health=self._find_health(card.device))
            for card in cards
        )
        return tuple(sorted(devices, key=lambda device: (device.pci_bus_id or "", device.identity)))

    def _find_health(self, device: Device) -> Health | None:
        """What the card says of itself counts before what happened to it."""
        if device.health is not None:
            return device.health
        meanings = (explain_xid(xid, ignored=self.ignored_xids) for xid in self.xids.find(device.identity))
        return next((health for health in meanings if health is not None), None)


def _wants_reset(card: Card) -> bool:
    health = card.device.health
    return health is not None and (health == _LOST or health.reason in RESET_REASONS)


def _explain_silence(error: pynvml.NVMLError | DeviceError) -> Health:
    if isinstance(error, pynvml.NVMLError) and error.value == pynvml.NVML_ERROR_GPU_IS_LOST:
        return _LOST
    return Health(reason="unreadable", message=explain_error(error))
