"""The kubelet's plugin watcher: drivers are those whose sockets lie in the registry directory.

A socket that appears is asked who it is, one that goes takes its driver with it, and one that answers wrongly is asked
again later. Where a driver runs twice, as during an update, the one that came last is called.
"""

import asyncio
import contextlib
import stat
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from dra_driver.kube.backoff import Backoff
from kubeletplugin.proto import pluginregistration_v1_pb2 as messages
from sandbox.node.driver import HEALTH_VERSIONS, VERSIONS, Driver, call, open_channel
from sandbox.node.error import DriverCallError

log = structlog.get_logger(__name__)

_TYPE: Final = "DRAPlugin"
_ASK_S: Final = 1.0
_NOTIFY_S: Final = 5.0
_TICK_NS: Final = 50_000_000
_RETRY: Final = Backoff(initial_s=0.5, max_s=120.0, jitter=0.0)


@dataclass(frozen=True, slots=True)
class _Socket:
    """A socket file; one that takes the place of another has another inode or time."""

    path: Path
    inode: int
    changed_ns: int


class Registry:
    """The drivers that are registered on a node. Someone runs `run`, which looks into the directory."""

    def __init__(
        self,
        directory: Path,
        *,
        versions: tuple[str, ...] = VERSIONS,
        health_versions: tuple[str, ...] = HEALTH_VERSIONS,
        look_every_s: float = 0.2,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self._directory = directory
        self._versions = versions
        self._health_versions = health_versions
        self._look_every_s = look_every_s
        self._changed = changed
        self._drivers: dict[_Socket, Driver] = {}
        self._tasks: dict[_Socket, asyncio.Task[None]] = {}

    def find(self, name: str) -> Driver | None:
        """Return the driver of that name that was registered last."""
        return next((driver for driver in reversed(self._drivers.values()) if driver.name == name), None)

    @property
    def drivers(self) -> Mapping[str, Driver]:
        """The drivers by name."""
        return {driver.name: driver for driver in self._drivers.values()}

    async def run(self) -> None:
        """Register what comes and forget what goes, until cancelled."""
        seen = -1
        try:
            while True:
                if (changed := _read_time(self._directory)) != seen:
                    # A change within the clock tick of the last one would not show, so a young one is looked at again.
                    seen = changed if time.time_ns() - changed > _TICK_NS else -1
                    await self._follow(_read_sockets(self._directory))
                await asyncio.sleep(self._look_every_s)
        finally:
            await self._follow(frozenset())

    async def _follow(self, sockets: frozenset[_Socket]) -> None:
        for socket in self._tasks.keys() - sockets:
            await self._remove(socket)
        for socket in sorted(sockets - self._tasks.keys(), key=lambda socket: (socket.changed_ns, socket.path)):
            self._tasks[socket] = asyncio.create_task(self._add(socket))

    async def _remove(self, socket: _Socket) -> None:
        task = self._tasks.pop(socket)
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            await task
        if (driver := self._drivers.pop(socket, None)) is not None:
            log.info("driver gone", driver=driver.name)
            await driver.close()
            self._changed()

    async def _add(self, socket: _Socket) -> None:
        attempt = 0
        while True:
            try:
                driver = await self._register(socket.path)
            except DriverCallError as error:
                delay_s = _RETRY.delay_s(attempt, 0.0)
                log.info("driver not registered", socket=socket.path.name, error=str(error), retry_in_s=delay_s)
                attempt += 1
                await asyncio.sleep(delay_s)
            else:
                self._drivers[socket] = driver
                log.info("driver registered", driver=driver.name, version=driver.version)
                self._changed()
                return

    async def _register(self, path: Path) -> Driver:
        """Ask the plugin behind a socket who it is, and tell it whether that will do. Raises DriverCallError."""
        channel = open_channel(path)
        try:
            subject = f"plugin {path.name}"
            info = await call(
                channel,
                "pluginregistration.Registration/GetInfo",
                messages.InfoRequest(),
                messages.PluginInfo,
                timeout_s=_ASK_S,
                subject=subject,
            )
            version = next((each for each in info.supported_versions if each in self._versions), "")
            problem = _explain_refusal(info.type, info.name, info.endpoint, list(info.supported_versions), version)
            await call(
                channel,
                "pluginregistration.Registration/NotifyRegistrationStatus",
                messages.RegistrationStatus(plugin_registered=not problem, error=problem),
                messages.RegistrationStatusResponse,
                timeout_s=_NOTIFY_S,
                subject=subject,
            )
            if problem:
                raise DriverCallError(f"{subject}: {problem}")
        finally:
            await channel.close()
        health_version = next((each for each in self._health_versions if each in info.supported_versions), "")
        return Driver(info.name, version, Path(info.endpoint or path), health_version=health_version)


def _explain_refusal(kind: str, name: str, endpoint: str, offered: list[str], version: str) -> str:
    if kind != _TYPE:
        return f"type {kind!r}, want {_TYPE!r}"
    if not name:
        return "no name, want a driver's"
    if endpoint and not Path(endpoint).is_absolute():
        return f"endpoint {endpoint!r}, want an absolute path"
    if not version:
        return f"versions {offered}, want one of {list(VERSIONS)}"
    return ""


def _read_time(directory: Path) -> int:
    try:
        return directory.stat().st_mtime_ns
    except OSError:
        return 0


def _read_sockets(directory: Path) -> frozenset[_Socket]:
    """List the sockets; names that begin with a dot are not looked at."""
    found = set()
    with contextlib.suppress(OSError):
        for path in directory.iterdir():
            status = _status(path)
            if not path.name.startswith(".") and status is not None and stat.S_ISSOCK(status[0]):
                found.add(_Socket(path, status[1], status[2]))
    return frozenset(found)


def _status(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_mode, status.st_ino, status.st_ctime_ns
