import asyncio
import traceback
from pathlib import Path
from typing import Any

import pytest

from dra_driver import errors
from dra_driver.api.core_v1 import Node, Pod
from dra_driver.api.meta_v1 import ObjectMeta
from dra_driver.api.resource_v1 import ResourceClaim
from dra_driver.kube.client import ApiClient, PatchKind, Preconditions
from dra_driver.kube.credential import Credential
from dra_driver.kube.resource import NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES, Selection
from sandbox.api_server.kind import Kind, Object
from sandbox.api_server.refusal import Refusal
from tests.support.api_fault import Fault
from tests.support.api_server import TestApiServer
from tests.support.kube import a_client, a_slice, a_slice_dict
from tests.support.wait import until


async def test_an_object_lives_from_create_to_delete(tmp_path: Path) -> None:
    async with TestApiServer() as server, a_client(server, tmp_path) as client:
        created = await client.create(RESOURCE_SLICES, a_slice("a", labels={"x": "1"}))
        assert created.metadata.uid
        assert await client.get(RESOURCE_SLICES, "a") == created
        updated = await client.update(RESOURCE_SLICES, a_slice("a", resource_version=created.metadata.resource_version))
        assert updated.metadata.labels == {}
        patched = await client.patch(RESOURCE_SLICES, "a", {"metadata": {"labels": {"y": "2"}}})
        assert patched.metadata.labels == {"y": "2"}
        await client.delete(RESOURCE_SLICES, "a")
        with pytest.raises(errors.ApiNotFoundError):
            await client.get(RESOURCE_SLICES, "a")


