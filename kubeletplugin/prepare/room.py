"""Whether what is already prepared leaves room for what is to be prepared: the last line against double use.

Schedulers decide first, but a force-deleted Pod frees its devices in the API before they are free on the node.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet

from dra_driver.devices.model import FULL_CORES
from dra_driver.errors import DeviceBusyError
from kubeletplugin.catalog import Catalog
from kubeletplugin.prepare.record import ClaimRecord, ClaimRef, PreparedDevice
from kubeletplugin.prepare.strategy import explain_conflict

Holding = tuple[ClaimRef, PreparedDevice]


def validate_room(
    ref: ClaimRef, planned: Iterable[PreparedDevice], records: Iterable[ClaimRecord], *, catalog: Catalog, slots: int
) -> None:
    """Raise DeviceBusyError, naming each holder, if a device, share or partition does not fit any more.

    `records` may hold the claim's own, which is left out. Started claims count as completed ones do.
    Results with admin access neither hold nor are held up.
    """
    planned = tuple(planned)
    wholes = {device.whole_device for device in planned}
    held = [holding for record in records if record.uid != ref.uid for holding in _holdings(record, wholes)]
    problems: list[str] = []
    for device in planned:
        if device.admin_access:
            continue
        beside = [(holder, other) for holder, other in held if other.whole_device == device.whole_device]
        if problem := _problem(device, beside, catalog=catalog, slots=slots):
            problems.append(problem)
        held.append((ref, device))
    if problems:
        raise DeviceBusyError(f"claim {ref}: {'; '.join(problems)}")


def _holdings(record: ClaimRecord, wholes: AbstractSet[str]) -> Iterator[Holding]:
    for device in record.devices:
        if device.whole_device in wholes and not device.admin_access:
            yield record.ref, device


def _problem(device: PreparedDevice, beside: list[Holding], *, catalog: Catalog, slots: int) -> str | None:
    if device.parent is not None:
        return _partition_problem(device, beside, catalog)
    if device.consumed is not None:
        return _share_problem(device, beside, catalog, slots)
    return _held(device, beside) if beside else None


def _held(device: PreparedDevice, holdings: list[Holding]) -> str:
    if not holdings:
        return f"device {device}"
    holders = sorted({f"claim {ref} (UID {ref.uid}, {other.device})" for ref, other in holdings})
    return f"device {device}: held by {', '.join(holders)}"


def _share_problem(device: PreparedDevice, beside: list[Holding], catalog: Catalog, slots: int) -> str | None:
    if exclusive := [(ref, other) for ref, other in beside if other.consumed is None]:
        return _held(device, exclusive)
    entry = catalog.find(device.whole_device)
    if entry is None or device.consumed is None:
        return f"device {device}: not on this node any more"
    for ref, other in beside:
        if problem := explain_conflict(device, other):
            return f"{_held(device, [(ref, other)])}: {problem}"
    totals = {"memory": entry.device.share_memory or 0, "cores": FULL_CORES, "slots": slots}
    wanted = {"memory": device.consumed.memory, "cores": device.consumed.cores, "slots": device.consumed.slots}
    used = Counter[str]()
    for _, other in beside:
        if other.consumed is not None:
            used.update(memory=other.consumed.memory, cores=other.consumed.cores, slots=other.consumed.slots)
    short = [
        f"{name} {wanted[name]} wanted, {max(total - used[name], 0)} of {total} left"
        for name, total in totals.items()
        if used[name] + wanted[name] > total
    ]
    return f"{_held(device, beside)}: {', '.join(short)}" if short else None


def _partition_problem(device: PreparedDevice, beside: list[Holding], catalog: Catalog) -> str | None:
    if blockers := [(ref, other) for ref, other in beside if other.parent is None or other.device == device.device]:
        return _held(device, blockers)
    entry = catalog.find(device.device)
    if entry is None or entry.partition is None:
        return f"device {device}: not on this node any more"
    if entry.partition.permanent:
        return None
    used = Counter(entry.partition.counters)
    for ref, other in beside:
        found = catalog.find(other.device)
        if found is None or found.partition is None:
            return f"{_held(device, [(ref, other)])}: what it takes is not known, since it is not offered any more"
        used.update(found.partition.counters)
    short = [name for name, amount in sorted(used.items()) if amount > entry.device.counters.get(name, 0)]
    return f"{_held(device, beside)}: no {', '.join(short)} left" if short else None
