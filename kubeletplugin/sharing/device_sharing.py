"""Puts a device under the strategy of its shares, and takes it out again when the last one goes.

Whoever calls sees to it that nobody else does so for the same device at the same time, and that claims are recorded
before and forgotten after.
"""

import threading
from collections.abc import Mapping
from typing import Protocol

from dra_driver.api.config_v1alpha1 import Interval, Strategy
from dra_driver.devices.model import Device
from dra_driver.errors import DeviceError
from kubeletplugin.catalog import Entry
from kubeletplugin.prepare.record import PreparedDevice
from kubeletplugin.sharing.mps_state import DaemonState

DEVICE_STRATEGIES = frozenset({Strategy.TIME_SLICING, Strategy.MPS})
"""The strategies that need something of the device; the others are the container's business, or nobody's."""


class MpsDaemons(Protocol):
    """One MPS control daemon a device, which outlives this process. Methods block, and raise DeviceError."""

    def start(self, device: Device, backend: str) -> None:
        """Start the daemon of a device of that backend if none runs, and wait until clients can connect. Repeatable."""
        ...

    def mend(self, device: Device, backend: str) -> None:
        """Do what starting the daemon takes now, without waiting for it: to be repeated until it runs."""
        ...

    def stop(self, device: str) -> None:
        """Stop the daemon of the device of that name, and wait until it is gone. None there is success."""
        ...

    def remove(self, device: str) -> None:
        """Remove what a daemon leaves that was stopped. What cannot be removed stays, and is used by the next one."""
        ...

    def read_left(self) -> frozenset[str]:
        """Return the devices of which something is there that `remove` removes."""
        ...

    def read_states(self) -> Mapping[str, DaemonState]:
        """Return how the daemons are that there are, by the name of their device."""
        ...


class DeviceSharing:
    """Applies strategies to devices. Every method can be repeated, and raises DeviceError."""

    def __init__(self, daemons: MpsDaemons | None = None) -> None:
        self._daemons = daemons
        self._lock = threading.Lock()
        self._intervals: dict[str, Interval] = {}
        self._exclusive: set[str] = set()

    def apply(self, entry: Entry, device: PreparedDevice) -> None:
        """Put the device under the strategy of a share of it. Cheap if that is so already.

        What is set of the device itself is set once by each process: a reboot forgets it, and so may a reload of the
        driver.
        """
        if device.strategy is Strategy.TIME_SLICING:
            self._apply_interval(entry, device.interval or Interval.DEFAULT)
        elif device.strategy is Strategy.MPS:
            if self._daemons is None:
                raise DeviceError(
                    f"device {device}: no MPS daemon can be started, want the flag --mps-image (chart: mps.enabled)"
                )
            self._apply_exclusive(entry)
            self._daemons.start(entry.device, entry.backend.name)

    def mend(self, entry: Entry, device: PreparedDevice, state: DaemonState | None) -> None:
        """Put a device back under the strategy that it is under already, without waiting; `state` is its daemon's."""
        if device.strategy is not Strategy.MPS or self._daemons is None:
            self.apply(entry, device)
            return
        self._apply_exclusive(entry)
        if state is None or state.problem is not None:
            self._daemons.mend(entry.device, entry.backend.name)

    def undo(self, entry: Entry | None, device: PreparedDevice) -> None:
        """Take the device out of the strategy: its last share goes. `entry` is None if the device is gone."""
        if device.strategy is Strategy.TIME_SLICING and entry is not None:
            with self._lock:
                self._intervals.pop(device.device, None)
            entry.backend.undo_time_slice(entry.device)
        elif device.strategy is Strategy.MPS:
            self.undo_daemon(entry, device.device)

    def undo_daemon(self, entry: Entry | None, name: str) -> None:
        """Stop a device's daemon, if daemons can be started at all, then let everybody use the device.

        What the daemon leaves goes last: where no claim has it, it tells the next process that this was not done.
        """
        if self._daemons is not None:
            self._daemons.stop(name)
        with self._lock:
            self._exclusive.discard(name)
        if entry is not None:
            entry.backend.undo_exclusive_process(entry.device)
        if self._daemons is not None:
            self._daemons.remove(name)

    def forget(self) -> None:
        """Trust nothing that was set before: another process may have set it otherwise."""
        with self._lock:
            self._intervals.clear()
            self._exclusive.clear()

    def read_daemons(self) -> Mapping[str, DaemonState]:
        """Return how the daemons are that there are, by the name of their device."""
        return self._daemons.read_states() if self._daemons is not None else {}

    def read_devices(self) -> frozenset[str]:
        """Return the names of the devices that have a daemon, or something left of one."""
        return frozenset(self._daemons.read_states()) | self._daemons.read_left() if self._daemons else frozenset()

    def _apply_exclusive(self, entry: Entry) -> None:
        with self._lock:
            if entry.name in self._exclusive:
                return
        entry.backend.apply_exclusive_process(entry.device)
        with self._lock:
            self._exclusive.add(entry.name)

    def _apply_interval(self, entry: Entry, interval: Interval) -> None:
        with self._lock:
            if self._intervals.get(entry.name) is interval:
                return
        entry.backend.apply_time_slice(entry.device, interval)
        with self._lock:
            self._intervals[entry.name] = interval
