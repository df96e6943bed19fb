"""Prepares and unprepares claims: idempotent, one record a claim, safe to be killed between any two lines.

What is written ahead: the record says *started* before anything else exists, and goes last. So everything on disk and
in hardware belongs to a record, and asking again always ends the same way.
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import msgspec
import structlog

from dra_driver.api.resource_v1 import ResourceClaim
from dra_driver.errors import ClaimError, DeviceBusyError, DeviceError, DraError, StateError
from kubeletplugin.catalog import Catalog
from kubeletplugin.prepare.artifact import Artifacts
from kubeletplugin.prepare.checkpoint import Checkpoint
from kubeletplugin.prepare.entry import lacks_partition
from kubeletplugin.prepare.holder import Holders
from kubeletplugin.prepare.lock import claim_key
from kubeletplugin.prepare.lost import UNKNOWN
from kubeletplugin.prepare.mender import Mender
from kubeletplugin.prepare.plan import plan_claim
from kubeletplugin.prepare.record import ClaimRecord, ClaimRef, ClaimState, PreparedDevice
from kubeletplugin.prepare.room import validate_room
from kubeletplugin.prepare.setup import Setup, shares_devices
from kubeletplugin.prepare.strategy import read_present
from kubeletplugin.prepare.sweep import Sweeper
from kubeletplugin.sharing.device_sharing import DeviceSharing

log = structlog.get_logger(__name__)

POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
"""The annotation of a claim that was made from a template: what its Pod calls it."""


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
    """Prepares the claims of one node. Methods block, and may be called from several threads and processes at once.

    Claims are worked on side by side; for one claim, calls wait for each other, so that a prepare that outlives its
    caller is over before the unprepare that follows begins. Locks are taken in this order: the claim, its devices by
    name, the reservation, the checkpoint.

    `boot_id` tells this boot of the kernel from those before; None if that is not known.
    """

    def __init__(  # noqa: PLR0913 - all but one are keywords
        self,
        owned: Owned,
        *,
        checkpoint: Checkpoint,
        artifacts: Artifacts,
        catalog: Callable[[], Catalog],
        sharing: DeviceSharing | None = None,
        boot_id: str | None = None,
    ) -> None:
        self._owned = owned
        self._checkpoint = checkpoint
        self._artifacts = artifacts
        self._catalog = catalog
        self._boot_id = boot_id
        self._lacking: set[str] = set()
        sharing = sharing or DeviceSharing()
        self._holders = holders = Holders(checkpoint, artifacts, pool=owned.pool, catalog=catalog)
        self._setup = Setup(
            checkpoint=checkpoint, artifacts=artifacts, holders=holders, sharing=sharing, catalog=catalog
        )
        self._mender = Mender(checkpoint=checkpoint, holders=holders, sharing=sharing, catalog=catalog)
        self._sweeper = Sweeper(
            checkpoint=checkpoint, artifacts=artifacts, holders=holders, sharing=sharing, catalog=catalog
        )

    def find_prepared(self, ref: ClaimRef) -> ClaimRecord | None:
        """Return the record of a claim that is prepared, having put back files that are missing; None if it is not.

        Raises ClaimError if a file cannot be put back.
        """
        with _claim_errors(ref), self.working_on(ref.uid):
            return self._find_prepared(ref)

    def prepare(self, ref: ClaimRef, claim: ResourceClaim) -> ClaimRecord:
        """Prepare a claim, as it was read from the API server. Done already is success.

        Raises ClaimError: nothing is prepared then, and the devices are free.
        """
        with _claim_errors(ref), self.working_on(ref.uid):
            return self._find_prepared(ref) or self._prepare(ref, claim)

    def rebuild(self, ref: ClaimRef, claim: ResourceClaim) -> ClaimRecord | None:
        """Prepare a claim anew whose record was lost, unless it has been unprepared since: then return None.

        Raises ClaimError.
        """
        with _claim_errors(ref), self.working_on(ref.uid):
            if (record := self._find(ref.uid)) is not None or self._holders.read_lost(ref) is None:
                return record
            return self._prepare(ref, claim)

    def list_lost(self) -> tuple[ClaimRef, ...]:
        """Return the claims whose record was lost, and whose CDI spec tells which ones they are."""
        return tuple(record.ref for record in self._holders.list_lost() if record.name != UNKNOWN)

    def unprepare(self, ref: ClaimRef) -> None:
        """Undo a prepare, known by the UID alone. A claim that is not prepared is success.

        Raises ClaimError: what could not be undone is still recorded, and is tried again with the next call.
        """
        with _claim_errors(ref), self.working_on(ref.uid):
            record = self._find(ref.uid)
            if record is None and (record := self._holders.read_lost(ref)) is not None:
                with contextlib.suppress(StateError):  # a full disk: what is lost stays so until it is undone
                    self._checkpoint.write(record)
            self._setup.undo(ref.uid, record.devices if record is not None else ())

    def restore(self) -> tuple[tuple[ClaimRef, ClaimError], ...]:
        """Put back what is missing of prepared claims, as after a reboot, or the reset of a GPU with partitions.

        Returns the claims of which something could not be put back, and why. Raises StateError if nobody can look.
        """
        errors: list[tuple[ClaimRef, ClaimError]] = []
        with self._checkpoint.owned():
            records = sorted(self._checkpoint.list(), key=shares_devices)  # those last that may wait for a daemon
        halved = self._find_halved(records)
        for record in records:
            if record.state is not ClaimState.COMPLETED:
                continue
            if self._is_set_up(record) and self._artifacts.is_complete(record) and record.uid not in halved:
                continue  # without a look at the lock, which a claim that hangs keeps
            try:
                found = self.find_prepared(record.ref)
            except ClaimError as error:
                errors.append((record.ref, error))
            else:
                if found is not None and record.uid in halved:
                    log.warning("partition of a claim gone, made again", claim=str(record.ref), claim_uid=record.uid)
        self._setup.notice_others()
        mended = self._mender.mend(record for record in records if record.state is ClaimState.COMPLETED)
        return tuple({**dict(mended), **dict(errors)}.items())

    def sweep(self) -> None:
        """Remove what no claim has. Raises StateError."""
        self._sweeper.sweep()

    @property
    def mender(self) -> Mender:
        """What keeps shared devices under their strategies; `restore` has it work."""
        return self._mender

    def is_busy(self, uid: str) -> bool:
        """Whether somebody works on a claim just now, in whichever process. Raises StateError."""
        with self._checkpoint.locks.try_hold(claim_key(uid)) as held:
            return not held

    @contextlib.contextmanager
    def working_on(self, uid: str) -> Iterator[None]:
        """Be the only one who works on a claim, in whichever process. Raises StateError."""
        with self._checkpoint.locks.hold(claim_key(uid)):
            yield

    def _find(self, uid: str) -> ClaimRecord | None:
        with self._checkpoint.owned():
            return self._checkpoint.find(uid)

    def _prepare(self, ref: ClaimRef, claim: ResourceClaim) -> ClaimRecord:
        self._undo_other(ref, claim)
        catalog = self._catalog()
        with self._undone_on_error(ref):
            started = self._reserve(ref, claim, catalog)
            self._setup.apply(started, catalog)
            return self._complete(started)

    def _find_prepared(self, ref: ClaimRef) -> ClaimRecord | None:
        record = self._find(ref.uid)
        if record is None or record.state is not ClaimState.COMPLETED:
            return None
        if not self._is_set_up(record):
            self._setup.apply(record, self._catalog())
            record = self._complete(record)
            log.info("claim set up again after a reboot", claim=str(ref), claim_uid=ref.uid)
        elif not self._artifacts.is_complete(record):
            self._setup.apply(record, self._catalog())
            log.info("claim restored", claim=str(ref), claim_uid=ref.uid)
        elif lacks_partition(record, self._catalog()):
            self._setup.apply(record, self._catalog())
        elif shares_devices(record):
            self._setup.apply_sharing(record, self._catalog())
        return record

    def _find_halved(self, records: list[ClaimRecord]) -> set[str]:
        """The claims that lacked a partition at the last look, too: the catalog may be older than one of them."""
        before = self._lacking
        self._lacking = {record.uid for record in records if lacks_partition(record, self._catalog())}
        return {uid for uid in self._lacking & before if not self.is_busy(uid)}

    def _is_set_up(self, record: ClaimRecord) -> bool:
        """Whether that was done under this kernel, as far as anybody knows."""
        return self._boot_id is None or record.boot_id == self._boot_id

    def _undo_other(self, ref: ClaimRef, claim: ResourceClaim) -> None:
        """Undo what was half prepared of an older allocation of the claim, which had other devices."""
        record = self._find(ref.uid)
        if record is None or {device.device for device in record.devices} <= set(self._results(claim)):
            return
        self._setup.undo(ref.uid, record.devices)

    def _results(self, claim: ResourceClaim) -> tuple[str, ...]:
        """The names of the devices that a claim has of this driver."""
        if claim.status is None or claim.status.allocation is None:
            return ()
        results = claim.status.allocation.devices.results
        return tuple(result.device for result in results if result.driver == self._owned.driver)

    def _reserve(self, ref: ClaimRef, claim: ResourceClaim, catalog: Catalog) -> ClaimRecord:
        """Decide, and record what was decided, while nobody else does so."""
        with self._checkpoint.reserving():
            devices = self._plan(ref, claim, catalog)
            record = ClaimRecord(
                namespace=ref.namespace,
                name=ref.name,
                uid=ref.uid,
                state=ClaimState.STARTED,
                devices=devices,
                pod_claim_name=claim.metadata.annotations.get(POD_CLAIM_NAME),
            )
            self._validate_room(record, catalog)
            self._checkpoint.write(record)
            self._holders.forget(ref.uid)
            return record

    def _plan(self, ref: ClaimRef, claim: ResourceClaim, catalog: Catalog) -> tuple[PreparedDevice, ...]:
        return plan_claim(
            ref,
            claim,
            driver=self._owned.driver,
            pool=self._owned.pool,
            catalog=catalog,
            present=read_present(self._holders.find(self._results(claim)), besides=ref.uid),
            unenforced=self._owned.unenforced,
        )

    def _validate_room(self, record: ClaimRecord, catalog: Catalog) -> None:
        wholes = {device.whole_device for device in record.devices}
        slots = self._owned.slots
        try:
            validate_room(record.ref, record.devices, self._holders.find(wholes), catalog=catalog, slots=slots)
        except DeviceBusyError:
            if not self._holders.list_lost():
                raise
            self._holders.reload()
            validate_room(record.ref, record.devices, self._holders.find(wholes), catalog=catalog, slots=slots)

    def _complete(self, record: ClaimRecord) -> ClaimRecord:
        completed = msgspec.structs.replace(record, state=ClaimState.COMPLETED, boot_id=self._boot_id)
        self._checkpoint.write(completed)
        return completed

    @contextlib.contextmanager
    def _undone_on_error(self, ref: ClaimRef) -> Iterator[None]:
        """Undo what was applied; an error in that is logged, since the first one is what the user needs."""
        try:
            yield
        except (DeviceError, StateError) as error:
            try:
                record = self._find(ref.uid)
                self._setup.undo(ref.uid, record.devices if record is not None else ())
            except DraError as second:
                log.warning("claim half prepared", claim=str(ref), claim_uid=ref.uid, error=str(second))
            raise ClaimError(f"claim {ref}: {error}") from error


@contextlib.contextmanager
def _claim_errors(ref: ClaimRef) -> Iterator[None]:
    """Turn errors of devices and files into errors of the claim that they stopped."""
    try:
        yield
    except (DeviceError, StateError) as error:
        raise ClaimError(f"claim {ref}: {error}") from error
