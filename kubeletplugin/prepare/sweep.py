"""Removes what no claim has: partitions, MPS daemons, shim configs, device metadata, and what killed writers left.

Each is looked at again while nobody works on it, so a claim that is being prepared loses nothing.
What somebody works on is left for later: a device that hangs must not keep the rest of the node waiting.
"""

from collections.abc import Callable

import structlog

from dra_driver.errors import DeviceError
from kubeletplugin.catalog import Catalog, Entry
from kubeletplugin.prepare.artifact import Artifacts
from kubeletplugin.prepare.checkpoint import Checkpoint
from kubeletplugin.prepare.holder import Holders
from kubeletplugin.prepare.lock import claim_key, device_key
from kubeletplugin.sharing.device_sharing import DeviceSharing

log = structlog.get_logger(__name__)


class Sweeper:
    """Looks through the node again and again; every method may raise StateError."""

    def __init__(
        self,
        *,
        checkpoint: Checkpoint,
        artifacts: Artifacts,
        holders: Holders,
        sharing: DeviceSharing,
        catalog: Callable[[], Catalog],
    ) -> None:
        self._checkpoint = checkpoint
        self._artifacts = artifacts
        self._holders = holders
        self._sharing = sharing
        self._catalog = catalog
        self._partitions_seen: set[str] = set()
        self._daemons_seen: frozenset[str] | None = None

    def sweep(self) -> None:
        """Look through everything. Devices come last, since what is on the disk tells who has them."""
        self._checkpoint.remove_leftovers()
        self._artifacts.ensure_directories(self._checkpoint.locks)
        with self._checkpoint.owned():
            self._holders.reload()
        self._remove_artifacts()
        self._undo_partitions()
        self._undo_daemons()

    def _remove_artifacts(self) -> None:
        """Remove the shim configs and device metadata of claims that have neither a record nor a CDI spec."""
        lost = {record.uid for record in self._holders.list_lost()}
        for uid in self._artifacts.read_claims():
            if uid in self._checkpoint or uid in lost:
                continue
            with self._checkpoint.locks.try_hold(claim_key(uid)) as held, self._checkpoint.owned():
                if held and uid not in self._checkpoint:
                    self._artifacts.remove(uid)
                    log.info("files without a claim removed", claim_uid=uid)

    def _undo_partitions(self) -> None:
        """Remove partitions that no claim has: their device was away when the claim was unprepared, or allocated anew.

        The catalog may be a little old, so only those go that were found before.
        """
        before, self._partitions_seen = self._partitions_seen, set()
        for name, entry in self._catalog().entries.items():
            made = entry.partition is not None and entry.partition.uuid is not None and not entry.partition.permanent
            if made and not self._is_held(name, entry.device.name):
                self._partitions_seen.add(name)
                if name in before:
                    self._undo_partition(entry)

    def _undo_partition(self, entry: Entry) -> None:
        with self._checkpoint.locks.try_hold(device_key(entry.device.name)) as free:
            if not free or entry.partition is None or self._is_held(entry.name, entry.device.name):
                return
            try:
                entry.backend.undo_partition(entry.device, entry.partition)
            except DeviceError as error:
                log.warning("partition without a claim not removed", device=entry.name, error=str(error))
            else:
                log.info("partition without a claim removed", device=entry.name)

    def _undo_daemons(self) -> None:
        """Stop MPS daemons that no claim has, or go on with that: their record was lost.

        Only at start, and only those seen twice.
        """
        if self._daemons_seen == frozenset():
            return
        seen = self._daemons_seen or frozenset()
        busy: set[str] = set()
        try:
            orphans = frozenset(name for name in self._sharing.read_devices() if not self._is_held(name, name))
            for name in sorted(orphans & seen):
                with self._checkpoint.locks.try_hold(device_key(name)) as free:
                    if not free:
                        busy.add(name)
                    elif not self._is_held(name, name):
                        self._sharing.undo_daemon(self._catalog().find(name), name)
                        log.info("MPS daemon without a claim stopped", device=name)
        except DeviceError as error:
            log.warning("MPS daemons not looked through", error=str(error))
        else:
            self._daemons_seen = orphans - seen | busy

    def _is_held(self, device: str, whole: str) -> bool:
        with self._checkpoint.owned():
            return self._holders.is_held(device, whole)
