import asyncio
import io
import json
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from dra_driver import errors
from dra_driver.api.core_v1 import Node, Pod
from dra_driver.api.meta_v1 import ObjectMeta
from dra_driver.kube.client import ApiClient, PatchKind, Preconditions
from dra_driver.kube.credential import Credential
from dra_driver.kube.resource import LEASES, NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES, Selection
from dra_driver.kube.watch import Applied, Deleted, Replaced, Watch
from sandbox.api_server import ApiServer
from sandbox.api_server.kind import CONFIG_MAPS, Kind, Object
from sandbox.api_server.refusal import Refusal
from sandbox.api_server.registry import Admission
from tests.support.kube import a_slice


@dataclass
class Raw:
    """Requests as a client writes them that is not ours."""

    server: ApiServer
    session: aiohttp.ClientSession

    async def __call__(
        self, method: str, path: str, body: Any = None, *, content_type: str = "application/json", accept: str = ""
    ) -> tuple[int, Any]:
        data = io.BytesIO(body) if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else None
        headers = {"Content-Type": content_type} | ({"Accept": accept} if accept else {})
        async with self.session.request(method, f"{self.server.url}{path}", data=data, headers=headers) as response:
            text = await response.text()
            return response.status, json.loads(text) if text.startswith("{") else text


@asynccontextmanager
async def a_client(server: ApiServer, folder: Path) -> AsyncIterator[ApiClient]:
    async with ApiClient(await Credential.load(server.kubeconfig(folder / "kubeconfig"))) as client:
        yield client


@asynccontextmanager
async def raw_requests(server: ApiServer) -> AsyncIterator[Raw]:
    connector = aiohttp.TCPConnector(ssl=False)
    headers = {"Authorization": f"Bearer {server.token}"}
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        yield Raw(server, session)


def a_pod(name: str = "p", **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **metadata}, "spec": {"containers": [{"name": "main", "image": "busybox:1"}]}}


async def test_our_own_client_creates_changes_watches_and_deletes(tmp_path: Path) -> None:
    async with ApiServer() as server, a_client(server, tmp_path) as client:
        created = await client.create(RESOURCE_SLICES, a_slice("a", labels={"x": "1"}))
        assert created.metadata.generation == 1
        watch = Watch(client, RESOURCE_SLICES, Selection(label_selector="x"))
        async with aclosing(watch.changes()) as changes:
            first = await anext(changes)
            assert isinstance(first, Replaced)
            assert first.objects == (created,)
            changed = await client.patch(RESOURCE_SLICES, "a", {"metadata": {"labels": {"y": "2"}}})
            assert await anext(changes) == Applied(changed)
            with pytest.raises(errors.ApiConflictError):
                await client.update(RESOURCE_SLICES, created)
            await client.patch(RESOURCE_SLICES, "a", {"metadata": {"labels": {"x": None}}})
            assert isinstance(await anext(changes), Deleted)
            await client.delete(RESOURCE_SLICES, "a", preconditions=Preconditions(uid=created.metadata.uid))
        with pytest.raises(errors.ApiNotFoundError):
            await client.get(RESOURCE_SLICES, "a")


async def test_a_claim_is_allocated_with_a_finalizer_and_a_status_patch(tmp_path: Path) -> None:
    async with ApiServer() as server, a_client(server, tmp_path) as client, raw_requests(server) as request:
        spec = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}
        path = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
        status, claim = await request("POST", path, {"metadata": {"name": "c"}, "spec": spec})
        assert (status, "generation" in claim["metadata"]) == (201, False)
        finalizer = "resource.kubernetes.io/delete-protection"
        await client.patch(RESOURCE_CLAIMS, "c", {"metadata": {"finalizers": [finalizer]}}, namespace="default")
        result = {"request": "r", "driver": "d", "pool": "n", "device": "gpu-0"}
        allocation = {"devices": {"results": [result]}, "allocationTimestamp": "2026-01-01T00:00:00Z"}
        reserved = [{"resource": "pods", "name": "p", "uid": "u"}]
        patch = {"status": {"allocation": allocation, "reservedFor": reserved}}
        await client.patch(RESOURCE_CLAIMS, "c", patch, namespace="default", subresource="status")
        await client.delete(RESOURCE_CLAIMS, "c", namespace="default")
        held = await client.get(RESOURCE_CLAIMS, "c", namespace="default")
        assert held.metadata.deletion_timestamp
        assert held.status.reserved_for[0].uid == "u"
        await client.patch(RESOURCE_CLAIMS, "c", {"metadata": {"finalizers": None}}, namespace="default")
        with pytest.raises(errors.ApiNotFoundError):
            await client.get(RESOURCE_CLAIMS, "c", namespace="default")


