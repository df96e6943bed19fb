"""What a child does: it is a plugin as far as claims go, made as the real one is, that does what it is told."""

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import structlog

from dra_driver.errors import DraError
from dra_driver.kube.client import ApiClient
from dra_driver.kube.credential import Credential
from kubeletplugin.app import Plugin, read_backends
from kubeletplugin.prepare.record import ClaimRef
from tests.crash.child import Child, DiedError
from tests.crash.effect import Effects, Moment, Point
from tests.crash.node import Node


class Session:
    """A plugin process that serves one call after the other; between two of them nothing moves in it."""

    def __init__(self, node: Node) -> None:
        self.child = Child(lambda channel: asyncio.run(_serve(channel, node)))

    def start(self) -> None:
        """Read what is on the disk, as a plugin does at start, and look through it twice, as one does soon after."""
        self.child.ask("start")

    def call(self, operation: str, ref: ClaimRef) -> Any:
        """Prepare or unprepare. Returns the devices as the kubelet is told them, None, or `{"error": …}`."""
        return self.child.ask(operation, ref=_fields(ref))

    def begin(self, operation: str, ref: ClaimRef | None, point: Point | None = None) -> None:
        """Begin a call, or the start, to end at a point."""
        where = [point.number, point.moment, point.signal] if point else None
        self.child.tell(operation, ref=_fields(ref) if ref else None, point=where)

    def record(self, operation: str, ref: ClaimRef) -> list[str]:
        """Call, and return which effects that had."""
        effects: list[str] = self.child.ask(operation, ref=_fields(ref), record=True)
        return effects

    def kill_at(self, operation: str, ref: ClaimRef, point: Point) -> None:
        """Begin a call and wait until it has killed the process."""
        self.begin(operation, ref, point)
        try:
            answer = self.child.hear()
        except DiedError as death:
            assert death.status == -signal.SIGKILL, death  # noqa: PT017 - nobody raises it but the process' end
        else:
            raise AssertionError(f"{operation} was answered {answer!r} by a process that should be dead")

    def close(self) -> None:
        """End the process."""
        self.child.close()


@contextlib.contextmanager
def started(node: Node) -> Iterator[Session]:
    """Give a process that has started, and end it."""
    session = Session(node)
    try:
        session.start()
        yield session
    finally:
        session.close()


async def _serve(channel: socket.socket, node: Node) -> None:
    be_quiet()
    effects = Effects(node.disk, journal=node.journal)
    effects.install()
    settings = node.settings
    credential = await Credential.load(settings.kubeconfig)
    async with ApiClient(credential, user_agent="crash") as client:
        with ThreadPoolExecutor(2) as executor:
            plugin = Plugin(settings, read_backends(settings), client, executor)
            with channel.makefile("rb") as commands:
                for line in commands:  # nothing shall go on between two commands
                    operation, arguments = json.loads(line)
                    channel.sendall(json.dumps(await _act(plugin, effects, operation, **arguments)).encode() + b"\n")


async def _act(  # noqa: PLR0913 - the fields of a command
    plugin: Plugin,
    effects: Effects,
    operation: str,
    ref: dict[str, str] | None = None,
    point: tuple[int, str, int] | None = None,
    *,
    record: bool = False,
) -> Any:
    if point or record:
        effects.watch(Point(point[0], Moment(point[1]), point[2]) if point else None)
    outcome: Any
    claim = ClaimRef(**ref) if ref else None
    if claim is None:
        outcome = await asyncio.to_thread(_start, plugin)
    elif operation == "prepare":
        outcome = (await plugin.service.prepare([claim]))[claim.uid]
    else:
        outcome = (await plugin.service.unprepare([claim]))[claim.uid]
    if point or record:
        effects.over()
    if record:
        return list(effects.seen)
    if claim is None:
        return outcome
    if isinstance(outcome, DraError):
        return {"error": str(outcome)}
    return list(plugin.service.devices(outcome)) if outcome is not None else None


def _start(plugin: Plugin) -> list[str]:
    plugin.read_state()
    errors: list[str] = []
    for _ in range(3):
        errors += [str(error) for _, error in plugin.preparer.restore()]
        plugin.preparer.sweep()
    return errors


def be_quiet() -> None:
    """Log nothing, unless the environment wants it."""
    level = logging.DEBUG if os.environ.get("DRA_DRIVER_TEST_LOG") else logging.CRITICAL
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(level), cache_logger_on_first_use=False)


def _fields(ref: ClaimRef) -> dict[str, str]:
    return {"namespace": ref.namespace, "name": ref.name, "uid": ref.uid}
