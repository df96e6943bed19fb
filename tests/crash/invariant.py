"""What must hold on a node, whatever happened on it. Each check yields what is wrong."""

from collections.abc import Iterator
from typing import Any

from tests.crash.node import View


def check_owned(view: View) -> Iterator[str]:
    """Everything that is there belongs to a record, at every moment."""
    for kind, uids in (
        ("CDI spec", set(view.specs)),
        ("shim file", {name.partition("/")[0] for name in view.shims}),
    ):
        for uid in sorted(uids - set(view.records)):
            yield f"{kind} of {uid} has no record"
    held = {device["device"] for record in view.records.values() for device in record.get("devices", ())}
    for partition in sorted(view.partitions - held):
        yield f"partition {partition} has no record"


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
    """Whether a leftover goes with its claim's next call: hardware and shim files of one that is half prepared."""
    partials = {f"partitions/.{device['device']}.json.partial" for device in record.get("devices", ())}
    return record["state"] == "started" and (f"/shim/{uid}/" in f"{name}/" or name.endswith(tuple(partials)))


def _check_complete(uid: str, record: dict[str, Any], view: View) -> Iterator[str]:
    devices = record.get("devices", ())
    if devices and uid not in view.specs:
        yield f"{uid} is prepared without a CDI spec"
    for device in devices:
        if device.get("shimPolicy") and not any(name.startswith(f"{uid}/") for name in view.shims):
            yield f"{uid} is prepared without the shim file of {device['device']}"
        if device.get("parent") and device["device"] not in view.partitions:
            yield f"{uid} is prepared without partition {device['device']}"


def check_empty(view: View) -> Iterator[str]:
    """Nothing is prepared, and nothing is left of what was."""
    if not view.is_empty:
        left = (*view.records, *view.specs, *view.shims, *sorted(view.partitions), *view.leftovers)
        yield f"left after unprepare: {', '.join(left)}"