async def test_a_list_in_pages_is_that_of_one_moment(tmp_path: Path) -> None:
    async with ApiServer() as server, a_client(server, tmp_path) as client, raw_requests(server) as request:
        for index in range(5):
            await client.create(NODES, Node(metadata=ObjectMeta(name=f"n{index}")))
        _, page = await request("GET", "/api/v1/nodes?limit=2")
        assert page["metadata"]["remainingItemCount"] == 3
        await client.delete(NODES, "n4")
        await client.create(NODES, Node(metadata=ObjectMeta(name="n5")))
        names = [item["metadata"]["name"] for item in page["items"]]
        while token := page["metadata"].get("continue"):
            _, page = await request("GET", f"/api/v1/nodes?limit=2&continue={token}")
            names += [item["metadata"]["name"] for item in page["items"]]
        assert names == ["n0", "n1", "n2", "n3", "n4"]
        server.api.registry.store.compact()
        status, _ = await request("GET", "/api/v1/nodes?resourceVersion=2&resourceVersionMatch=Exact")
        assert status == 410


async def test_what_a_watch_missed_comes_until_it_is_forgotten() -> None:
    async with ApiServer() as server, raw_requests(server) as request:
        _, listed = await request("GET", "/api/v1/nodes")
        version = listed["metadata"]["resourceVersion"]
        await request("POST", "/api/v1/nodes", {"metadata": {"name": "n"}})
        path = f"/api/v1/nodes?watch=1&resourceVersion={version}"
        async with request.session.get(f"{server.url}{path}") as response:
            event = json.loads(await response.content.readline())
        assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "n")
        server.api.registry.store.compact()
        async with request.session.get(f"{server.url}{path}") as response:
            event = json.loads(await response.content.readline())
        assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")


async def test_a_watch_list_ends_its_beginning_with_a_bookmark() -> None:
    async with ApiServer() as server, raw_requests(server) as request:
        await request("POST", "/api/v1/nodes", {"metadata": {"name": "n"}})
        query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
        async with request.session.get(f"{server.url}/api/v1/nodes?{query}") as response:
            added, mark = [json.loads(await response.content.readline()) for _ in range(2)]
        assert added["type"] == "ADDED"
        assert mark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_a_watch_that_does_not_keep_up_is_ended(tmp_path: Path) -> None:
    async with ApiServer() as server, a_client(server, tmp_path) as client, raw_requests(server) as request:
        response = await request.session.get(f"{server.url}/api/v1/nodes?watch=1")
        (watch,) = server.api.watches
        watch.max_waiting_bytes = 10
        await client.create(NODES, Node(metadata=ObjectMeta(name="n")))
        assert json.loads(await response.content.readline())["object"]["code"] == 410
        assert await response.content.readline() == b""
        assert server.api.watches == set()


