"""Paths and objects of the requests that are put to two API servers; `@ns` stands for the namespace."""

from typing import Any

from tests.support.api_exchange import MERGE, Step

RESOURCE = "/apis/resource.k8s.io/v1"
SLICES = f"{RESOURCE}/resourceslices"
CLASSES = f"{RESOURCE}/deviceclasses"
RULES = f"{RESOURCE}/devicetaintrules"
NODES = "/api/v1/nodes"
NS = "@ns"
CLAIMS = f"{RESOURCE}/namespaces/{NS}/resourceclaims"
TEMPLATES = f"{RESOURCE}/namespaces/{NS}/resourceclaimtemplates"
PODS = f"/api/v1/namespaces/{NS}/pods"
EVENTS = f"/api/v1/namespaces/{NS}/events"
MAPS = f"/api/v1/namespaces/{NS}/configmaps"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NS}/leases"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

Object = dict[str, Any]


def resource(kind: str, name: str, spec: Any = None, **metadata: Any) -> Object:
    head = {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": name, **metadata}}
    return head | ({"spec": spec} if spec is not None else {})


def request(name: str = "r", **exactly: Any) -> Object:
    return {"name": name, "exactly": {"deviceClassName": "class", **exactly}}


def claim(name: str, *requests: Any, constraints: Any = None, config: Any = None, **metadata: Any) -> Object:
    devices: Object = {"requests": list(requests) or [request()]}
    devices |= {"constraints": constraints} if constraints is not None else {}
    devices |= {"config": config} if config is not None else {}
    return resource("ResourceClaim", name, {"devices": devices}, **metadata)


def cel(expression: str) -> Object:
    return {"cel": {"expression": expression}}


def opaque(driver: str = "driver.example.com", parameters: Any = None) -> Object:
    return {"opaque": {"driver": driver, "parameters": {"a": 1} if parameters is None else parameters}}


def device(name: str = "gpu-0", **parts: Any) -> Object:
    return {"name": name, **parts}


def slice_of(name: str, *devices: Any, **spec: Any) -> Object:
    pool = {"name": "pool", "generation": 1, "resourceSliceCount": 1}
    base: Object = {"driver": "driver.example.com", "pool": pool, "nodeName": "node"}
    base |= {"devices": list(devices)} if devices else {}
    base |= spec
    return resource("ResourceSlice", name, {key: part for key, part in base.items() if part is not None})


def pod(name: str, **spec: Any) -> Object:
    containers = [{"name": "main", "image": "busybox:1"}]
    body = {"automountServiceAccountToken": False, "containers": containers, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": body}


def node(name: str, **parts: Any) -> Object:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, **parts}


def result(name: str = "r", **parts: Any) -> Object:
    return {"request": name, "driver": "driver.example.com", "pool": "pool", "device": "gpu-0", **parts}


def allocation(*results: Any, **parts: Any) -> Object:
    return {"devices": {"results": list(results) or [result()]}, "allocationTimestamp": "2026-01-01T00:00:00Z", **parts}


def user(uid: str = "uid-1", **parts: Any) -> Object:
    return {"resource": "pods", "name": "p", "uid": uid, **parts}


def post(path: str, *bodies: Any) -> list[Step]:
    return [Step("POST", path, body) for body in bodies]


def merge(path: str, patch: Any) -> Step:
    return Step("PATCH", path, patch, MERGE)


def status(name: str, **parts: Any) -> Step:
    return merge(f"{CLAIMS}/{name}/status", {"status": parts})
