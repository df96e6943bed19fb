"""Claims whose record was lost, known by their CDI spec alone: they hold their devices until they are unprepared.

Pure: the names of the CDI devices go in, what is left of a record comes out.
"""

from collections.abc import Iterable

from kubeletplugin.catalog import Catalog
from kubeletplugin.prepare.record import ClaimRecord, ClaimRef, ClaimState, PreparedDevice

UNKNOWN = "?"
"""What stands for the name and the namespace, which a spec does not tell."""


def build_lost_record(
    uid: str, cdi_devices: Iterable[str], *, pool: str, catalog: Catalog, ref: ClaimRef | None = None
) -> ClaimRecord:
    """Return what can be told of a claim from the names of its CDI devices, see `Names.device`.

    How much a share takes cannot, so the claim has its devices alone. A device that is not on the node is left out.
    `ref` is who asks for it, by names that the spec does not tell.
    """
    devices: list[PreparedDevice] = []
    for cdi_device in cdi_devices:
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