@pytest.mark.parametrize(
    ("method", "path", "body", "code", "reason"),
    [
        ("GET", "/api/v1/nodes/none", None, 404, "NotFound"),
        ("GET", "/api/v1/unknown", None, 404, "NotFound"),
        ("GET", "/api/v1/nodes/%2e%2e/x", None, 404, "NotFound"),
        ("GET", "/api/v1/nodes/%ff", None, 404, "NotFound"),
        ("GET", "/api/v1/nodes?continue=abc", None, 400, "BadRequest"),
        ("GET", "/api/v1/nodes?limit=x", None, 400, "BadRequest"),
        ("GET", "/api/v1/nodes?fieldSelector=spec.x=1", None, 400, "BadRequest"),
        ("GET", "/api/v1/nodes?labelSelector=a+in", None, 400, "BadRequest"),
        ("PUT", "/api/v1/nodes", {}, 405, "MethodNotAllowed"),
        ("POST", "/api/v1/nodes", b"{", 400, "BadRequest"),
        ("POST", "/api/v1/nodes", b"[]", 400, "BadRequest"),
        ("POST", "/api/v1/nodes", b"[" * 100_000, 400, "BadRequest"),
        ("POST", "/api/v1/nodes", b'{"a":' * 500 + b"1" + b"}" * 500, 400, "BadRequest"),
        ("POST", "/api/v1/nodes", b'{"metadata":{"name":"' + b"x" * 2**22 + b'"}}', 413, "RequestEntityTooLarge"),
        ("POST", "/api/v1/nodes", {"kind": "Pod", "metadata": {"name": "n"}}, 400, "BadRequest"),
        ("POST", "/api/v1/nodes", {"apiVersion": "v2", "metadata": {"name": "n"}}, 400, "BadRequest"),
        ("POST", "/api/v1/nodes", {"metadata": {"name": "N!"}}, 422, "Invalid"),
        ("POST", "/api/v1/nodes", {"metadata": {"name": 1}}, 400, "BadRequest"),
        ("POST", "/api/v1/nodes", {"metadata": []}, 400, "BadRequest"),
        ("POST", "/api/v1/nodes", {"metadata": {"name": "n"}, "spec": 1}, 400, "BadRequest"),
        ("POST", "/api/v1/namespaces/none/pods", a_pod(), 404, "NotFound"),
        ("POST", "/api/v1/namespaces/default/pods", a_pod(namespace="other"), 400, "BadRequest"),
        ("POST", "/api/v1/nodes?dryRun=Some", {"metadata": {"name": "n"}}, 422, "Invalid"),
        ("POST", "/api/v1/nodes?fieldValidation=Strict", {"metadata": {"name": "n"}, "x": 1}, 400, "BadRequest"),
        ("DELETE", "/api/v1/nodes/none", {"preconditions": 1}, 400, "BadRequest"),
    ],
)
async def test_what_makes_no_sense_gets_a_status(method: str, path: str, body: Any, code: int, reason: str) -> None:
    async with ApiServer() as server, raw_requests(server) as request:
        found, status = await request(method, path, body)
        assert (found, status["kind"], status["code"], status["reason"]) == (code, "Status", code, reason)


async def test_who_has_no_token_gets_in_nowhere() -> None:
    async with ApiServer() as server, raw_requests(server) as request:
        for token in ("", "Bearer", f"Bearer {server.token}x", f"Basic {server.token}"):
            headers = {"Authorization": token}
            async with request.session.get(f"{server.url}/api/v1/nodes", headers=headers) as response:
                assert response.status == 401
                assert (await response.json())["reason"] == "Unauthorized"


async def test_the_certificate_is_checked_and_good(tmp_path: Path) -> None:
    async with ApiServer() as server, ApiServer() as other, a_client(server, tmp_path) as client:
        await client.list(NODES)
        wrong = json.loads((tmp_path / "kubeconfig").read_text())
        wrong["clusters"][0]["cluster"]["server"] = other.url
        (tmp_path / "wrong").write_text(json.dumps(wrong))
        async with ApiClient(await Credential.load(tmp_path / "wrong")) as stranger:
            with pytest.raises(errors.ApiError, match="certificate"):
                await stranger.list(NODES)


async def test_the_kubeconfig_is_its_owners_only(tmp_path: Path) -> None:
    async with ApiServer() as server:
        assert server.kubeconfig(tmp_path / "kubeconfig").stat().st_mode & 0o777 == 0o600


async def test_a_json_patch_and_a_strategic_merge_patch_are_understood(tmp_path: Path) -> None:
    async with ApiServer() as server, a_client(server, tmp_path) as client, raw_requests(server) as request:
        await request("POST", "/api/v1/namespaces/default/pods", a_pod(labels={"a": "1"}))
        operations = [
            {"op": "test", "path": "/metadata/labels/a", "value": "1"},
            {"op": "replace", "path": "/metadata/labels/a", "value": "2"},
        ]
        patched = await client.patch(PODS, "p", operations, namespace="default", kind=PatchKind.JSON)
        assert patched.metadata.labels == {"a": "2"}
        with pytest.raises(errors.ApiInvalidError, match="test failed"):
            await client.patch(PODS, "p", operations, namespace="default", kind=PatchKind.JSON)
        merge = {"spec": {"containers": [{"name": "main", "image": "busybox:2"}]}}
        strategic = "application/strategic-merge-patch+json"
        status, pod = await request("PATCH", "/api/v1/namespaces/default/pods/p", merge, content_type=strategic)
        assert (status, [container["image"] for container in pod["spec"]["containers"]]) == (200, ["busybox:2"])


