"""A controller under test, on the API server of the tests, and the objects that it works on."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from controller.app import Controller, Pace
from controller.leader import Timing
from controller.setting import Settings
from controller.teller import Patience
from dra_driver.kube.backoff import Backoff
from dra_driver.kube.watch import WatchTiming
from tests.support.api_server import TestApiServer
from tests.support.kube import a_client
from tests.support.wait import until

Manifest = dict[str, Any]

DRIVER = "accel.dra-driver.io"
OURS = {"dra-driver.io/allocator": "controller"}
GATE = "dra-driver.io/allocation"
TAINT = {"key": "dra-driver.io/allocator", "value": "controller", "effect": "NoSchedule"}

QUICK = Pace(
    watch=WatchTiming(backoff=Backoff(initial_s=0.01, max_s=0.1), healthy_s=0.0),
    leader=Timing(
        avoid_s=0.5, refused_s=0.1, grace_s=0.5, unknown_s=1.0, orphan_s=0.2, look_s=0.05, conflict_s=0.05, settle_s=0.1
    ),
    teller=Patience(refused_s=0.02, missing_s=0.1, again_s=0.1),
    writer=Backoff(initial_s=0.01, max_s=0.1),
)


def a_node(name: str = "node-a", *, labels: Mapping[str, str] = OURS, **fields: Any) -> Manifest:
    """Build a node of the controller with room for anything."""
    allocatable = {"cpu": "8", "memory": "64Gi", "pods": "110"} | fields.pop("allocatable", {})
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": dict(labels)},
        "spec": fields,
        "status": {"allocatable": allocatable},
    }


def a_device(name: str, *, taints: Sequence[Manifest] = (TAINT,), **fields: Any) -> Manifest:
    """Build a device that belongs to the controller."""
    return {"name": name, "taints": list(taints)} | fields


def a_slice(node: str = "node-a", *devices: str | Manifest, driver: str = DRIVER, **pool: Any) -> Manifest:
    """Build the only slice of a node's pool."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-{driver}"},
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1} | pool,
            "devices": [a_device(device) if isinstance(device, str) else device for device in devices],
        },
    }


