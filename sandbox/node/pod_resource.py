"""What Pods hold of device plugins, as the kubelet tells on its PodResources socket (KEP-606): here nobody has any."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

_NOTHING = b""
"""A ListPodResourcesResponse without Pods."""


@asynccontextmanager
async def serve_pod_resources(kubelet_dir: Path) -> AsyncIterator[None]:
    """Answer at `pod-resources/kubelet.sock` below the kubelet's root directory."""
    socket = kubelet_dir / "pod-resources" / "kubelet.sock"
    socket.parent.mkdir(parents=True, exist_ok=True)
    server = grpc.aio.server()
    methods: dict[str, Any] = {"List": grpc.unary_unary_rpc_method_handler(_list)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("v1.PodResourcesLister", methods),))
    server.add_insecure_port(f"unix://{socket}")
    await server.start()
    try:
        yield
    finally:
        await server.stop(None)


async def _list(_request: bytes, _context: object) -> bytes:
    return _NOTHING