async def test_a_client_is_warned_of_fields_that_get_lost_and_of_bad_habits() -> None:
    async with ApiServer() as server, raw_requests(server) as request:
        spec: dict[str, Any] = {"driver": "Up.example.com", "nodeName": "n", "planet": "Mars"}
        spec |= {"pool": {"name": "n", "generation": 1, "resourceSliceCount": 1}}
        url = f"{server.url}/apis/resource.k8s.io/v1/resourceslices"
        async with request.session.post(url, json={"metadata": {"name": "s"}, "spec": spec}) as response:
            assert response.headers.getall("Warning") == [
                '299 - "unknown field \\"spec.planet\\""',
                (
                    '299 - "spec.driver: driver names should be lowercase; '
                    '\\"Up.example.com\\" contains uppercase characters"'
                ),
            ]
            assert "planet" not in (await response.json())["spec"]


async def test_server_side_apply_takes_back_what_a_manager_wants_no_more() -> None:
    async with ApiServer() as server, raw_requests(server) as request:
        path = "/api/v1/namespaces/default/configmaps/m"

        async def apply(manager: str, data: dict[str, str], force: str = "") -> tuple[int, Any]:
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": data}
            target = f"{path}?fieldManager={manager}{force}"
            return await request("PATCH", target, body, content_type="application/apply-patch+yaml")

        assert (await apply("one", {"a": "1", "b": "1"}))[0] == 201
        assert (await apply("two", {"c": "2"}))[1]["data"] == {"a": "1", "b": "1", "c": "2"}
        assert (await apply("one", {"a": "1"}))[1]["data"] == {"a": "1", "c": "2"}
        assert (await apply("two", {"a": "2"}))[0] == 409
        assert (await apply("two", {"a": "2"}, "&force=true"))[1]["data"] == {"a": "2"}
        _, listed = await request("GET", "/api/v1/namespaces/default/configmaps")
        await request("DELETE", path)
        assert (await apply("two", {"x": "1"}))[1]["data"] == {"x": "1"}
        assert len(listed["items"]) == 1


async def test_a_pod_on_a_node_has_time_to_end() -> None:
    async with ApiServer() as server, raw_requests(server) as request:
        pod = a_pod()
        pod["spec"] |= {"nodeName": "n", "terminationGracePeriodSeconds": 5}
        pods = "/api/v1/namespaces/default/pods"
        await request("POST", pods, pod)
        _, ending = await request("DELETE", f"{pods}/p")
        assert ending["metadata"]["deletionGracePeriodSeconds"] == 5
        assert (await request("GET", f"{pods}/p"))[0] == 200
        await request("DELETE", f"{pods}/p", {"gracePeriodSeconds": 0})
        assert (await request("GET", f"{pods}/p"))[0] == 404
        await request("POST", pods, pod)
        assert (await request("POST", f"{pods}/p/eviction", {"deleteOptions": {"gracePeriodSeconds": 0}}))[0] == 201
        assert (await request("GET", f"{pods}/p"))[0] == 404


async def test_admission_may_refuse_and_change_what_is_written() -> None:
    def admit(kind: Kind, operation: str, value: Object) -> None:
        if operation == "DELETE":
            raise Refusal(403, "Forbidden", f"{kind.plural} stay")
        value["data"] = {"by": "admission"}

    path = "/api/v1/namespaces/default/configmaps"
    async with ApiServer(admission=(only(CONFIG_MAPS, admit),)) as server, raw_requests(server) as request:
        assert (await request("POST", path, {"metadata": {"name": "m"}}))[1]["data"] == {"by": "admission"}
        assert (await request("DELETE", f"{path}/m"))[0] == 403


def only(wanted: Kind, admit: Admission) -> Admission:
    return lambda kind, operation, value: admit(kind, operation, value) if kind is wanted else None