async def test_a_status_is_written_apart_from_the_rest(tmp_path: Path) -> None:
    async with TestApiServer() as server, a_client(server, tmp_path) as client:
        server.put("resourceclaims", {"metadata": {"name": "c", "namespace": "ns"}, "spec": {"devices": {}}})
        claim = await client.get(RESOURCE_CLAIMS, "c", namespace="ns")
        patch = {"status": {"allocation": {}, "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]}}
        await client.patch(RESOURCE_CLAIMS, "c", patch, namespace="ns", subresource="status")
        with pytest.raises(errors.ApiConflictError):
            await client.update_status(RESOURCE_CLAIMS, claim)
        claim = await client.get(RESOURCE_CLAIMS, "c", namespace="ns")
        emptied = ResourceClaim(metadata=claim.metadata)
        assert (await client.update(RESOURCE_CLAIMS, emptied)).status == claim.status
        assert (await client.update_status(RESOURCE_CLAIMS, emptied)).status != claim.status


async def test_a_dry_run_answers_and_changes_nothing(tmp_path: Path) -> None:
    async with TestApiServer() as server, a_client(server, tmp_path) as client:
        server.put("resourceslices", a_slice_dict("there"))
        await client.create(RESOURCE_SLICES, a_slice("a"), dry_run=True)
        await client.update(RESOURCE_SLICES, a_slice("there", labels={"x": "1"}), dry_run=True)
        await client.patch(RESOURCE_SLICES, "there", {"metadata": {"labels": {"x": "1"}}}, dry_run=True)
        await client.delete(RESOURCE_SLICES, "there", dry_run=True)
        assert [(one["metadata"]["name"], one["metadata"].get("labels")) for one in server.all("resourceslices")] == [
            ("there", None)
        ]


async def test_fields_whose_gate_is_off_are_missing_in_the_answer(tmp_path: Path) -> None:
    async with TestApiServer() as server, a_client(server, tmp_path) as client:
        server.drop_fields("resourceslices", "metadata.labels")
        answer = await client.create(RESOURCE_SLICES, a_slice(labels={"a": "b"}), dry_run=True)
        assert answer.metadata.labels == {}


async def test_the_field_manager_and_force_are_told(tmp_path: Path) -> None:
    async with TestApiServer() as server, a_client(server, tmp_path) as client:
        applied = await client.patch(
            RESOURCE_SLICES, "a", a_slice("a"), kind=PatchKind.APPLY, field_manager="me", force=True
        )
        assert applied.metadata.name == "a"
        request = server.requests[-1]
        assert request.query == {"fieldManager": "me", "force": "true"}
        assert request.headers["Content-Type"] == "application/apply-patch+yaml"


async def test_a_json_patch_goes_out_as_it_is(tmp_path: Path) -> None:
    async with TestApiServer() as server, a_client(server, tmp_path) as client:
        server.put("nodes", {"metadata": {"name": "a", "labels": {"b": "c"}}})
        operations = [{"op": "remove", "path": "/metadata/labels"}]
        assert (await client.patch(NODES, "a", operations, kind=PatchKind.JSON)).metadata.labels == {}
        assert server.requests[-1].json == operations
        assert server.requests[-1].headers["Content-Type"] == "application/json-patch+json"


@pytest.mark.parametrize("preconditions", [Preconditions(uid="other"), Preconditions(resource_version="1")])
async def test_a_delete_whose_preconditions_do_not_hold_is_a_conflict(
    tmp_path: Path, preconditions: Preconditions
) -> None:
    async with TestApiServer() as server, a_client(server, tmp_path) as client:
        stored = server.put("nodes", {"metadata": {"name": "a"}})["metadata"]
        with pytest.raises(errors.ApiConflictError, match="Precondition failed"):
            await client.delete(NODES, "a", preconditions=preconditions)
        held = Preconditions(uid=stored["uid"], resource_version=stored["resourceVersion"])
        await client.delete(NODES, "a", preconditions=held)
        assert server.all("nodes") == []


@pytest.mark.parametrize(
    ("selection", "names"),
    [
        (Selection(), ["a1", "a2", "b1"]),
        (Selection(field_selector="spec.nodeName=node-a"), ["a1", "a2"]),
        (Selection(field_selector="spec.nodeName=node-a,metadata.name!=a1"), ["a2"]),
        (Selection(label_selector="tier in (x, y)"), ["b1"]),
        (Selection(label_selector="!tier"), ["a1", "a2"]),
    ],
)
async def test_a_list_is_selected_and_complete(tmp_path: Path, selection: Selection, names: list[str]) -> None:
    async with TestApiServer() as server, a_client(server, tmp_path) as client:
        server.put("resourceslices", a_slice_dict("a1"))
        server.put("resourceslices", a_slice_dict("a2"))
        last = a_slice_dict("b1", node="node-b")
        last["metadata"]["labels"] = {"tier": "x"}
        server.put("resourceslices", last)
        listing = await client.list(RESOURCE_SLICES, selection, page_size=1)
        assert [one.metadata.name for one in listing.items] == names
        assert {one.kind for one in listing.items} == {"ResourceSlice"}
        assert listing.resource_version == str(server.store.revision)


async def test_a_list_of_one_namespace_is_of_one_namespace(tmp_path: Path) -> None:
    async with TestApiServer() as server, a_client(server, tmp_path) as client:
        for namespace in ("one", "two"):
            server.put("pods", {"metadata": {"name": "p", "namespace": namespace}})
        assert len((await client.list(PODS)).items) == 2
        assert [pod.metadata.namespace for pod in (await client.list(PODS, Selection(namespace="one"))).items] == [
            "one"
        ]


async def test_a_list_that_is_forgotten_half_way_is_read_in_one_go(tmp_path: Path) -> None:
    async with TestApiServer() as server, a_client(server, tmp_path) as client:
        for number in range(5):
            server.put("resourceslices", a_slice_dict(f"s{number}"))
        body = Refusal(410, "Expired", "The provided continue parameter is too old").status
        page = Fault("status", query="continue", status=410, body=body)
        server.inject(page)
        listing = await client.list(RESOURCE_SLICES, page_size=2)
        assert len(listing.items) == 5
        assert [("limit" in one.query, "continue" in one.query) for one in server.requests] == [
            (True, False),
            (True, True),
            (False, False),
        ]


async def test_a_list_that_is_gone_from_the_start_is_an_error(tmp_path: Path) -> None:
    async with TestApiServer() as server, a_client(server, tmp_path) as client:
        server.inject(Fault("status", status=410))
        with pytest.raises(errors.ApiGoneError):
            await client.list(RESOURCE_SLICES)


async def test_a_create_that_is_there_already_and_a_stale_update_are_conflicts(tmp_path: Path) -> None:
    async with TestApiServer() as server, a_client(server, tmp_path) as client:
        server.put("resourceslices", a_slice_dict("a"))
        with pytest.raises(errors.ApiConflictError, match="AlreadyExists"):
            await client.create(RESOURCE_SLICES, a_slice("a"))
        with pytest.raises(errors.ApiConflictError, match="the object has been modified"):
            await client.update(RESOURCE_SLICES, a_slice("a", resource_version="1"))


async def test_what_the_server_refuses_is_told_in_full(tmp_path: Path) -> None:
    def refuse(_kind: Kind, _method: str, _value: Object) -> None:
        causes = ({"field": "spec.devices[0].name", "message": "Invalid value: 'X'", "reason": "FieldValueInvalid"},)
        raise Refusal(422, "Invalid", "ResourceSlice is invalid", {"causes": list(causes)})

    async with TestApiServer() as server, a_client(server, tmp_path) as client:
        server.admission.append(refuse)
        with pytest.raises(errors.ApiInvalidError) as caught:
            await client.create(RESOURCE_SLICES, a_slice("a"))
    assert str(caught.value) == (
        "create resourceslices a: 422 Invalid: ResourceSlice is invalid; spec.devices[0].name: Invalid value: 'X'"
    )


@pytest.mark.parametrize("action", ["reset", "hang"])
async def test_no_answer_is_unavailable(tmp_path: Path, action: Any) -> None:
    async with TestApiServer() as server, a_client(server, tmp_path, timeout_s=0.2) as client:
        server.inject(Fault(action, times=3))
        with pytest.raises(errors.ApiUnavailableError, match="create nodes a: no answer"):
            await client.create(NODES, Node(metadata=ObjectMeta(name="a")))


async def test_a_server_that_is_away_is_unavailable_and_then_back(tmp_path: Path) -> None:
    async with TestApiServer() as server, a_client(server, tmp_path) as client:
        server.put("nodes", {"metadata": {"name": "a"}})
        await client.get(NODES, "a")
        await server.stop()
        with pytest.raises(errors.ApiUnavailableError, match="get nodes a: no answer from the API server"):
            await client.get(NODES, "a")
        await server.start()
        assert (await client.get(NODES, "a")).metadata.name == "a"


async def test_the_time_to_wait_comes_from_the_header(tmp_path: Path) -> None:
    async with TestApiServer() as server, a_client(server, tmp_path) as client:
        server.inject(Fault("status", status=429, headers={"Retry-After": "4"}))
        with pytest.raises(errors.ApiUnavailableError) as caught:
            await client.get(NODES, "a")
        assert caught.value.retry_after_s == 4.0


async def test_a_redirect_is_not_followed(tmp_path: Path) -> None:
    async with TestApiServer() as server, a_client(server, tmp_path) as client:
        server.inject(Fault("status", status=302, headers={"Location": f"{server.url}/api/v1/nodes"}))
        with pytest.raises(errors.ApiError, match="302 Found"):
            await client.get(NODES, "a")
        assert len(server.requests) == 1


@pytest.mark.parametrize("body", [b"<html>", b'{"metadata": {"name": 1}}', b'{"kind": "Pod"}'])
async def test_an_answer_that_is_not_understood_is_an_error(tmp_path: Path, body: bytes) -> None:
    async with TestApiServer() as server, a_client(server, tmp_path) as client:
        server.inject(Fault("status", status=200, body=body))
        with pytest.raises(errors.ApiError, match="get nodes a: answer not understood") as caught:
            await client.get(NODES, "a")
        assert caught.value.reason == "Undecodable"


async def test_a_refused_token_is_loaded_again_once(tmp_path: Path) -> None:
    async with TestApiServer() as server:
        server.put("nodes", {"metadata": {"name": "a"}})
        kubeconfig = server.kubeconfig(tmp_path / "k", token="old")
        server.tokens = {"new"}
        async with ApiClient(await Credential.load(kubeconfig, look_every_s=3600.0)) as client:
            with pytest.raises(errors.ApiForbiddenError, match="401 Unauthorized"):
                await client.get(NODES, "a")
            assert len(server.requests) == 2
            server.kubeconfig(kubeconfig, token="new")
            assert (await client.get(NODES, "a")).metadata.name == "a"
            tokens = [one.headers["Authorization"] for one in server.requests]
            assert tokens == ["Bearer old", "Bearer old", "Bearer old", "Bearer new"]


async def test_a_token_that_is_rotated_while_in_use_is_not_noticed_by_the_caller(tmp_path: Path) -> None:
    async with TestApiServer() as server, a_client(server, tmp_path) as client:
        server.put("nodes", {"metadata": {"name": "a"}})
        for token in ("one", "two", "three"):
            server.tokens = {token}
            server.kubeconfig(tmp_path / "kubeconfig", token=token)
            await client.get(NODES, "a")
        assert len(server.requests) == 3


async def test_a_body_is_sent_again_after_a_refused_token(tmp_path: Path) -> None:
    async with TestApiServer() as server, a_client(server, tmp_path) as client:
        server.inject(Fault("status", status=401))
        await client.create(RESOURCE_SLICES, a_slice("a"))
        assert [one["metadata"]["name"] for one in server.all("resourceslices")] == ["a"]


@pytest.mark.parametrize("fault", [Fault("reset", times=9), Fault("status", status=401, times=9), Fault("hang")])
async def test_no_error_holds_the_token(tmp_path: Path, fault: Fault) -> None:
    async with TestApiServer() as server, a_client(server, tmp_path, timeout_s=0.2) as client:
        server.inject(fault)
        with pytest.raises(errors.ApiError) as caught:
            await client.get(NODES, "a")
    report = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
    assert "t0ken" not in report
    assert caught.value.__cause__ is None


async def test_requests_share_connections(tmp_path: Path) -> None:
    async with TestApiServer() as server, a_client(server, tmp_path) as client:
        server.put("nodes", {"metadata": {"name": "a"}})
        for _ in range(5):
            await client.get(NODES, "a")
        assert len({one.peer for one in server.requests}) == 1


async def test_requests_in_progress_survive_a_new_address(tmp_path: Path) -> None:
    async with TestApiServer() as old, TestApiServer() as new, a_client(old, tmp_path) as client:
        new.put("nodes", {"metadata": {"name": "a"}})
        old.put("nodes", {"metadata": {"name": "a"}})
        hold = old.inject(Fault("delay"))
        slow = asyncio.create_task(client.get(NODES, "a"))
        await until(lambda: old.requests)
        new.kubeconfig(tmp_path / "kubeconfig")
        await client.get(NODES, "a")
        assert len(new.requests) == 1
        hold.released.set()
        assert (await slow).metadata.name == "a"


async def test_the_client_says_who_it_is(tmp_path: Path) -> None:
    async with TestApiServer() as server, a_client(server, tmp_path, user_agent="dra-kubeletplugin/1") as client:
        await client.list(NODES)
        assert server.requests[0].headers["User-Agent"] == "dra-kubeletplugin/1"


async def test_a_certificate_that_is_none_is_named_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("no certificate")
    async with TestApiServer() as server:
        kubeconfig = server.kubeconfig(tmp_path / "k", ca=tmp_path / "ca.crt", server="https://127.0.0.1:1")
        client = ApiClient(await Credential.load(kubeconfig))
        with pytest.raises(errors.SettingError, match=f"certificates '{tmp_path}/ca.crt'"):
            await client.__aenter__()


async def test_a_large_list_is_read(tmp_path: Path) -> None:
    async with TestApiServer() as server, a_client(server, tmp_path) as client:
        annotations = {"x": "y" * 200_000}
        for number in range(10):
            server.put("pods", {"metadata": {"name": f"p{number}", "namespace": "ns", "annotations": annotations}})
        pods: tuple[Pod, ...] = (await client.list(PODS)).items
        assert len(pods) == 10
