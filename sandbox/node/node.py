"""A simulated node: its folders, its Node object, its kubelet, and the real node plugin with simulated devices."""

import asyncio
import contextlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from dra_driver.api.core_v1 import Node
from dra_driver.api.meta_v1 import ObjectMeta, render_time
from dra_driver.errors import ApiConflictError
from dra_driver.kube.client import ApiClient
from dra_driver.kube.resource import NODES
from kubeletplugin.app import Plugin, read_backends
from kubeletplugin.kubelet.instance import hold_instance
from kubeletplugin.setting import BackendName, Settings, SimulatedSettings, validate_settings
from sandbox.node.feed import PodFeed
from sandbox.node.kubelet import Kubelet
from sandbox.node.part import Part

VERSION: Final = "v1.37.2"
_RESOURCES: Final = {"cpu": "128", "memory": "1Ti", "ephemeral-storage": "1Ti", "pods": "110"}


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """A node: its name, the profile of its devices (a built-in name or a file), and what else its Node object says.

    `look_every_s` is how often the kubelet looks for plugins, `discovery_interval_s` how often the plugin for devices;
    `wipe_after_s` is how long a driver may be away before the kubelet deletes its slices.
    """

    name: str
    profile: str
    labels: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, str] = field(default_factory=lambda: dict(_RESOURCES))
    look_every_s: float = 0.2
    wipe_after_s: float = 30.0
    discovery_interval_s: float = 5.0


class SimulatedNode:
    """One node, between `start` and `stop`; kubelet and plugin may be stopped and started meanwhile."""

    def __init__(
        self, settings: NodeSettings, *, folder: Path, client: ApiClient, feed: PodFeed, executor: ThreadPoolExecutor
    ) -> None:
        self.name = settings.name
        self.folder = folder
        self.cdi_dir = folder / "cdi"
        self.kubelet: Kubelet | None = None
        self._settings = settings
        self._client = client
        self._feed = feed
        self._executor = executor
        self._kubelet_part = Part()
        self._plugin_part = Part()

    @property
    def plugin_settings(self) -> Settings:
        """The settings of the node's plugin."""
        return Settings(
            node_name=self.name,
            kubelet_dir=self.folder,
            cdi_dir=self.cdi_dir,
            backends=(BackendName.SIMULATED,),
            simulated=SimulatedSettings(
                profile=self._settings.profile, overrides=self.overrides, dev_dir=self.folder / "dev"
            ),
            discovery_interval_s=self._settings.discovery_interval_s,
            recovery_hold_s=0.0,
            mps_image="mps-daemon",
            mps_namespace="default",
            shm_dir=self.folder / "shm",
            http_address="127.0.0.1:0",
        )

    @property
    def is_registered(self) -> bool:
        """Whether the kubelet runs and knows the plugin."""
        return self.kubelet is not None and bool(self.kubelet.registry.drivers)

    @property
    def overrides(self) -> Path:
        """The file that changes the node's devices."""
        return self.folder / "overrides.yaml"

    def leftovers(self) -> list[Path]:
        """List the files of claims and containers: CDI specs, claim records, shim configs, partitions, containers."""
        state = self.plugin_settings.plugin_dir
        kept = (state / "claims", state / "shim", state / "simulated" / "partitions")
        folders = [folder for folder in (self.cdi_dir, *kept, self.folder / "pods") if folder.is_dir()]
        return [path for folder in folders for path in folder.iterdir() if not path.name.startswith(".")]

    async def start(self) -> None:
        """Register the Node, and start kubelet and plugin. Raises DraError; `stop` is to be called all the same."""
        self.plugin_settings.registry_dir.mkdir(parents=True, exist_ok=True)
        await self._register()
        await self.start_kubelet()
        await self.start_plugin()

    async def stop(self) -> None:
        """Stop plugin and kubelet, as far as they run. The Node object stays."""
        try:
            await self.stop_plugin()
        finally:
            await self.stop_kubelet()

    async def start_kubelet(self) -> None:
        """Start a kubelet, which takes up what an earlier one left. Raises NodeError."""
        kubelet = Kubelet(
            self.name,
            directory=self.folder,
            cdi_dir=self.cdi_dir,
            client=self._client,
            look_every_s=self._settings.look_every_s,
            wipe_after_s=self._settings.wipe_after_s,
        )
        started = asyncio.Event()
        await self._kubelet_part.start(kubelet.run(started), started)
        self.kubelet = kubelet
        self._feed.attach(kubelet)

    async def stop_kubelet(self) -> None:
        """Stop the kubelet as a crash would; containers go on."""
        if self.kubelet is not None:
            self._feed.detach(self.kubelet)
        await self._kubelet_part.cancel()
        self.kubelet = None

    async def start_plugin(self) -> None:
        """Start the plugin. Raises DraError."""
        settings = self.plugin_settings
        validate_settings(settings)
        stop = asyncio.Event()
        await self._plugin_part.start(self._run_plugin(settings, stop), None, stop)

    async def stop_plugin(self) -> None:
        """Stop the plugin as SIGTERM does; slices and what is prepared stay."""
        await self._plugin_part.end()

    async def _run_plugin(self, settings: Settings, stop: asyncio.Event) -> None:
        backends = await asyncio.to_thread(read_backends, settings)
        with hold_instance(settings.plugin_dir, settings.pod_uid, settings.service_socket) as instance:
            await Plugin(settings, backends, self._client, self._executor, instance).run(stop)

    async def _register(self) -> None:
        """Make the Node, or take over the one that is there, and say that it is ready."""
        labels = {
            "kubernetes.io/hostname": self.name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            **self._settings.labels,
        }
        with contextlib.suppress(ApiConflictError):
            await self._client.create(NODES, Node(metadata=ObjectMeta(name=self.name, labels=labels)))
        now = render_time(datetime.now(UTC))
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "message": "kubelet is posting ready status",
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        }
        status = {
            "capacity": self._settings.resources,
            "allocatable": self._settings.resources,
            "conditions": [ready],
            "nodeInfo": {
                **dict.fromkeys(("machineID", "systemUUID", "bootID", "kernelVersion", "kubeProxyVersion"), ""),
                "osImage": "sandbox",
                "operatingSystem": "linux",
                "architecture": "amd64",
                "containerRuntimeVersion": "sandbox://1",
                "kubeletVersion": VERSION,
            },
        }
        await self._client.patch(NODES, self.name, {"status": status}, subresource="status")
