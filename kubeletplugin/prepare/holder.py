"""Who has what on this node: the claims that are recorded, and those whose record was lost but whose CDI spec is there.

To be asked while the checkpoint is owned.
"""

from collections.abc import Callable, Iterable

from dra_driver.api.config_v1alpha1 import Strategy
from kubeletplugin.catalog import Catalog
from kubeletplugin.prepare.artifact import Artifacts
from kubeletplugin.prepare.checkpoint import Checkpoint
from kubeletplugin.prepare.lost import LostClaim, build_lost_record
from kubeletplugin.prepare.record import ClaimRecord, ClaimRef


class Holders:
    """Looks through records by device, and through the CDI directory only when somebody else may have changed it."""

    def __init__(
        self, checkpoint: Checkpoint, artifacts: Artifacts, *, pool: str, catalog: Callable[[], Catalog]
    ) -> None:
        self._checkpoint = checkpoint
        self._artifacts = artifacts
        self._pool = pool
        self._catalog = catalog
        self._lost: dict[str, LostClaim] = {}
        self._seen = -1

    def find(self, wholes: Iterable[str]) -> tuple[ClaimRecord, ...]:
        """Return the records of all that have one of these whole devices, or a part of one. Raises StateError."""
        if self._seen != self._checkpoint.generation:
            self.reload()
        return (*self._checkpoint.find_holders(wholes), *self.list_lost())

    def reload(self) -> None:
        """Look through the CDI directory for claims whose record was lost. Raises StateError.

        While claims come and go, one of them may seem lost until this is called again, and never the other way round.
        """
        generation = self._checkpoint.generation
        self._lost = self._artifacts.read_unrecorded(self._checkpoint)
        self._seen = generation

    def list_lost(self) -> tuple[ClaimRecord, ...]:
        """Return what is known of the claims whose record was lost."""
        found = {uid: lost for uid, lost in tuple(self._lost.items()) if uid not in self._checkpoint}
        catalog = self._catalog() if found else Catalog()
        return tuple(build_lost_record(uid, lost, pool=self._pool, catalog=catalog) for uid, lost in found.items())

    def read_lost(self, ref: ClaimRef) -> ClaimRecord | None:
        """Return what the CDI spec of an unrecorded claim tells of it; None if there is none."""
        lost = self._artifacts.read_lost(ref.uid)
        return build_lost_record(ref.uid, lost, pool=self._pool, catalog=self._catalog(), ref=ref) if lost else None

    def forget(self, uid: str) -> None:
        """Note that a claim whose record was lost is not there any more, or is recorded again."""
        self._lost.pop(uid, None)

    def is_held(self, device: str, whole: str, *, besides: str = "", strategy: Strategy | None = None) -> bool:
        """Whether another claim has that device or partition, under that strategy if one is given."""
        return any(
            each.device == device and (strategy is None or each.strategy is strategy)
            for record in self.find({whole})
            if record.uid != besides
            for each in record.devices
        )
