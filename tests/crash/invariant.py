"""What must hold on a node, whatever happened on it. Each check yields what is wrong."""

from collections.abc import Iterable, Iterator
from typing import Any

from tests.crash.node import View


def check_owned(view: View) -> Iterator[str]:
    """Everything that is there belongs to a record, at every moment."""
    for kind, uids in (
        ("CDI spec", set(view.specs)),
        ("shim file", {name.partition("/")[0] for name in view.shims}),
        ("device metadata", {name.partition("/")[0] for name in view.metadata}),
    ):
        for uid in sorted(uids - set(view.records)):
            yield f"{kind} of {uid} has no record"
    held = {device["device"] for record in view.records.values() for device in record.get("devices", ())}
    for partition in sorted(view.partitions - held):
        yield f"partition {partition} has no record"
    for what, devices, strategy in _list_shared(view):
        for device in sorted(devices - _find_shared(view.records.values(), strategy)):
            yield f"{what} of {device} has no record"


def _list_shared(view: View) -> tuple[tuple[str, set[str], str], ...]:
    """What there is of devices that are shared, and under which strategy it belongs."""
    sharing = view.sharing
    return (
        ("length of turns", set(sharing.time_slices), "TimeSlicing"),
        ("exclusive mode", set(sharing.exclusive), "MPS"),
        ("MPS daemon", set(sharing.daemons), "MPS"),
        ("folder of the MPS daemon", set(sharing.folders), "MPS"),
    )


def _find_shared(records: Iterable[dict[str, Any]], strategy: str) -> set[str]:
    """The devices that records have under a strategy."""
    devices = (device for record in records for device in record.get("devices", ()))
    return {device["device"] for device in devices if device.get("strategy") == strategy}


def check_settled(view: View) -> Iterator[str]:
    """The same, and nothing is half done or left lying about: what holds once a process has started."""
    yield from check_owned(view)
    for name in view.leftovers:
        if not any(_is_half_way(name, uid, record) for uid, record in view.records.items()):
            yield f"{name} is left over"
    for uid, record in view.records.items():
        if record["state"] == "unreadable":
            yield f"record of {uid} cannot be read"
        elif record["state"] == "completed":
            yield from _check_complete(uid, record, view)


def _is_half_way(name: str, uid: str, record: dict[str, Any]) -> bool:
    """Whether a leftover goes with its claim's next call: what is set of devices, and files, of one half prepared."""
    partials = tuple(
        f"{what}/.{device['device']}.json.partial"
        for what in ("partitions", "time-slices", "exclusive-process")
        for device in record.get("devices", ())
    )
    is_file = any(f"/{folder}/{uid}/" in f"{name}/" for folder in ("shim", "dra-device-metadata"))
    return record["state"] == "started" and (is_file or name.endswith(partials))


def _check_complete(uid: str, record: dict[str, Any], view: View) -> Iterator[str]:
    devices = record.get("devices", ())
    if devices and uid not in view.specs:
        yield f"{uid} is prepared without a CDI spec"
    for device in devices:
        if device.get("shimPolicy") and not any(name.startswith(f"{uid}/") for name in view.shims):
            yield f"{uid} is prepared without the shim file of {device['device']}"
        if device.get("parent") and device["device"] not in view.partitions:
            yield f"{uid} is prepared without partition {device['device']}"
    for what, there, strategy in _list_shared(view):
        for name in sorted(_find_shared([record], strategy) - there):
            yield f"{uid} is prepared without the {what} of {name}"


def check_empty(view: View) -> Iterator[str]:
    """Nothing is prepared, and nothing is left of what was."""
    if view.left:
        yield f"left after unprepare: {', '.join(view.left)}"
