"""What a child does: it is a plugin as far as claims go, made as the real one is, that does what it is told."""

import asyncio
import json
import logging
import os
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import structlog

from dra_driver.errors import DraError
from dra_driver.kube.client import ApiClient
from dra_driver.kube.credential import Credential
from kubeletplugin.app import Plugin, read_backends, run_plugin
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

    def begin(self, operation: str, ref: ClaimRef, point: Point | None = None) -> None:
        """Begin a call, to end at a point."""
        where = [point.number, point.moment, point.signal] if point else None
        self.child.tell(operation, ref=_fields(ref), point=where)

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


def start_plugin(node: Node, point: Point | None = None) -> Child:
    """Fork the whole plugin, sockets and all, which runs until SIGTERM and then tells its effects."""
    return Child(lambda channel: _run(channel, node, point))


async def _serve(channel: socket.socket, node: Node) -> None:
    _be_quiet()
    effects = Effects(node.disk)
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
    if ref is None:
        await asyncio.to_thread(plugin._read_state)
        return [str(error) for _ in range(3) for error in await asyncio.to_thread(plugin._preparer.restore)]
    claim = ClaimRef(**ref)
    if point or record:
        effects.watch(Point(point[0], Moment(point[1]), point[2]) if point else None)
    outcome: Any
    if operation == "prepare":
        outcome = (await plugin._service.prepare([claim]))[claim.uid]
    else:
        outcome = (await plugin._service.unprepare([claim]))[claim.uid]
    if point or record:
        effects.over()
    if record:
        return list(effects.seen)
    if isinstance(outcome, DraError):
        return {"error": str(outcome)}
    return list(plugin._service.devices(outcome)) if outcome is not None else None


def _run(channel: socket.socket, node: Node, point: Point | None) -> None:
    _be_quiet()
    effects = Effects(node.disk)
    effects.install()
    effects.watch(point)
    asyncio.run(run_plugin(node.settings))
    channel.sendall(json.dumps(effects.seen).encode() + b"\n")


def _be_quiet() -> None:
    level = logging.DEBUG if os.environ.get("DRA_DRIVER_TEST_LOG") else logging.CRITICAL
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(level), cache_logger_on_first_use=False)


def _fields(ref: ClaimRef) -> dict[str, str]:
    return {"namespace": ref.namespace, "name": ref.name, "uid": ref.uid}