def a_class(name: str = "gpu", *, labels: Mapping[str, str] = OURS, driver: str = DRIVER, **metadata: Any) -> Manifest:
    """Build a class of all devices of a driver, by default one that the controller allocates."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name, "labels": dict(labels)} | metadata,
        "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{driver}"'}}]},
    }


def a_claim(
    name: str = "claim-1",
    *,
    classes: Sequence[str] = ("gpu",),
    count: int = 1,
    owner: Manifest | None = None,
    **metadata: Any,
) -> Manifest:
    """Build a claim for `count` devices of each class."""
    if owner is not None:
        reference = {"apiVersion": "v1", "kind": "Pod", "name": owner["metadata"]["name"], "controller": True}
        metadata["ownerReferences"] = [reference | {"uid": owner["metadata"]["uid"]}]
    requests = [
        {"name": f"r{index}", "exactly": {"deviceClassName": each, "allocationMode": "ExactCount", "count": count}}
        for index, each in enumerate(classes)
    ]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"} | metadata,
        "spec": {"devices": {"requests": requests}},
    }


def a_pod(
    name: str = "pod-1", *claims: str, templates: Sequence[str] = (), gates: Sequence[str] = (GATE,), **spec: Any
) -> Manifest:
    """Build a gated Pod whose claims have the same names in the Pod."""
    entries: list[Manifest] = [{"name": claim, "resourceClaimName": claim} for claim in claims]
    entries += [{"name": each, "resourceClaimTemplateName": each} for each in templates]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "schedulingGates": [{"name": gate} for gate in gates],
            "containers": [{"name": "main", "image": "busybox:1"}],
            "resourceClaims": entries,
        }
        | spec,
        "status": {"phase": "Pending"},
    }


@dataclass
class ControlPlane:
    """The API server, as somebody in the cluster sees it, and controllers that work on it."""

    server: TestApiServer
    folder: Path
    started: list["Running"] = field(default_factory=list)

    def put(self, *manifests: Manifest) -> list[Manifest]:
        """Store objects."""
        return [self.server.put(_PLURALS[manifest["kind"]], manifest) for manifest in manifests]

    def put_one(self, manifest: Manifest) -> Manifest:
        """Store an object and return it."""
        return self.put(manifest)[0]

    def put_cluster(self, **nodes: Sequence[str | Manifest]) -> None:
        """Store a class, nodes and their devices."""
        self.put(a_class())
        for name, devices in nodes.items():
            node = name.replace("_", "-")
            self.put(a_node(node), a_slice(node, *devices))

    def pod(self, name: str = "pod-1") -> Manifest:
        """Return a Pod."""
        return self._find("pods", name)

    def claim(self, name: str = "claim-1") -> Manifest:
        """Return a claim."""
        return self._find("resourceclaims", name)

    def is_gated(self, name: str = "pod-1") -> bool:
        """Tell whether a Pod has its gate."""
        return any(gate["name"] == GATE for gate in self.pod(name)["spec"].get("schedulingGates", ()))

    def devices(self, claim: str = "claim-1") -> list[str]:
        """Return the devices of a claim as `pool/device`."""
        allocation = (self.claim(claim).get("status") or {}).get("allocation") or {}
        results = allocation.get("devices", {}).get("results", ())
        return [f"{result['pool']}/{result['device']}" for result in results]

    def users(self, claim: str = "claim-1") -> list[str]:
        """Return the Pods that a claim is reserved for."""
        return [entry["name"] for entry in (self.claim(claim).get("status") or {}).get("reservedFor") or ()]

    def events(self, name: str, reason: str = "DevicesDoNotFit") -> list[str]:
        """Return the messages of the Events about an object, sorted."""
        return sorted(
            event["message"]
            for event in self.server.all("events")
            if event["involvedObject"]["name"] == name and event["reason"] == reason
        )

    def writes(self) -> list[str]:
        """Return the requests that change claims and Pods."""
        return [
            f"{request.method} {request.path.split('/namespaces/')[-1]}"
            for request in self.server.requests
            if request.method != "GET" and "/events" not in request.path and "/leases" not in request.path
        ]

    def check(self) -> None:
        """Check what must hold at any time: no device twice, and no Pod without a gate that lacks a claim."""
        given: dict[str, str] = {}
        for claim in self.server.all("resourceclaims"):
            name = claim["metadata"]["name"]
            for device in self.devices(name):
                assert device not in given, f"{device} is given to {given[device]} and {name}"
                given[device] = name
        for pod in self.server.all("pods"):
            if self.is_gated(pod["metadata"]["name"]):
                continue
            for entry in pod["spec"]["resourceClaims"]:
                if "resourceClaimName" in entry:
                    assert pod["metadata"]["name"] in self.users(entry["resourceClaimName"]), pod

    def _find(self, plural: str, name: str) -> Manifest:
        return next(each for each in self.server.all(plural) if each["metadata"]["name"] == name)

    @asynccontextmanager
    async def controller(
        self, pace: Pace = QUICK, *, timeout_s: float = 30.0, **settings: Any
    ) -> AsyncIterator["Running"]:
        """Run a controller until the block ends; `timeout_s` bounds its requests."""
        values: dict[str, Any] = {"identity": "one", "leader_elect": False, "http_address": "127.0.0.1:0"}
        async with a_client(self.server, self.folder, timeout_s=timeout_s) as client:
            controller = Controller(Settings(**(values | settings)), client, pace)
            stop = asyncio.Event()
            task = asyncio.create_task(controller.run(stop))
            running = Running(controller, task, stop)
            try:
                yield running
            finally:
                stop.set()
                await running.end()


@dataclass
class Running:
    """A controller that runs."""

    controller: Controller
    task: asyncio.Task[None]
    stop: asyncio.Event

    def value(self, name: str, **labels: str) -> float:
        """Return a metric."""
        value = self.controller.registry.get_sample_value(f"dra_controller_{name}", labels)
        assert value is not None
        return value

    @property
    def address(self) -> str:
        """Where it serves HTTP; empty before it does."""
        return self.controller.address

    async def get(self, path: str) -> tuple[int, str]:
        """Ask its HTTP server."""
        async with aiohttp.ClientSession() as session, session.get(f"http://{self.address}{path}") as response:
            return response.status, await response.text()

    async def leading(self) -> None:
        """Wait until it decides."""
        await until(lambda: self.controller.leader.is_leading or self.task.done())
        if self.task.done():
            self.task.result()

    async def kill(self) -> None:
        """End it at once, wherever it is."""
        self.task.cancel()
        await self.end()

    async def end(self) -> None:
        """Wait for its end."""
        with suppress(asyncio.CancelledError):
            await self.task


_PLURALS = {
    "Node": "nodes",
    "Pod": "pods",
    "ResourceSlice": "resourceslices",
    "DeviceClass": "deviceclasses",
    "ResourceClaim": "resourceclaims",
    "DeviceTaintRule": "devicetaintrules",
}
