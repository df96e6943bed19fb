"""The liveness probe: calls a socket as the kubelet would, from its own way in to an answer."""

from pathlib import Path

import grpc.aio

TIMEOUT_S = 5.0

PREPARE = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources"
GET_INFO = "/pluginregistration.Registration/GetInfo"


async def check_socket(path: Path, method: str) -> str | None:
    """Return None if the server behind the socket answers an empty request, else one line that says what it does."""
    async with grpc.aio.insecure_channel(f"unix:{path}") as channel:
        call = channel.unary_unary(method, request_serializer=bytes, response_deserializer=bytes)
        try:
            await call(b"", timeout=TIMEOUT_S)
        except grpc.aio.AioRpcError as error:
            return f"{path}: {error.code().name.lower()}"
    return None
