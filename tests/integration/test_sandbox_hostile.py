"""Whatever is sent to the sandbox's API server, it answers with a Status and goes on."""

import copy
import json
import random
from typing import Any

import aiohttp
import pytest

from sandbox.api_server import ApiServer

_JUNK: tuple[Any, ...] = (
    None,
    True,
    -1,
    2**70,
    1.5,
    "",
    "a/b/c",
    "\0",
    "x" * 300,
    [],
    {},
    [None],
    [[]],
    {"": None},
    {"a": {"b": None}},
)
_EXACTLY = {"deviceClassName": "c", "selectors": [{"cel": {"expression": "true"}}]}
_CLAIM = {
    "metadata": {"name": "c", "labels": {"a": "b"}, "finalizers": ["a.b/c"], "ownerReferences": []},
    "spec": {
        "devices": {
            "requests": [{"name": "r", "exactly": _EXACTLY}],
            "constraints": [{"matchAttribute": "a.b/c"}],
            "config": [{"opaque": {"driver": "d", "parameters": {"a": 1}}}],
        }
    },
    "status": {"allocation": {"devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": "x"}]}}},
}  # fmt: skip
_SLICE = {
    "metadata": {"name": "s"},
    "spec": {
        "driver": "d",
        "nodeName": "n",
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "x", "attributes": {"a": {"int": 1}}, "capacity": {"m": {"value": "1Gi"}}, "taints": []}],
    },
}
_POD = {
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "m", "image": "i", "resources": {"limits": {"cpu": 1}}}], "schedulingGates": []},
    "status": {"conditions": [{"type": "Ready", "status": "True"}], "containerStatuses": []},
}
_BINDING = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
_OPERATIONS = [{"op": "add", "path": "/metadata/labels/a", "value": "b"}, {"op": "move", "from": "/a", "path": "/b"}]
_NS = "namespaces/default"
_TARGETS = (
    (f"/apis/resource.k8s.io/v1/{_NS}/resourceclaims", "c", _CLAIM),
    ("/apis/resource.k8s.io/v1/resourceslices", "s", _SLICE),
    (f"/api/v1/{_NS}/pods", "p", _POD),
    (f"/api/v1/{_NS}/pods", "p/binding", _BINDING),
    (f"/api/v1/{_NS}/pods", "p", _OPERATIONS),
)
_TYPES = (
    *("application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "text/plain"),
    *("application/merge-patch+json", "application/json-patch+json", "application/strategic-merge-patch+json"),
    "application/apply-patch+yaml",
)
_TAILS = ("", "", "", "/status", "?limit=-1", "?fieldManager=x", "?labelSelector=%00", "/%2e", "/a%2fb", "/%ff", "//")


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Give the paths of everything inside a value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [each for key, part in items for each in [(*path, key), *places(part, (*path, key))]]


def spoil(chance: random.Random, value: Any) -> Any:
    """Put junk somewhere into a copy of a value."""
    spoilt = copy.deepcopy(value)
    *path, last = chance.choice(places(spoilt))
    inside = spoilt
    for key in path:
        inside = inside[key]
    inside[last] = copy.deepcopy(chance.choice(_JUNK))
    return spoilt


@pytest.mark.parametrize("seed", range(3))
async def test_junk_is_answered_by_a_status(seed: int) -> None:
    chance = random.Random(seed)
    async with ApiServer() as server:
        headers = {"Authorization": f"Bearer {server.token}"}
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=False), headers=headers) as session:
            for _ in range(120):
                collection, name, good = chance.choice(_TARGETS)
                method = chance.choice(("POST", "PUT", "PATCH", "DELETE"))
                path = collection if method == "POST" and "/" not in name else f"{collection}/{name}"
                kind = {"Content-Type": "application/json" if method != "PATCH" else chance.choice(_TYPES)}
                data = json.dumps(spoil(chance, good) if chance.random() < 0.8 else good)
                url = f"{server.url}{path}{chance.choice(_TAILS)}"
                async with session.request(method, url, data=data, headers=kind) as response:
                    body = await response.json()
                    told = (seed, method, url, kind, data, body)
                    assert response.status < 500, told
                    assert response.status < 400 or body["kind"] == "Status", told
            assert (await session.get(f"{server.url}/readyz")).status == 200
        for kind_of in server.api.kinds:
            for stored in server.api.registry.store.all(kind_of):
                assert json.loads(stored.body) == stored.value


_CONFIG_MAPS = f"/api/v1/{_NS}/configmaps"


@pytest.mark.parametrize(
    ("method", "path", "data", "code"),
    [
        ("DELETE", f"{_CONFIG_MAPS}/c?gracePeriodSeconds=--5", "", 400),
        ("DELETE", f"{_CONFIG_MAPS}/c?gracePeriodSeconds=%C2%B2", "", 400),
        ("DELETE", f"{_CONFIG_MAPS}/c?gracePeriodSeconds={'9' * 5000}", "", 400),
        ("POST", _CONFIG_MAPS, "{metadata: {name: c}, data: {a: 1" + ":59" * 150_000 + "}}", 400),
        ("POST", _CONFIG_MAPS, "{metadata: {name: c}, data: {a: !!float 1:30.5}}", 400),
    ],
    ids=["two signs", "a digit of sorts", "many digits", "many sixties", "few sixties"],
)
async def test_a_number_that_is_none_is_refused(method: str, path: str, data: str, code: int) -> None:
    async with ApiServer() as server:
        headers = {"Authorization": f"Bearer {server.token}", "Content-Type": "application/yaml"}
        async with (
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=False), headers=headers) as session,
            session.request(method, f"{server.url}{path}", data=data or None) as response,
        ):
            assert (response.status, (await response.json())["kind"]) == (code, "Status")


async def test_warnings_are_no_more_than_a_client_reads() -> None:
    async with ApiServer() as server:
        headers = {"Authorization": f"Bearer {server.token}"}
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=False), headers=headers) as session:
            value = {"metadata": {"name": "c"}} | {f"unknown{index}": 1 for index in range(10_000)}
            async with session.post(f"{server.url}{_CONFIG_MAPS}", json=value) as response:
                assert response.status == 201
                assert 0 < sum(map(len, response.headers.getall("Warning"))) < 8000


async def test_a_body_that_is_not_encoded_as_it_says_is_refused() -> None:
    async with ApiServer() as server:
        headers = {"Authorization": f"Bearer {server.token}", "Content-Encoding": "gzip"}
        async with (
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=False), headers=headers) as session,
            session.post(f"{server.url}{_CONFIG_MAPS}", data=b"no gzip") as response,
        ):
            assert (response.status, (await response.json())["reason"]) == (400, "BadRequest")
