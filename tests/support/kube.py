"""Clients, tasks and small objects for tests that talk to the API server of the tests."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from dra_driver.api.meta_v1 import ObjectMeta
from dra_driver.api.resource_v1 import ResourcePool, ResourceSlice, ResourceSliceSpec
from dra_driver.kube.client import ApiClient
from dra_driver.kube.credential import Credential
from tests.support.api_server import TestApiServer


def a_slice(name: str = "slice-0", **metadata: Any) -> ResourceSlice:
    """Build a slice of node-a without devices."""
    return ResourceSlice(
        metadata=ObjectMeta(name=name, **metadata),
        spec=ResourceSliceSpec(
            driver="accel.dra-driver.io",
            node_name="node-a",
            pool=ResourcePool(name="node-a", generation=1, resource_slice_count=1),
        ),
    )


def a_slice_dict(name: str = "slice-0", *, node: str = "node-a", **spec: Any) -> dict[str, Any]:
    """Build the same as JSON, as somebody else would write it."""
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    return {
        "metadata": {"name": name},
        "spec": {"driver": "accel.dra-driver.io", "nodeName": node, "pool": pool, **spec},
    }


@asynccontextmanager
async def a_client(server: TestApiServer, folder: Path, **options: Any) -> AsyncIterator[ApiClient]:
    """Connect to the server with a kubeconfig in `folder`."""
    credential = await Credential.load(server.kubeconfig(folder / "kubeconfig", token="t0ken"), look_every_s=0.0)
    async with ApiClient(credential, **options) as client:
        yield client


@asynccontextmanager
async def running(coroutine: Coroutine[Any, Any, None]) -> AsyncIterator[asyncio.Task[None]]:
    """Run a coroutine in the background for as long as the block; what it raises fails the test."""
    task = asyncio.create_task(coroutine)
    try:
        yield task
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
