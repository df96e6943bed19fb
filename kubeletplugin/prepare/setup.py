"""What a record stands for, made and undone: partitions, sharing of devices, files. Each can be repeated."""

import contextlib
from collections.abc import Callable

import structlog

from kubeletplugin.catalog import Catalog
from kubeletplugin.prepare.artifact import Artifacts
from kubeletplugin.prepare.checkpoint import Checkpoint
from kubeletplugin.prepare.entry import find_entry
from kubeletplugin.prepare.holder import Holders
from kubeletplugin.prepare.lock import device_key
from kubeletplugin.prepare.record import ClaimRecord, PreparedDevice
from kubeletplugin.sharing.device_sharing import DEVICE_STRATEGIES, DeviceSharing

log = structlog.get_logger(__name__)


class Setup:
    """Works on one claim, while its caller is the only one who does."""

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
        self._generation = -1

    def apply(self, record: ClaimRecord, catalog: Catalog) -> None:
        """Make all that a record stands for, whatever of it is there already. Raises DeviceError or StateError."""
        for device in record.devices:
            entry = find_entry(device, catalog)
            if entry.partition is not None:
                with self._checkpoint.locks.hold(device_key(entry.device.name)):
                    entry.backend.apply_partition(entry.device, entry.partition)
            elif not device.admin_access:
                entry.backend.apply_whole(entry.device)
        self.apply_sharing(record, catalog)
        self._artifacts.write(record, catalog)

    def notice_others(self) -> None:
        """Trust nothing that was set of devices once another process has worked on claims."""
        generation = self._checkpoint.generation
        if self._generation != generation:
            self._sharing.forget()  # before another thread may take it for done
            self._generation = generation

    def apply_sharing(self, record: ClaimRecord, catalog: Catalog) -> None:
        """Put the devices that a record shares under its strategies. Raises DeviceError or StateError."""
        self.notice_others()
        for device in record.devices:
            if device.strategy in DEVICE_STRATEGIES:
                with self._checkpoint.locks.hold(device_key(device.device)):
                    self._sharing.apply(find_entry(device, catalog), device)

    def undo(self, uid: str, devices: tuple[PreparedDevice, ...]) -> None:
        """Remove all that there may be of a claim, its record last, even one that is only on disk.

        Who has a partition is looked up, and the claim stops to have it, while nobody else makes or removes one of the
        same device: of two claims that have it by admin access, the last one takes it along.
        Raises DeviceError or StateError; the record is there then.
        """
        self._artifacts.remove(uid)
        partitions = {device.device: device for device in devices if device.parent is not None}
        shared = {device.device: device for device in devices if device.strategy in DEVICE_STRATEGIES}
        with contextlib.ExitStack() as held:
            for whole in sorted({device.whole_device for device in (*partitions.values(), *shared.values())}):
                held.enter_context(self._checkpoint.locks.hold(device_key(whole)))
            for device in partitions.values():
                self._undo_partition(device, uid)
            for device in shared.values():
                if not self._is_held(device, besides=uid, shared=True):
                    self._sharing.undo(self._catalog().find(device.device), device)
            self._checkpoint.remove(uid)
        self._holders.forget(uid)

    def _undo_partition(self, device: PreparedDevice, uid: str) -> None:
        """Remove a partition, unless another claim still has it."""
        entry = self._catalog().find(device.device)
        if entry is None or entry.partition is None:
            log.warning("partition gone", device=str(device), claim_uid=uid)
        elif not self._is_held(device, besides=uid):
            entry.backend.undo_partition(entry.device, entry.partition)

    def _is_held(self, device: PreparedDevice, *, besides: str, shared: bool = False) -> bool:
        strategy = device.strategy if shared else None
        with self._checkpoint.owned():
            return self._holders.is_held(device.device, device.whole_device, besides=besides, strategy=strategy)


def shares_devices(record: ClaimRecord) -> bool:
    """Whether a claim has a device that is set to a strategy, which others may change."""
    return any(device.strategy in DEVICE_STRATEGIES for device in record.devices)
