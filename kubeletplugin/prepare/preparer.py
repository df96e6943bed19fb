"""Prepares and unprepares claims: idempotent, one record a claim, safe to be killed between any two lines.

What is written ahead: the record says *started* before anything else exists, and goes last. So everything on disk and
in hardware belongs to a record, and asking again always ends the same way.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import msgspec
import structlog

from dra_driver.api.resource_v1 import ResourceClaim
from dra_driver.errors import ClaimError, DeviceError, DraError, StateError
from kubeletplugin.catalog import Catalog, Entry
from kubeletplugin.prepare.artifact import Artifacts, find_entry
from kubeletplugin.prepare.checkpoint import Checkpoint
from kubeletplugin.prepare.lost import build_lost_record
from kubeletplugin.prepare.plan import plan_claim
from kubeletplugin.prepare.record import ClaimRecord, ClaimRef, ClaimState, PreparedDevice
from kubeletplugin.prepare.room import validate_room
from kubeletplugin.prepare.strategy import read_present
from kubeletplugin.sharing.device_sharing import DEVICE_STRATEGIES, DeviceSharing

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Owned:
    """Which results are this plugin's: those of its driver and its node's pool; `slots` is the most sharers of one.

    `unenforced` is the operator's word that claims may demand strategies that limit nobody.
    """

    driver: str
    pool: str
    slots: int
    unenforced: bool = False


class Preparer:
    """Prepares the claims of one node. Methods block, and may be called from several threads at once.

    Claims are worked on side by side; for one claim, calls wait for each other, so that a prepare that outlives its
    caller is over before the unprepare that follows begins.
    """

    def __init__(
        self,
        owned: Owned,
        *,
        checkpoint: Checkpoint,
        artifacts: Artifacts,
        catalog: Callable[[], Catalog],
        sharing: DeviceSharing | None = None,
    ) -> None:
        self._owned = owned
        self._checkpoint = checkpoint
        self._artifacts = artifacts
        self._catalog = catalog
        self._sharing = sharing or DeviceSharing()
        self._daemons_seen: frozenset[str] | None = None
        self._reserving = threading.Lock()
        self._claims = _KeyedLocks()
        self._wholes = _KeyedLocks()
        self._orphans: set[str] = set()

    def find_prepared(self, ref: ClaimRef) -> ClaimRecord | None:
        """Return the record of a claim that is prepared, having put back files that are missing; None if it is not.

        Raises ClaimError if a file cannot be put back.
        """
        with self._claims.hold(ref.uid):
            return self._find_prepared(ref)

    def prepare(self, ref: ClaimRef, claim: ResourceClaim) -> ClaimRecord:
        """Prepare a claim, as it was read from the API server. Done already is success.

        Raises ClaimError: nothing is prepared then, and the devices are free.
        """
        with self._claims.hold(ref.uid):
            if (done := self._find_prepared(ref)) is not None:
                return done
            catalog = self._catalog()
            planned = plan_claim(
                ref,
                claim,
                driver=self._owned.driver,
                pool=self._owned.pool,
                catalog=catalog,
                present=read_present(self._records(), besides=ref.uid),
                unenforced=self._owned.unenforced,
            )
            started = ClaimRecord(
                namespace=ref.namespace, name=ref.name, uid=ref.uid, state=ClaimState.STARTED, devices=planned
            )
            with self._undone_on_error(started):
                self._reserve(started, catalog)
                self._apply(started, catalog)
                return self._complete(started)

    def unprepare(self, ref: ClaimRef) -> None:
        """Undo a prepare, known by the UID alone. A claim that is not prepared is success.

        Raises ClaimError: what could not be undone is still recorded, and is tried again with the next call.
        """
        with self._claims.hold(ref.uid), _claim_errors(ref):
            records = (record for record in self._records() if record.uid == ref.uid)
            self._undo(ref.uid, tuple(device for record in records for device in record.devices))

    def restore(self) -> tuple[ClaimError, ...]:
        """Put back the files of prepared claims that are missing, as after a reboot. Returns what could not be.

        Also removes partitions that no claim has, nor had when this was called before.
        """
        errors: list[ClaimError] = []
        for record in self._checkpoint.list():
            if record.state is not ClaimState.COMPLETED:
                continue
            if self._artifacts.is_complete(record) and not _shares_devices(record):
                continue  # without a look at the lock, which a claim that hangs keeps
            try:
                self.find_prepared(record.ref)
            except ClaimError as error:
                errors.append(error)
        try:
            self._undo_orphans()
            self._undo_orphan_daemons()
        except StateError as error:
            log.warning("partitions not looked through", error=str(error))
        return tuple(errors)

    def _find_prepared(self, ref: ClaimRef) -> ClaimRecord | None:
        record = self._checkpoint.find(ref.uid)
        if record is None or record.state is not ClaimState.COMPLETED:
            return None
        if not self._artifacts.is_complete(record):
            with _claim_errors(ref):
                self._apply(record, self._catalog())
            log.info("claim restored", claim=str(ref), claim_uid=ref.uid)
        elif _shares_devices(record):
            with _claim_errors(ref):
                self._apply_sharing(record, self._catalog())
        return record

    def _reserve(self, record: ClaimRecord, catalog: Catalog) -> None:
        with self._reserving:
            validate_room(record.ref, record.devices, self._records(), catalog=catalog, slots=self._owned.slots)
            self._checkpoint.write(record)

    def _apply(self, record: ClaimRecord, catalog: Catalog) -> None:
        for device in record.devices:
            entry = find_entry(device, catalog)
            if entry.partition is not None:
                with self._wholes.hold(entry.device.name):
                    entry.backend.apply_partition(entry.device, entry.partition)
        self._apply_sharing(record, catalog)
        self._artifacts.write(record, catalog)

    def _apply_sharing(self, record: ClaimRecord, catalog: Catalog) -> None:
        for device in record.devices:
            if device.strategy in DEVICE_STRATEGIES:
                with self._wholes.hold(device.device):
                    self._sharing.apply(find_entry(device, catalog), device)

    def _complete(self, record: ClaimRecord) -> ClaimRecord:
        completed = msgspec.structs.replace(record, state=ClaimState.COMPLETED)
        self._checkpoint.write(completed)
        return completed

    @contextlib.contextmanager
    def _undone_on_error(self, record: ClaimRecord) -> Iterator[None]:
        """Undo what was applied; an error in that is logged, since the first one is what the user needs."""
        try:
            yield
        except (DeviceError, StateError) as error:
            try:
                self._undo(record.uid, record.devices)
            except DraError as second:
                log.warning("claim half prepared", claim=str(record.ref), claim_uid=record.uid, error=str(second))
            raise ClaimError(f"claim {record.ref}: {error}") from error

    def _undo(self, uid: str, devices: tuple[PreparedDevice, ...]) -> None:
        """Remove all that there may be of a claim, its record last, even one that is only on disk.

        Who has a partition is looked up, and the claim stops to have it, while nobody else makes or removes one of the
        same device: of two claims that have it by admin access, the last one takes it along.
        """
        self._artifacts.remove(uid)
        partitions = {device.device: device for device in devices if device.parent is not None}
        shared = {device.device: device for device in devices if device.strategy in DEVICE_STRATEGIES}
        with contextlib.ExitStack() as held:
            for whole in sorted({device.whole_device for device in (*partitions.values(), *shared.values())}):
                held.enter_context(self._wholes.hold(whole))
            for device in partitions.values():
                self._undo_partition(device, uid)
            for device in shared.values():
                if not self._is_shared(device, besides=uid):
                    self._sharing.undo(self._catalog().find(device.device), device)
            self._checkpoint.remove(uid)

    def _undo_partition(self, device: PreparedDevice, uid: str) -> None:
        """Remove a partition, unless another claim still has it."""
        entry = self._catalog().find(device.device)
        if entry is None or entry.partition is None:
            log.warning("partition gone", device=str(device), claim_uid=uid)
        elif not self._is_held(device.device, besides=uid):
            entry.backend.undo_partition(entry.device, entry.partition)

    def _is_shared(self, device: PreparedDevice, *, besides: str) -> bool:
        others = (record for record in self._records() if record.uid != besides)
        return any(
            each.device == device.device and each.strategy is device.strategy
            for other in others
            for each in other.devices
        )

    def _undo_orphan_daemons(self) -> None:
        """Stop MPS daemons that no claim has: their record was lost. Only at start, and only those seen twice."""
        if self._daemons_seen == frozenset():
            return
        try:
            orphans = frozenset(name for name in self._sharing.read_daemons() if not self._is_held(name))
            for name in sorted(orphans & (self._daemons_seen or frozenset())):
                with self._wholes.hold(name):
                    if not self._is_held(name):
                        self._sharing.undo_daemon(self._catalog().find(name), name)
                        log.info("MPS daemon without a claim stopped", device=name)
        except DeviceError as error:
            log.warning("MPS daemons not looked through", error=str(error))
        else:
            self._daemons_seen = orphans - (self._daemons_seen or frozenset())

    def _undo_orphans(self) -> None:
        """Remove partitions that no claim has: their device was away when the claim was unprepared, or allocated anew.

        The catalog may be a little old, so only those go that were found before.
        """
        before, self._orphans = self._orphans, set()
        for name, entry in self._catalog().entries.items():
            made = entry.partition is not None and entry.partition.uuid is not None and not entry.partition.permanent
            if made and not self._is_held(name):
                self._orphans.add(name)
                if name in before:
                    self._undo_orphan(entry)

    def _undo_orphan(self, entry: Entry) -> None:
        with self._wholes.hold(entry.device.name):
            if entry.partition is None or self._is_held(entry.name):
                return
            try:
                entry.backend.undo_partition(entry.device, entry.partition)
            except DeviceError as error:
                log.warning("partition without a claim not removed", device=entry.name, error=str(error))
            else:
                log.info("partition without a claim removed", device=entry.name)

    def _is_held(self, device: str, *, besides: str = "") -> bool:
        others = (record for record in self._records() if record.uid != besides)
        return any(each.device == device for other in others for each in other.devices)

    def _records(self) -> tuple[ClaimRecord, ...]:
        """Return the records of all claims, with what is known of those whose record was lost."""
        records = self._checkpoint.list()
        lost = self._artifacts.read_unrecorded({record.uid for record in records})
        if not lost:
            return records
        catalog, pool = self._catalog(), self._owned.pool
        return (*records, *(build_lost_record(uid, names, pool=pool, catalog=catalog) for uid, names in lost.items()))


def _shares_devices(record: ClaimRecord) -> bool:
    return any(device.strategy in DEVICE_STRATEGIES for device in record.devices)


@contextlib.contextmanager
def _claim_errors(ref: ClaimRef) -> Iterator[None]:
    """Turn errors of devices and files into errors of the claim that they stopped."""
    try:
        yield
    except (DeviceError, StateError) as error:
        raise ClaimError(f"claim {ref}: {error}") from error


class _KeyedLocks:
    """One lock a key, kept only while somebody holds it or waits for it."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._locks: dict[str, tuple[threading.Lock, int]] = {}

    @contextlib.contextmanager
    def hold(self, key: str) -> Iterator[None]:
        with self._guard:
            lock, users = self._locks.get(key, (threading.Lock(), 0))
            self._locks[key] = (lock, users + 1)
        try:
            with lock:
                yield
        finally:
            with self._guard:
                lock, users = self._locks[key]
                if users == 1:
                    del self._locks[key]
                else:
                    self._locks[key] = (lock, users - 1)
