"""Pods with claims for a whole cluster of pretended nodes, made through its API, and when each was allocated."""

import asyncio
import json
import random
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp
import msgspec

from dra_driver.allocator import ALLOCATION_GATE, ALLOCATOR_KEY, ALLOCATOR_TAINT, Allocator
from dra_driver.api.core_v1 import Pod
from dra_driver.kube.client import ApiClient
from dra_driver.kube.credential import Credential
from dra_driver.kube.resource import NODES, PODS, Selection
from dra_driver.kube.transport import Request, Transport
from dra_driver.kube.watch import Applied, Replaced, Watch

DRIVER: Final = "gpu.example.com"
CLASS: Final = "device.example.com"
NAMESPACE: Final = "default"
PER_NODE: Final = 8
GATED: Final = "gated"
"""The label of Pods that had a gate."""

_AT_ONCE: Final = 16
_PATIENCE_S: Final = 180
_TIMEOUT: Final = aiohttp.ClientTimeout(total=60)
_ATTRIBUTES: Final = f'device.attributes["{DRIVER}"]'

Raw = dict[str, Any]


@dataclass(slots=True)
class Times:
    """Seconds on one clock by Pod: when its creation was sent, and when it was seen to be allocated and to be bound."""

    created: dict[str, float] = field(default_factory=dict)
    allocated: dict[str, float] = field(default_factory=dict)
    bound: dict[str, float] = field(default_factory=dict)

    @property
    def waits_s(self) -> list[float]:
        """From creation to allocation, for each Pod."""
        return [at - self.created[pod] for pod, at in self.allocated.items() if pod in self.created]

    @property
    def rate(self) -> float:
        """Pods allocated a second, over all of them."""
        return self._rate(self.allocated)

    @property
    def bound_rate(self) -> float | None:
        """Pods bound a second; None where nobody binds Pods."""
        return self._rate(self.bound) if self.bound else None

    def _rate(self, times: dict[str, float]) -> float:
        return len(times) / (max(times.values()) - min(self.created.values()))


class PodLoad:
    """A client that makes what a benchmark needs. `by_controller` gives nodes, class and Pods to the controller.

    `has_scheduler` tells whether Pods are bound, which is then waited for.
    """

    def __init__(self, client: ApiClient, credential: Credential, *, by_controller: bool, has_scheduler: bool) -> None:
        self._has_scheduler = has_scheduler
        self._client = client
        self._transport = Transport(credential, user_agent="benchmark")
        self._by_controller = by_controller

    async def make_fleet(self, nodes: int) -> None:
        """Make nodes, their slices and the class, and wait until Pods may go to the nodes."""
        await self._transport.open()
        labels = {ALLOCATOR_KEY: Allocator.CONTROLLER.value} if self._by_controller else {}
        selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
        class_ = {"metadata": {"name": CLASS, "labels": labels}, "spec": {"selectors": [selector]}}
        await self._post("/apis/resource.k8s.io/v1/deviceclasses", class_)
        names = [f"node-{index:05}" for index in range(nodes)]
        await _for_each(names, lambda name: self._post("/api/v1/nodes", a_node(name, labels)))
        slices = [a_slice(name, linked=index % 2 == 0, tainted=self._by_controller) for index, name in enumerate(names)]
        await _for_each(slices, lambda each: self._post("/apis/resource.k8s.io/v1/resourceslices", each))
        async with asyncio.timeout(_PATIENCE_S):
            while not await self._are_ready(nodes):  # noqa: ASYNC110 - polled by REST
                await asyncio.sleep(0.5)

    async def run(self, prefix: str, count: int, *, rate: float = 0.0) -> Times:
        """Create Pods, as fast as can be or so many a second, and wait until all are allocated and bound."""
        times = Times()
        claims = [a_claim(f"{prefix}-{index}", index) for index in range(count)]
        await _for_each(claims, lambda each: self._post(_claims(), each))
        done = asyncio.Event()
        watching = asyncio.create_task(self._follow(prefix, count, times, done))
        create = self._create(times)
        if rate:
            await self._create_evenly(claims, rate, create)
        else:
            await _for_each(claims, create)
        async with asyncio.timeout(_PATIENCE_S):
            await done.wait()
        watching.cancel()
        await asyncio.wait((watching,))
        return times

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()

    def _create(self, times: Times) -> Callable[[Raw], Coroutine[Any, Any, None]]:
        async def create(claim: Raw) -> None:
            name = claim["metadata"]["name"]
            times.created[name] = time.monotonic()
            await self._post(_pods(), a_pod(name, gated=self._by_controller))

        return create

    async def _create_evenly(
        self, claims: Sequence[Raw], rate: float, create: Callable[[Raw], Coroutine[Any, Any, None]]
    ) -> None:
        started = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            for index, claim in enumerate(claims):
                await asyncio.sleep(max(0.0, started + index / rate - time.monotonic()))
                tasks.create_task(create(claim))

    async def _follow(self, prefix: str, count: int, times: Times, done: asyncio.Event) -> None:
        watch = Watch(self._client, PODS, Selection(namespace=NAMESPACE))
        async with aclosing(watch.changes()) as changes:
            async for change in changes:
                pods = change.objects if isinstance(change, Replaced) else [change.object]
                if isinstance(change, Applied | Replaced):
                    _note(times, [pod for pod in pods if pod.metadata.name.startswith(f"{prefix}-")])
                if len(times.allocated) == count and (len(times.bound) == count or not self._has_scheduler):
                    done.set()

    async def _are_ready(self, count: int) -> bool:
        listing = await self._client.list(NODES)
        return sum(not node.spec.taints and bool(node.status.allocatable) for node in listing.items) >= count

    async def _post(self, path: str, value: Raw) -> None:
        body = json.dumps(value).encode()
        async with self._transport.exchange(Request(f"create {path}", "POST", path, _TIMEOUT, body=body)) as answer:
            await answer.read()


