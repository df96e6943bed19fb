"""A simulated node on the API server of the tests, and the objects that it works on."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from dra_driver.api import codec
from dra_driver.api.resource_v1 import DeviceRequestAllocationResult
from dra_driver.kube.client import PatchKind
from dra_driver.kube.resource import DEVICE_CLASSES, PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS, Resource
from sandbox.cluster import Sandbox, build_nodes
from sandbox.node.feed import PodFeed
from sandbox.node.node import NodeSettings, SimulatedNode
from tests.support.api_server import TestApiServer
from tests.support.builder import NODE, a_claim, a_ref
from tests.support.kube import a_client, running
from tests.support.wait import until

Manifest = dict[str, Any]

_RESOURCES: dict[str, Resource[Any]] = {
    "Pod": PODS,
    "ResourceClaim": RESOURCE_CLAIMS,
    "ResourceClaimTemplate": RESOURCE_CLAIM_TEMPLATES,
    "DeviceClass": DEVICE_CLASSES,
}


def a_pod(name: str = "pod-1", *claims: str, node: str = NODE, containers: Sequence[Manifest] = ()) -> Manifest:
    """Build a Pod on a node whose container `main` uses claims, which have the same names in the Pod."""
    uses = [{"name": claim} for claim in claims]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "nodeName": node,
            "containers": list(containers)
            or [{"name": "main", "image": "busybox:1", "command": ["sleep", "1"], "resources": {"claims": uses}}],
            "resourceClaims": [{"name": claim, "resourceClaimName": claim} for claim in claims],
        },
    }


@dataclass
class KubeletNode:
    """A node under test, and the API server that it talks to."""

    node: SimulatedNode
    server: TestApiServer

    async def published(self) -> None:
        """Wait until the plugin has published and the kubelet knows it."""
        await until(self.devices, within_s=20)
        await until(lambda: self.node.kubelet is not None and self.node.kubelet.registry.drivers)

    def devices(self) -> list[str]:
        """Return the names of the published devices that are whole."""
        return [
            device["name"]
            for item in self.server.all("resourceslices")
            for device in item["spec"].get("devices", ())
            if not device["attributes"]["partition"]["bool"]
        ]

    def put_claim(self, name: str, *results: DeviceRequestAllocationResult, pods: Sequence[Manifest] = ()) -> Manifest:
        """Store an allocated claim that is reserved for Pods."""
        value = msgspec.json.decode(codec.encode(a_claim(*results, ref=a_ref(name=name))))
        value["status"]["reservedFor"] = [
            {"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]} for pod in pods
        ]
        return self.server.put("resourceclaims", value)

    def put_pod(self, name: str, *claims: str, **fields: Any) -> Manifest:
        """Store a Pod that is bound to the node."""
        return self.server.put("pods", a_pod(name, *claims, **fields))

    def reserve(self, name: str, *pods: Manifest) -> None:
        """Reserve a claim for Pods, and for no others."""
        claim = next(each for each in self.server.all("resourceclaims") if each["metadata"]["name"] == name)
        claim["status"]["reservedFor"] = [
            {"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]} for pod in pods
        ]
        self.server.put("resourceclaims", claim)

    def pod(self, name: str) -> Manifest | None:
        """Return a Pod as it is now."""
        return next((each for each in self.server.all("pods") if each["metadata"]["name"] == name), None)

    def phase(self, name: str) -> str:
        """Return a Pod's phase."""
        return str((self.pod(name) or {}).get("status", {}).get("phase", ""))

    def config(self, pod: Manifest, container: str = "main") -> Manifest:
        """Return the OCI config of a container."""
        assert self.node.kubelet is not None
        path = self.node.kubelet.runtime.config_path(pod["metadata"]["uid"], container)
        config: Manifest = json.loads(path.read_text("utf-8"))
        return config

    def shim(self, pod: Manifest) -> str:
        """Return the shim config that the container `main` has mounted."""
        [source] = {mount["source"] for mount in self.config(pod)["mounts"] if "shim.d" in mount["destination"]}
        return Path(source).read_text("utf-8")

    def prepared(self) -> list[str]:
        """Return the names of the CDI specs on the node."""
        return sorted(path.name for path in self.node.cdi_dir.iterdir()) if self.node.cdi_dir.is_dir() else []


@asynccontextmanager
async def a_node(server: TestApiServer, folder: Path, **settings: Any) -> AsyncIterator[KubeletNode]:
    """Run a simulated node with eight H100; `settings` add to its settings."""
    quick: dict[str, Any] = {"profile": "h100x8", "look_every_s": 0.02, "discovery_interval_s": 0.2}
    values = NodeSettings(name=NODE, **(quick | settings))
    with ThreadPoolExecutor(4) as executor:
        async with a_client(server, folder) as client:
            feed = PodFeed(client)
            node = SimulatedNode(values, folder=folder, client=client, feed=feed, executor=executor)
            async with running(feed.run()):
                try:
                    await node.start()
                    yield KubeletNode(node, server)
                finally:
                    await node.stop()


class Cluster:
    """A sandbox under test, used as a user with kubectl would."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.view = sandbox.manager.view

    async def apply(self, *manifests: Manifest, namespace: str = "default") -> None:
        """Apply objects, in the namespace that they name or else in that one."""
        for manifest in manifests:
            metadata = manifest["metadata"]
            await self.sandbox.client.patch(
                _RESOURCES[manifest["kind"]],
                metadata["name"],
                manifest,
                kind=PatchKind.APPLY,
                namespace=metadata.get("namespace", namespace),
                field_manager="test",
            )

    async def delete_pods(self, *names: str) -> None:
        """Delete Pods."""
        for name in names:
            await self.sandbox.client.delete(PODS, name, namespace="default")

    def phases(self) -> dict[str, str]:
        """Return the phases of all Pods."""
        return {pod.metadata.name: pod.status.phase for pod in self.view.pods.list()}

    async def running(self, *names: str, within_s: float = 30.0) -> None:
        """Wait until Pods run."""
        await until(lambda: all(self.phases().get(name) == "Running" for name in names), within_s=within_s)

    def refusal(self, pod: str) -> str:
        """Return why a Pod is not scheduled, or nothing."""
        found = self.view.pods.get(pod, "default")
        conditions = found.status.conditions if found is not None else ()
        return next((each.message for each in conditions if each.type == "PodScheduled" and each.message), "")

    def devices_in_use(self) -> list[str]:
        """List the devices of all allocations, as `node/device`, sorted."""
        allocations = [claim.status.allocation for claim in self.view.claims.list()]
        results = [result for each in allocations if each is not None for result in each.devices.results]
        return sorted(f"{result.pool}/{result.device}" for result in results)

    def left(self) -> list[Path]:
        """List the files on all nodes that are there for claims or containers."""
        return [path for node in self.sandbox.nodes.values() for path in node.leftovers()]


@asynccontextmanager
async def a_cluster(
    folder: Path, *profiles: str, data: Path | None = None, labels: Mapping[str, str] | None = None
) -> AsyncIterator[Cluster]:
    """Run a sandbox with a node a profile, and wait until it is ready. With node labels there is a controller."""
    nodes = [replace(each, look_every_s=0.02, labels=labels or {}) for each in build_nodes(len(profiles), profiles)]
    async with Sandbox(nodes, folder=folder, data=data, controller=labels is not None) as sandbox:
        async with asyncio.timeout(40):
            await sandbox.ready()
        yield Cluster(sandbox)
