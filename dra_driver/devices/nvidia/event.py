"""The XID events of cards: reported by NVML as they happen, remembered by card until somebody forgets them."""

import contextlib
import ctypes
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pynvml
import structlog

from dra_driver.devices.nvidia.nvml_error import explain_nvml_error

log = structlog.get_logger(__name__)

_PIECE_MS: Final = 100
"""How long the library is let wait at once: so long does somebody wait who needs the events closed."""


@dataclass(frozen=True, slots=True)
class _Watched:
    """A set of events of the library, and the cards in it: identities by the addresses of their handles."""

    nvml: Any
    events: Any
    cards: Mapping[int, str]


@dataclass(slots=True)
class XidWatch:
    """Waits for XIDs. One thread waits at a time, any thread may ask."""

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _using: threading.Lock = field(default_factory=threading.Lock)
    _turn: threading.Condition = field(default_factory=threading.Condition)
    _pausing: int = 0
    _xids: dict[str, tuple[int, ...]] = field(default_factory=dict)
    _watched: _Watched | None = None

    def find(self, identity: str) -> tuple[int, ...]:
        """The XIDs of a card, each once, in the order in which they came: the cause, and those of programs it ended."""
        with self._lock:
            return self._xids.get(identity, ())

    def forget(self, identity: str) -> None:
        """Begin anew with a card: it was reset."""
        with self._lock:
            self._xids.pop(identity, None)

    def wait(self, nvml: Any, cards: Mapping[str, Any], timeout_s: float) -> bool:
        """Wait for an XID of one of the cards, given by identity and handle; return whether there was one.

        Raises NVMLError if the library is in trouble. A card that reports no events is passed over.
        """
        left_ms = max(int(timeout_s * 1000), 0)
        while True:
            with self._turn:
                self._turn.wait_for(lambda: not self._pausing)
            with self._using:
                watched = self._watch(nvml, cards)
                try:
                    event = nvml.nvmlEventSetWait(watched.events, min(left_ms, _PIECE_MS))
                    break
                except pynvml.NVMLError as error:
                    if error.value != pynvml.NVML_ERROR_TIMEOUT:
                        self._watched = None
                        raise
            left_ms -= _PIECE_MS
            if left_ms <= 0:
                return False
        identity = watched.cards.get(_address(event.device))
        if identity is None or event.eventType != pynvml.nvmlEventTypeXidCriticalError:
            return True
        xid = int(event.eventData)
        log.warning("XID reported", device_uuid=identity, xid=xid)
        with self._lock:
            self._xids[identity] = tuple(dict.fromkeys((*self._xids.get(identity, ()), xid)))
        return True

    def stop(self) -> None:
        """Give the set of events back, before the library is closed."""
        with self.paused():
            pass

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Have no set of events open meanwhile: what is open keeps a card's mode from being switched."""
        with self._turn:
            self._pausing += 1
        try:
            with self._using:
                self._free()
                yield
        finally:
            with self._turn:
                self._pausing -= 1
                self._turn.notify_all()

    def _watch(self, nvml: Any, cards: Mapping[str, Any]) -> _Watched:
        addresses = {_address(handle): identity for identity, handle in cards.items()}
        if self._watched is not None and self._watched.nvml is nvml and self._watched.cards == addresses:
            return self._watched
        self._free()
        events = nvml.nvmlEventSetCreate()
        for identity, handle in cards.items():
            try:
                nvml.nvmlDeviceRegisterEvents(handle, pynvml.nvmlEventTypeXidCriticalError, events)
            except pynvml.NVMLError as error:
                log.info("no events of a card", device_uuid=identity, reason=explain_nvml_error(error))
        self._watched = _Watched(nvml, events, addresses)
        return self._watched

    def _free(self) -> None:
        watched, self._watched = self._watched, None
        if watched is not None:
            try:
                watched.nvml.nvmlEventSetFree(watched.events)
            except pynvml.NVMLError as error:
                log.info("events not freed", reason=explain_nvml_error(error))


def _address(handle: Any) -> int:
    return ctypes.cast(handle, ctypes.c_void_p).value or 0
