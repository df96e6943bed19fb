"""The XID events of GPUs: NVML reports them as they happen, once, and they are noted."""

import contextlib
import ctypes
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pynvml
import structlog

from dra_driver.devices.model import DeviceName
from dra_driver.devices.nvidia.nvml_error import explain_nvml_error
from dra_driver.devices.nvidia.xid_note import XidNotes

log = structlog.get_logger(__name__)

_PIECE_MS: Final = 100
"""How long the library is let wait at once: so long does somebody wait who needs the events closed."""


@dataclass(frozen=True, slots=True)
class _Watched:
    """A set of events of the library, and the GPUs in it: device names by the addresses of their handles."""

    nvml: Any
    events: Any
    gpus: Mapping[int, DeviceName]


@dataclass(slots=True)
class XidWatch:
    """Waits for XIDs, and notes them. One thread waits at a time."""

    notes: XidNotes
    _using: threading.Lock = field(default_factory=threading.Lock)
    _turn: threading.Condition = field(default_factory=threading.Condition)
    _pausing: int = 0
    _watched: _Watched | None = None

    def wait(self, nvml: Any, gpus: Mapping[DeviceName, Any], timeout_s: float) -> None:
        """Wait for an XID of one of the GPUs, given by name and handle, and note it.

        Raises NVMLError if the library is in trouble. A GPU that reports no events is passed over.
        """
        left_ms = max(int(timeout_s * 1000), 0)
        while True:
            with self._turn:
                self._turn.wait_for(lambda: not self._pausing)
            with self._using:
                watched = self._watch(nvml, gpus)
                try:
                    event = nvml.nvmlEventSetWait(watched.events, min(left_ms, _PIECE_MS))
                    break
                except pynvml.NVMLError as error:
                    if error.value != pynvml.NVML_ERROR_TIMEOUT:
                        self._free()
                        raise
            left_ms -= _PIECE_MS
            if left_ms <= 0:
                return
        name = watched.gpus.get(_address(event.device))
        if name is not None and event.eventType == pynvml.nvmlEventTypeXidCriticalError:
            xid = int(event.eventData)
            log.warning("XID reported", device=name, xid=xid)
            self.notes.add(name, xid)

    def stop(self) -> None:
        """Give the set of events back, before the library is closed."""
        with self.paused():
            pass

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Have no set of events open meanwhile: what is open keeps a GPU's mode from being switched."""
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

    def _watch(self, nvml: Any, gpus: Mapping[DeviceName, Any]) -> _Watched:
        addresses = {_address(handle): name for name, handle in gpus.items()}
        if self._watched is not None and self._watched.nvml is nvml and self._watched.gpus == addresses:
            return self._watched
        self._free()
        events = nvml.nvmlEventSetCreate()
        for name, handle in gpus.items():
            try:
                nvml.nvmlDeviceRegisterEvents(handle, pynvml.nvmlEventTypeXidCriticalError, events)
            except pynvml.NVMLError as error:
                log.info("no events of a device", device=name, reason=explain_nvml_error(error))
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
