"""Claims whose record was lost, known by their CDI spec alone: they hold their devices as others do.

Pure: what the spec tells goes in, what is left of a record comes out.
"""

from dataclasses import dataclass

from kubeletplugin.catalog import Catalog
from kubeletplugin.prepare.record import ClaimRecord, ClaimRef, ClaimState, PreparedDevice

UNKNOWN = "?"
"""What stands for a name and a namespace that a spec does not tell."""


@dataclass(frozen=True, slots=True)
class LostClaim:
    """What a spec tells of its claim: the names of its CDI devices, and which claim it is; None if it does not."""

    cdi_devices: tuple[str, ...]
    ref: ClaimRef | None = None


def build_lost_record(
    uid: str, lost: LostClaim, *, pool: str, catalog: Catalog, ref: ClaimRef | None = None
) -> ClaimRecord:
    """Return what can be told of a claim from the names of its CDI devices, see `Names.device`.

    How much a share takes cannot, so the claim has its devices alone. A device that is not on the node is left out.
    `ref` is who asks for it, where the spec does not tell.
    """
    ref = lost.ref or ref
    devices: list[PreparedDevice] = []
    for cdi_device in lost.cdi_devices:
        name = cdi_device.removeprefix(f"{uid}-")
        whole = "-".join(name.split("-")[:2])
        if (entry := catalog.find(name) or catalog.find(whole)) is not None:
            parent = entry.device.name if entry.partition is not None else None
            devices.append(PreparedDevice(request="", pool=pool, device=entry.name, parent=parent))
    return ClaimRecord(
        namespace=ref.namespace if ref is not None else UNKNOWN,
        name=ref.name if ref is not None else UNKNOWN,
        uid=uid,
        state=ClaimState.STARTED,
        devices=tuple(dict.fromkeys(devices)),
    )
