"""A plugin process under test: the real command, on a node's folders and an API server of the test."""

import asyncio
import json
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from cdi import ContainerEdits, Resolver
from tests.support.api_server import TestApiServer
from tests.support.builder import DRIVER, NODE
from tests.support.wait import until


@dataclass
class PluginNode:
    """A node's folders, as the kubelet and the container runtime have them, and the plugins that run on them."""

    folder: Path
    server: TestApiServer
    profile: str = "h100x8"
    started: list["PluginProcess"] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.registry_dir.mkdir(parents=True)
        self.server.put("nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
        self.server.kubeconfig(self.folder / "kubeconfig")

    @property
    def kubelet_dir(self) -> Path:
        """The kubelet's root directory."""
        return self.folder / "kubelet"

    @property
    def registry_dir(self) -> Path:
        """Where the kubelet looks for plugins."""
        return self.kubelet_dir / "plugins_registry"

    @property
    def plugin_dir(self) -> Path:
        """The plugin's own directory."""
        return self.kubelet_dir / "plugins" / DRIVER

    @property
    def registrar(self) -> Path:
        """The socket that the kubelet finds."""
        return self.registry_dir / f"{DRIVER}-reg.sock"

    @property
    def service(self) -> Path:
        """The socket that the kubelet calls."""
        return self.plugin_dir / "dra.sock"

    @property
    def cdi_dir(self) -> Path:
        """The container runtime's directory of specs."""
        return self.folder / "cdi"

    @property
    def overrides(self) -> Path:
        """The file that changes the simulated devices."""
        return self.folder / "overrides.yaml"

    def arguments(self, **flags: object) -> list[str]:
        """Return the flags of a plugin; `flags` adds to them, or replaces them."""
        values: dict[str, object] = {
            "node_name": NODE,
            "kubeconfig": self.folder / "kubeconfig",
            "kubelet_dir": self.kubelet_dir,
            "cdi_dir": self.cdi_dir,
            "backend": "simulated",
            "simulated_profile": self.profile,
            "simulated_overrides": self.overrides,
            "simulated_dev_dir": self.folder / "dev",
            "discovery_interval": 0.05,
            "recovery_hold": 0,
            "http_address": "127.0.0.1:0",
        }
        return [
            part
            for name, value in (values | flags).items()
            if value is not None
            for part in (f"--{name.replace('_', '-')}", *(() if value is True else (str(value),)))
        ]

    async def start(self, within: Sequence[str] = (), /, **flags: object) -> "PluginProcess":
        """Start a plugin, without waiting for anything; `within` is a command that runs the one that follows it."""
        process = await asyncio.create_subprocess_exec(
            *within,
            sys.executable,
            "-m",
            "kubeletplugin",
            *self.arguments(**flags),
            stderr=asyncio.subprocess.PIPE,
            cwd=Path(__file__).parents[2],
        )
        plugin = PluginProcess(process)
        self.started.append(plugin)
        return plugin

    async def start_ready(self, **flags: object) -> "PluginProcess":
        """Start a plugin and wait until it serves and has published."""
        plugin = await self.start(**flags)
        await plugin.logged("plugin started")
        await plugin.published()
        return plugin

    def devices(self) -> dict[str, dict[str, Any]]:
        """Return the published devices by name."""
        return {
            device["name"]: device
            for item in self.server.all("resourceslices")
            for device in item["spec"].get("devices", ())
        }

    def whole_devices(self) -> list[str]:
        """The names of the published devices that are no partitions."""
        return [name for name, device in self.devices().items() if not device["attributes"]["partition"]["bool"]]

    def resolve(self, *ids: str) -> ContainerEdits:
        """Return what a container runtime would do for these CDI ids."""
        return Resolver([self.cdi_dir]).resolve(list(ids)).edits


class PluginProcess:
    """A running plugin, with what it logs."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._lines: list[str] = []
        self._reader = asyncio.create_task(self._read())

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def text(self) -> str:
        """Everything that it wrote."""
        return "\n".join(self._lines)

    @property
    def events(self) -> list[dict[str, Any]]:
        """Its log lines."""
        return [json.loads(line) for line in self._lines if line.startswith("{")]

    @property
    def ended(self) -> bool:
        """Whether it is not running any more."""
        return self._process.returncode is not None

    async def logged(self, event: str, *, within_s: float = 30.0) -> dict[str, Any]:
        """Wait for a log line and return it."""
        await until(lambda: self._find(event) or self.ended, within_s=within_s)
        found = self._find(event)
        assert found is not None, self.text
        return found

    async def terminate(self) -> int:
        """Ask it to end, and return its exit status."""
        return await self._end(signal.SIGTERM)

    async def kill(self) -> int:
        """End it as a power cut would."""
        return await self._end(signal.SIGKILL)

    async def wait(self, *, within_s: float = 30.0) -> int:
        """Wait until it ends by itself."""
        async with asyncio.timeout(within_s):
            await self._reader
            return await self._process.wait()

    async def get(self, path: str) -> tuple[int, str]:
        """Ask its HTTP server."""
        address = (await self.logged("http served"))["address"]
        async with aiohttp.ClientSession() as session, session.get(f"http://{address}{path}") as response:
            return response.status, await response.text()

    async def published(self) -> None:
        """Wait until it knows that its slices are as they should be."""
        async with asyncio.timeout(30):
            while "published: ok" not in (await self.get("/readyz"))[1]:  # noqa: ASYNC110 - it is another process
                await asyncio.sleep(0.01)

    async def _end(self, number: signal.Signals) -> int:
        if not self.ended:
            self._process.send_signal(number)
        return await self.wait()

    def _find(self, event: str) -> dict[str, Any] | None:
        return next((each for each in self.events if each["event"] == event), None)

    async def _read(self) -> None:
        assert self._process.stderr is not None
        async for line in self._process.stderr:
            self._lines.append(line.decode().rstrip("\n"))
