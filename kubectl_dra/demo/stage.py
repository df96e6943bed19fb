"""What the steps of the demo act with: the cluster, as a user with kubectl has it, and the files of its nodes."""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, TypeVar

import yaml

from dra_driver.api.core_v1 import Pod
from dra_driver.api.resource_v1 import Device, DeviceRequestAllocationResult, ResourceClaim
from dra_driver.kube.client import PatchKind
from dra_driver.kube.resource import (
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    Resource,
)
from kubectl_dra.demo.error import DemoError
from sandbox.cluster import Sandbox
from sandbox.manager.claim_rule import list_claim_names

NAMESPACE: Final = "default"
_PATIENCE_S: Final = 20.0
_POLL_S: Final = 0.02
_RESOURCES: Final[Mapping[str, Resource[Any]]] = {
    "Pod": PODS,
    "ResourceClaim": RESOURCE_CLAIMS,
    "ResourceClaimTemplate": RESOURCE_CLAIM_TEMPLATES,
}

_T = TypeVar("_T")


def read_manifest(name: str) -> str:
    """Read one of the demo's manifests."""
    return (files("kubectl_dra.demo") / "manifest" / f"{name}.yaml").read_text("utf-8")


def check(holds: object, what: str) -> None:
    """Raise DemoError unless something holds; `what` says what was wanted."""
    if not holds:
        raise DemoError(f"demo: want {what}")


class Stage:
    """A running sandbox. Waiting has an end: what does not happen in time is a DemoError."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self._view = sandbox.manager.view

    async def apply(self, name: str) -> None:
        """Apply a manifest of the demo, as `kubectl apply --server-side` does. Raises ApiError."""
        for document in yaml.safe_load_all(read_manifest(name)):
            resource = _RESOURCES[document["kind"]]
            await self.sandbox.client.patch(
                resource,
                document["metadata"]["name"],
                document,
                kind=PatchKind.APPLY,
                namespace=NAMESPACE,
                field_manager="kubectl-dra",
            )

    async def delete(self, resource: Resource[Any], name: str) -> None:
        """Delete an object. Raises ApiError."""
        await self.sandbox.client.delete(resource, name, namespace=NAMESPACE)

    async def until(self, what: str, probe: Callable[[], _T | None]) -> _T:
        """Wait until `probe` gives something that is true, and return it. `what` names it: `pod pair: running`."""
        deadline = time.monotonic() + _PATIENCE_S
        while not (found := probe()):
            if time.monotonic() > deadline:
                raise DemoError(f"{what}: not so yet, want it within {_PATIENCE_S:.0f} s")
            await asyncio.sleep(_POLL_S)
        return found

    def pod(self, name: str) -> Pod | None:
        """Return a Pod as it is now."""
        return self._view.pods.get(name, NAMESPACE)

    async def running(self, name: str) -> Pod:
        """Wait until a Pod runs."""

        def probe() -> Pod | None:
            pod = self.pod(name)
            return pod if pod is not None and pod.status.phase == "Running" else None

        return await self.until(f"pod {name}: running", probe)

    def claim(self, name: str) -> ResourceClaim:
        """Return a claim as it is now. Raises DemoError if it is not there."""
        claim = self._view.claims.get(name, NAMESPACE)
        if claim is None:
            raise DemoError(f"claim {NAMESPACE}/{name}: not there")
        return claim

    def claims(self) -> tuple[ResourceClaim, ...]:
        """Return all claims."""
        return self._view.claims.list()

    def claim_of(self, pod: Pod) -> ResourceClaim:
        """Return the claim of a Pod that has one."""
        [name] = list_claim_names(pod).values()
        return self.claim(name or "")

    def results(self, claim: ResourceClaim) -> tuple[DeviceRequestAllocationResult, ...]:
        """Return what a claim got. Raises DemoError if it got nothing."""
        if claim.status.allocation is None:
            raise DemoError(f"claim {claim.metadata.namespace}/{claim.metadata.name}: not allocated")
        return claim.status.allocation.devices.results

    def devices(self) -> list[tuple[str, Device]]:
        """Return all published devices, with the node that each is on."""
        slices = self._view.slices.list()
        return [(slice_.spec.pool.name, device) for slice_ in slices for device in slice_.spec.devices]

    def device(self, result: DeviceRequestAllocationResult) -> Device:
        """Return the device that a result names."""
        for pool, device in self.devices():
            if (pool, device.name) == (result.pool, result.device):
                return device
        raise DemoError(f"device {result.pool}/{result.device}: not published")

    def cdi_spec(self, pod: Pod, claim: ResourceClaim) -> tuple[Path, dict[str, Any]]:
        """Return the CDI spec of a claim on the Pod's node. Raises DemoError if it is not there."""
        folder = self.sandbox.nodes[pod.spec.node_name].cdi_dir
        for path in sorted(folder.glob(f"*{claim.metadata.uid}.json")):
            content: dict[str, Any] = json.loads(path.read_text("utf-8"))
            return path, content
        raise DemoError(f"claim {claim.metadata.name}: no CDI spec in {folder}")

    def oci_config(self, pod: Pod, container: str) -> tuple[Path, dict[str, Any]]:
        """Return the OCI config of a container. Raises DemoError if it is not there."""
        kubelet = self.sandbox.nodes[pod.spec.node_name].kubelet
        if kubelet is None:
            raise DemoError(f"node {pod.spec.node_name}: no kubelet")
        path = kubelet.runtime.config_path(pod.metadata.uid, container)
        try:
            content: dict[str, Any] = json.loads(path.read_text("utf-8"))
        except OSError as error:
            raise DemoError(f"{path}: {error}") from error
        return path, content

    def leftovers(self) -> list[Path]:
        """List what is on the nodes for claims and containers."""
        return [path for node in self.sandbox.nodes.values() for path in node.leftovers()]
