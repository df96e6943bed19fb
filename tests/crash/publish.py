"""A plugin that dies while it publishes: between any two requests that have to do with ResourceSlices."""

import asyncio
import contextlib
import json
import signal
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from kubeletplugin.app import run_plugin
from tests.crash.bench import Bench
from tests.crash.child import Child
from tests.crash.effect import Effects, Point, points
from tests.crash.node import Node
from tests.crash.row import Row, describe
from tests.crash.session import be_quiet

WITHIN_S: Final = 60.0
"""How long it may take until slices are right: long, since the machine may be busy."""
_POLL_S: Final = 0.01
_QUIET_S: Final = 0.3
"""How long nothing must happen for it to be over."""

_OF_WRITING: Final = ("timeAdded", "generation")
_UNWELL: Final = "unhealthy: {0: {reason: xid-79}}\nadded: 1\n"


@dataclass(frozen=True, slots=True)
class Change:
    """What happens to a node whose devices are published already, unless it is the first time."""

    happen: Callable[[Bench], None]
    is_first: bool = False
    is_other: bool = False
    """Whether other slices follow than those that there were."""


def _nothing(_: Bench) -> None:
    """Leave the plugin alone: it starts."""


def _fall_ill(bench: Bench) -> None:
    bench.node.overrides.write_text(_UNWELL, encoding="utf-8")


def _delete(bench: Bench) -> None:
    bench.server.delete_slices()


CHANGES: Final = {
    "for the first time": Change(_nothing, is_first=True),
    "a device that is ill and a new one": Change(_fall_ill, is_other=True),
    "slices that others deleted": Change(_delete),
}


def run_publish(bench: Bench, subject: str) -> Row:
    """Kill a plugin at every point, and see that the next one comes to the same slices as one that nobody killed."""
    row, change = Row("publish", subject), CHANGES[subject]
    before: list[Any] = []
    if not change.is_first:
        bench.reset()
        with _plugin(bench.node):
            before = _settle(bench)
    effects, want = _record(bench, change, before)
    every = points(effects)
    row.points = len(every)
    for point in every:
        row.trials += 1
        where = f"publish {subject}, {describe(effects, point)}"
        try:
            row.states += _die(bench, change, point, before, want)
            with _plugin(bench.node):
                found = _wait(bench, lambda slices: slices == want)
            if found != want:
                row.problems.append(f"{where}: the next one publishes {found!r}, want {want!r}")
        except Exception as error:  # noqa: BLE001 - a trial that cannot go on is a problem of its own
            row.problems.append(f"{where}: {type(error).__name__}: {error}")
    return row


def _record(bench: Bench, change: Change, before: list[Any]) -> tuple[list[str], list[Any]]:
    """Return the effects of a change where nobody dies, and the slices after it."""
    with _changed(bench, change, before) as plugin:
        want = _settle(bench, besides=before if change.is_other else [])
        plugin.send(signal.SIGTERM)
        effects: list[str] = plugin.hear()
        return effects, want


def _die(bench: Bench, change: Change, point: Point, before: list[Any], want: list[Any]) -> bool:
    """Run a plugin to its death; one that has published all and has not come to the point is killed then.

    Return whether it came to it: requests of several tasks do not always come in the same number.
    """
    with _changed(bench, change, before, point) as plugin:
        _wait(bench, lambda slices: plugin.hears(0) or slices == want)
        if has_come := plugin.hears(_QUIET_S):
            assert plugin.wait() == -signal.SIGKILL
        return has_come


@contextlib.contextmanager
def _changed(bench: Bench, change: Change, before: list[Any], point: Point | None = None) -> Iterator[Child]:
    bench.reset()
    with _plugin(bench.node, point, watches=change.is_first) as plugin:
        if not change.is_first:
            assert _wait(bench, lambda slices: slices == before) == before
            plugin.send(signal.SIGUSR1)
            assert plugin.hear() == "watching"
        change.happen(bench)
        yield plugin


@contextlib.contextmanager
def _plugin(node: Node, point: Point | None = None, *, watches: bool = False) -> Iterator[Child]:
    child = Child(lambda channel: _run(channel, node, point, watches=watches))
    try:
        yield child
    finally:
        child.close()


def _run(channel: socket.socket, node: Node, point: Point | None, *, watches: bool) -> None:
    """Be a whole plugin, sockets and all, until SIGTERM; then tell the effects since the start or since SIGUSR1."""
    be_quiet()
    effects = Effects(node.disk, counts=_is_about_slices)
    effects.install()

    def watch(*_: object) -> None:
        effects.watch(point)
        channel.sendall(b'"watching"\n')

    signal.signal(signal.SIGUSR1, watch)
    if watches:
        effects.watch(point)
    asyncio.run(run_plugin(replace(node.settings, discovery_interval_s=0.05)))
    channel.sendall(json.dumps(effects.seen).encode() + b"\n")


def _is_about_slices(effect: str) -> bool:
    return "resourceslices" in effect and "watch" not in effect


def _settle(bench: Bench, besides: list[Any] = []) -> list[Any]:  # noqa: B006 - it is only read
    """Wait until there is a complete pool that stays, other than one that there was, and return it."""
    since, last = time.monotonic(), list[Any]()

    def is_settled(slices: list[Any]) -> bool:
        nonlocal since, last
        if slices != last:
            since, last = time.monotonic(), slices
        is_whole = bool(slices) and all(
            each["spec"]["pool"]["resourceSliceCount"] == len(slices) and each["isCurrent"] for each in slices
        )
        return is_whole and slices != besides and time.monotonic() - since > _QUIET_S

    found = _wait(bench, is_settled)
    assert is_settled(found), found
    return found


def _wait(bench: Bench, is_right: Callable[[list[Any]], bool]) -> list[Any]:
    """Return the slices as soon as they are right, or as they are in the end."""
    deadline = time.monotonic() + WITHIN_S
    while not is_right(slices := _look(bench)) and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    return slices


def _look(bench: Bench) -> list[Any]:
    """Return what a person sees of the slices, without when and how often they were written."""
    slices = sorted(bench.server.slices(), key=lambda each: each["metadata"]["name"])
    newest = max((each["spec"]["pool"]["generation"] for each in slices), default=0)
    return [
        {
            "name": each["metadata"]["name"],
            "spec": _timeless(each["spec"]),
            "isCurrent": each["spec"]["pool"]["generation"] == newest,
        }
        for each in slices
    ]


def _timeless(value: Any) -> Any:
    match value:
        case dict():
            return {name: _timeless(each) for name, each in value.items() if name not in _OF_WRITING}
        case list():
            return [_timeless(each) for each in value]
        case _:
            return value
