"""A node's disk and devices for tests of prepare, and the plugin that comes up on them."""

from dataclasses import dataclass, field
from pathlib import Path

import cdi
from dra_driver.api.resource_v1 import ResourceClaim
from dra_driver.devices.backend import Backend
from kubeletplugin.discovery import Discovery
from kubeletplugin.prepare.artifact import Artifacts
from kubeletplugin.prepare.checkpoint import LOCK_FILE, Checkpoint
from kubeletplugin.prepare.preparer import Owned, Preparer
from kubeletplugin.prepare.record import ClaimRef, ClaimState
from kubeletplugin.prepare.spec import Names
from tests.support.builder import DRIVER, NODE, FakeBackend, a_device, a_partitionable_device, a_ref

WHOLE = a_device("GPU-0")
SPLIT = a_partitionable_device("GPU-P")
PART = SPLIT.partition_name(SPLIT.partitions[0])
WIDE = SPLIT.partition_name(SPLIT.partitions[1])


def open_preparer(directory: Path, backend: Backend, boot_id: str | None = None) -> Preparer:
    """Return what a plugin process has after its start."""
    checkpoint = Checkpoint(directory / "claims")
    checkpoint.read_all()
    artifacts = Artifacts(names=Names(DRIVER), cdi_dir=directory / "cdi", shim_dir=directory / "shim")
    artifacts.ensure_directories(checkpoint.locks)
    return Preparer(
        Owned(driver=DRIVER, pool=NODE, slots=16),
        checkpoint=checkpoint,
        artifacts=artifacts,
        catalog=Discovery([backend]).read,
        boot_id=boot_id,
    )


@dataclass
class PrepareNode:
    """What outlives a plugin process; `start` is one that comes up on it."""

    directory: Path
    backend: FakeBackend = field(default_factory=lambda: FakeBackend((WHOLE, SPLIT)))

    @property
    def cdi_dir(self) -> Path:
        """The container runtime's directory of specs."""
        return self.directory / "cdi"

    def start(self, boot_id: str | None = None) -> Preparer:
        """Return what a plugin process has after its start."""
        return open_preparer(self.directory, self.backend, boot_id)

    def files(self) -> dict[str, bytes]:
        """Return all that is there of claims."""
        return {
            str(path.relative_to(self.directory)): path.read_bytes()
            for path in sorted(self.directory.rglob("*"))
            if path.is_file() and path.name != LOCK_FILE
        }

    def resolve(self, name: str) -> cdi.ContainerEdits:
        """Return what a container runtime would do for a CDI device."""
        return cdi.Resolver([self.cdi_dir]).resolve([f"{DRIVER}/claim={name}"]).edits


def prepare(preparer: Preparer, claim: ResourceClaim, ref: ClaimRef | None = None) -> None:
    """Prepare a claim, to the end."""
    record = preparer.prepare(ref or a_ref(), claim)
    assert record.state is ClaimState.COMPLETED
