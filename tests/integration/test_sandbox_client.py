"""The official Python client, whose models are checked strictly, works on the sandbox's API server."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes.aio import client, config, watch

from sandbox.api_server import ApiServer


@pytest.fixture
async def api_client(tmp_path: Path) -> AsyncIterator[Any]:
    async with ApiServer() as server:
        configuration = client.Configuration()
        kubeconfig = str(server.kubeconfig(tmp_path / "kubeconfig"))
        await config.load_kube_config(kubeconfig, client_configuration=configuration)
        async with client.ApiClient(configuration) as api:
            yield api


def a_claim(name: str) -> dict[str, Any]:
    requests = [{"name": "r", "exactly": {"deviceClassName": "c", "capacity": {"requests": {"memory": "1024Mi"}}}}]
    head = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name}}
    return head | {"spec": {"devices": {"requests": requests}}}


async def test_the_official_client_creates_reads_patches_and_deletes(api_client: Any) -> None:
    resource, core = client.ResourceV1Api(api_client), client.CoreV1Api(api_client)
    created = await resource.create_namespaced_resource_claim("default", a_claim("c"))
    assert created.spec.devices.requests[0].exactly.capacity.requests == {"memory": "1Gi"}
    patched = await resource.patch_namespaced_resource_claim("c", "default", {"metadata": {"labels": {"a": "b"}}})
    assert patched.metadata.labels == {"a": "b"}
    listed = await resource.list_resource_claim_for_all_namespaces(label_selector="a in (b)", limit=1)
    assert [claim.metadata.name for claim in listed.items] == ["c"]
    await resource.delete_namespaced_resource_claim("c", "default")
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "main", "image": "busybox"}]}}
    made = await core.create_namespaced_pod("default", pod)
    assert (made.status.phase, made.spec.containers[0].image_pull_policy) == ("Pending", "Always")
    with pytest.raises(client.ApiException) as caught:
        await core.read_node("none")
    assert caught.value.status == 404


async def test_the_official_client_watches(api_client: Any) -> None:
    core = client.CoreV1Api(api_client)
    seen = []

    async def look() -> None:
        async with watch.Watch() as stream:
            async for event in stream.stream(core.list_node, timeout_seconds=10):
                seen.append((event["type"], event["object"].metadata.name))
                if len(seen) == 2:
                    return

    looking = asyncio.create_task(look())
    await core.create_node({"metadata": {"name": "n"}})
    await core.delete_node("n")
    await asyncio.wait_for(looking, 10)
    assert ("ADDED", "n") in seen or seen == [("DELETED", "n")]