async def test_the_token_and_the_gates_are_settings() -> None:
    async with ApiServer(feature_gates={"DRADeviceTaintRules": False}) as server, raw_requests(server) as request:
        assert (await request("GET", "/apis/resource.k8s.io/v1/devicetaintrules"))[0] == 404
        _, group = await request("GET", "/apis/resource.k8s.io/v1")
        assert "devicetaintrules" not in [each["name"] for each in group["resources"]]
    with pytest.raises(errors.SettingError, match="DRANothing"):
        ApiServer(feature_gates={"DRANothing": True})


async def test_a_lease_is_not_taken_without_the_version_that_was_seen(tmp_path: Path) -> None:
    async with ApiServer() as server, a_client(server, tmp_path) as client, raw_requests(server) as request:
        path = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
        await request("POST", path, {"metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}})
        lease = await client.get(LEASES, "l", namespace="default")
        status, refused = await request("PUT", f"{path}/l", {"metadata": {"name": "l"}, "spec": {}})
        assert (status, refused["details"]["causes"][0]["field"]) == (422, "metadata.resourceVersion")
        await client.update(LEASES, lease)


async def test_a_namespace_goes_with_what_is_in_it(tmp_path: Path) -> None:
    async with ApiServer() as server, raw_requests(server) as request:
        await request("POST", "/api/v1/namespaces", {"metadata": {"name": "ns"}})
        await request("POST", "/api/v1/namespaces/ns/pods", a_pod(finalizers=["example.com/x"]))
        status, _ = await request("DELETE", "/api/v1/namespaces/ns")
        assert status == 200
        _, namespace = await request("GET", "/api/v1/namespaces/ns")
        assert namespace["status"]["phase"] == "Terminating"
        status, refused = await request("POST", "/api/v1/namespaces/ns/pods", a_pod("q"))
        assert (status, refused["reason"]) == (403, "Forbidden")
        merge = "application/merge-patch+json"
        await request("PATCH", "/api/v1/namespaces/ns/pods/p", {"metadata": {"finalizers": None}}, content_type=merge)
        status, _ = await request("GET", "/api/v1/namespaces/ns")
        assert status == 404


async def test_a_pod_is_bound_once(tmp_path: Path) -> None:
    async with ApiServer() as server, a_client(server, tmp_path) as client, raw_requests(server) as request:
        await request("POST", "/api/v1/namespaces/default/pods", a_pod())
        binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "node-a"}}
        path = "/api/v1/namespaces/default/pods/p/binding"
        assert (await request("POST", path, binding))[0] == 201
        pod: Pod = await client.get(PODS, "p", namespace="default")
        assert pod.spec.node_name == "node-a"
        assert (await request("POST", path, binding))[0] == 409


async def test_objects_outlive_the_server_and_versions_rise(tmp_path: Path) -> None:
    data = tmp_path / "state.sqlite"
    async with ApiServer(data) as server, a_client(server, tmp_path) as client:
        created = await client.create(RESOURCE_SLICES, a_slice("a"))
        await client.create(RESOURCE_SLICES, a_slice("b"))
        await client.delete(RESOURCE_SLICES, "b")
        port = server.port
    async with ApiServer(data, port=port) as server, a_client(server, tmp_path) as client:
        assert (await client.list(RESOURCE_SLICES)).items == (created,)
        later = await client.create(RESOURCE_SLICES, a_slice("c"))
        assert int(later.metadata.resource_version) > int(created.metadata.resource_version) + 2
        with pytest.raises(errors.StateError, match="no other process"):
            await ApiServer(data).__aenter__()


async def test_many_clients_at_once_get_every_change(tmp_path: Path) -> None:
    async with ApiServer() as server, a_client(server, tmp_path) as client:

        async def watch() -> set[str]:
            seen: set[str] = set()
            async with aclosing(Watch(client, NODES).changes()) as changes:
                async for change in changes:
                    found = change.objects if isinstance(change, Replaced) else (change.object,)
                    seen |= {node.metadata.name for node in found}
                    if len(seen) == 50:
                        return seen
            return seen

        async with asyncio.TaskGroup() as group:
            watches = [group.create_task(watch()) for _ in range(20)]
            for index in range(50):
                await client.create(NODES, Node(metadata=ObjectMeta(name=f"n{index}")))
        assert all(len(task.result()) == 50 for task in watches)
