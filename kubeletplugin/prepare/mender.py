"""Keeps the devices that claims share under their strategies, and remembers what became of their MPS daemons.

One look asks the API server once, however many claims and devices there are, and once more for a daemon that is down.
It waits for nothing: a daemon that does not come up must not keep the rest of the node waiting.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

import structlog

from dra_driver.api.config_v1alpha1 import Strategy
from dra_driver.errors import ClaimError, DeviceError
from kubeletplugin.catalog import Catalog
from kubeletplugin.prepare.checkpoint import Checkpoint
from kubeletplugin.prepare.entry import find_entry
from kubeletplugin.prepare.holder import Holders
from kubeletplugin.prepare.lock import device_key
from kubeletplugin.prepare.record import ClaimRecord, ClaimRef, PreparedDevice
from kubeletplugin.sharing.device_sharing import DEVICE_STRATEGIES, DeviceSharing
from kubeletplugin.sharing.mps_state import DaemonChange, DaemonHistory, DaemonState

log = structlog.get_logger(__name__)


class Mender:
    """Looks at the devices of prepared claims again and again, in one thread at a time."""

    def __init__(
        self, *, checkpoint: Checkpoint, holders: Holders, sharing: DeviceSharing, catalog: Callable[[], Catalog]
    ) -> None:
        self._checkpoint = checkpoint
        self._holders = holders
        self._sharing = sharing
        self._catalog = catalog
        self._history = DaemonHistory()
        self._changes: tuple[DaemonChange, ...] = ()
        self._daemons: dict[str, DaemonState | None] = {}
        self._unseen: set[str] = set()

    @property
    def daemon_problems(self) -> Mapping[str, str]:
        """Why the MPS daemons that are down cannot be used, by device."""
        return self._history.problems

    def take_daemon_changes(self) -> tuple[DaemonChange, ...]:
        """Return what happened to MPS daemons since this was asked last."""
        changes, self._changes = self._changes, ()
        return changes

    def mend(self, records: Iterable[ClaimRecord]) -> tuple[tuple[ClaimRef, ClaimError], ...]:
        """Put each device of prepared claims back under its strategy. Returns the claims whose devices cannot be.

        Raises StateError.
        """
        shared: dict[str, PreparedDevice] = {}
        holders: defaultdict[str, list[ClaimRef]] = defaultdict(list)
        for record in records:
            for device in record.devices:
                if device.strategy in DEVICE_STRATEGIES:
                    shared[device.device] = device
                    holders[device.device].append(record.ref)
        states = self._read_daemons(shared.values())
        self._daemons, self._unseen = {}, set()
        errors: list[tuple[ClaimRef, ClaimError]] = []
        for name, device in sorted(shared.items()):
            try:
                self._mend(device, states)
            except DeviceError as error:
                self._unseen |= {name} - self._daemons.keys()
                errors += ((ref, ClaimError(f"claim {ref}: {error}")) for ref in holders[name])
        self._changes += self._history.note(self._daemons, unseen=self._unseen)
        return tuple(errors)

    def _read_daemons(self, devices: Iterable[PreparedDevice]) -> Mapping[str, DaemonState] | None:
        """Return how the daemons are; None if nobody knows."""
        if all(device.strategy is not Strategy.MPS for device in devices):
            return {}
        try:
            return self._sharing.read_daemons()
        except DeviceError as error:
            log.warning("MPS daemons not looked at", error=str(error))
            return None

    def _mend(self, device: PreparedDevice, states: Mapping[str, DaemonState] | None) -> None:
        """Mend one device, unless somebody prepares or unprepares it just now."""
        name, is_mps = device.device, device.strategy is Strategy.MPS
        with self._checkpoint.locks.try_hold(device_key(name)) as free:
            if not free or (is_mps and states is None):
                self._unseen.add(name)
                return
            with self._checkpoint.owned():
                if not self._holders.is_held(name, device.whole_device, strategy=device.strategy):
                    return
            state = states.get(name) if states is not None else None
            if is_mps and (state is None or state.problem is not None):
                state = self._sharing.read_daemons().get(name)  # what was seen may be the daemon of an earlier claim
            if is_mps:
                self._daemons[name] = state
            self._sharing.mend(find_entry(device, self._catalog()), device, state)