def _note(times: Times, pods: Iterable[Pod]) -> None:
    now = time.monotonic()
    for pod in pods:
        name = pod.metadata.name
        if pod.spec.node_name:
            times.bound.setdefault(name, now)
        # Without a gate, kube-scheduler binds a Pod right after it has allocated the claims.
        if (pod.spec.node_name or not pod.spec.scheduling_gates) and (
            GATED in pod.metadata.labels or pod.spec.node_name
        ):
            times.allocated.setdefault(name, now)


def _pods() -> str:
    return f"/api/v1/namespaces/{NAMESPACE}/pods"


def _claims() -> str:
    return f"/apis/resource.k8s.io/v1/namespaces/{NAMESPACE}/resourceclaims"


async def _for_each(values: Sequence[Any], do: Callable[[Any], Coroutine[Any, Any, None]]) -> None:
    """Do something with each value, several at once."""
    iterator: Iterator[Any] = iter(values)

    async def work() -> None:
        for value in iterator:
            await do(value)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(_AT_ONCE):
            tasks.create_task(work())


def a_node(name: str, labels: dict[str, str]) -> Raw:
    """Build a node that kwok plays."""
    resources = {"cpu": "64", "memory": "512Gi", "pods": "110"}
    return {
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, "type": "kwok", **labels},
            "annotations": {"kwok.x-k8s.io/node": "fake"},
        },
        "status": {
            "allocatable": resources,
            "capacity": resources,
            "conditions": [{"type": "Ready", "status": "True", "reason": "Pretended", "message": "pretended"}],
        },
    }


def a_slice(node: str, *, linked: bool, tainted: bool) -> Raw:
    """Build the slice of a node: eight GPUs, of one link domain or to be shared."""
    devices = [_a_device(node, index, linked=linked, tainted=tainted) for index in range(PER_NODE)]
    spec = {"driver": DRIVER, "nodeName": node, "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}}
    return {"metadata": {"name": f"{node}-{DRIVER}"}, "spec": {**spec, "devices": devices}}


def _a_device(node: str, index: int, *, linked: bool, tainted: bool) -> Raw:
    attributes: Raw = {
        "model": {"string": "H100" if linked else "L40S"},
        "uuid": {"string": f"GPU-{node}-{index}"},
        "numa": {"int": index // 4},
    }
    device: Raw = {"name": f"gpu-{index}", "attributes": attributes, "capacity": {"memory": {"value": "80Gi"}}}
    if linked:
        attributes["linkDomain"] = {"string": node}
    else:
        device["allowMultipleAllocations"] = True
    if tainted:
        device["taints"] = [msgspec.to_builtins(ALLOCATOR_TAINT)]
    return device


def a_claim(name: str, index: int) -> Raw:
    """Build a claim: six of ten for one GPU, two for a share, two for two linked GPUs."""
    kind = random.Random(index).random()  # noqa: S311 - the same claims in every run
    exactly: Raw = {"deviceClassName": CLASS}
    devices: Raw = {"requests": [{"name": "device", "exactly": exactly}]}
    expression = f'{_ATTRIBUTES}.model == "H100"'
    if kind < 0.2:  # noqa: PLR2004 - two of ten
        expression = f'{_ATTRIBUTES}.model == "L40S"'
        exactly["capacity"] = {"requests": {"memory": "20Gi"}}
    elif kind < 0.4:  # noqa: PLR2004 - two more
        exactly["count"] = 2
        devices["constraints"] = [{"requests": ["device"], "matchAttribute": f"{DRIVER}/linkDomain"}]
    exactly["selectors"] = [{"cel": {"expression": expression}}]
    return {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": {"devices": devices}}


def a_pod(name: str, *, gated: bool) -> Raw:
    """Build the Pod of the claim of the same name."""
    container = {
        "name": "main",
        "image": "none",
        "resources": {"requests": {"cpu": "100m", "memory": "100Mi"}, "claims": [{"name": "device"}]},
    }
    spec: Raw = {
        "containers": [container],
        "resourceClaims": [{"name": "device", "resourceClaimName": name}],
        "nodeSelector": {"type": "kwok"},
    }
    if gated:
        spec["schedulingGates"] = [{"name": ALLOCATION_GATE}]
    labels = {GATED: "true"} if gated else {}
    return {"metadata": {"name": name, "namespace": NAMESPACE, "labels": labels}, "spec": spec}
