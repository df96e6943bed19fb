"""The kubelet's side of a health stream, over a real socket: what it heard last of each device."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc.aio

from kubeletplugin.proto import dra_health_v1_pb2, dra_health_v1alpha1_pb2

MESSAGES = {"v1": dra_health_v1_pb2, "v1alpha1": dra_health_v1alpha1_pb2}


class HealthWatch:
    """Follows one stream. `heard` counts its responses; `ended` is its status once it is over."""

    def __init__(self, version: str) -> None:
        self._messages = MESSAGES[version]
        self.devices: dict[str, tuple[str, str]] = {}
        self.pools: set[str] = set()
        self.timeouts_s: set[int] = set()
        self.heard = 0
        self.ended: grpc.StatusCode | None = None

    @classmethod
    @asynccontextmanager
    async def open(cls, path: Path, version: str = "v1") -> AsyncIterator["HealthWatch"]:
        """Open a stream of the service behind a socket, and close it at the end of the block."""
        watch = cls(version)
        async with grpc.aio.insecure_channel(f"unix://{path}") as channel:
            reading = asyncio.create_task(watch._read(channel, version))
            try:
                yield watch
            finally:
                reading.cancel()
                await asyncio.wait([reading])

    async def _read(self, channel: grpc.aio.Channel, version: str) -> None:
        call = channel.unary_stream(
            f"/{version}.DRAResourceHealth/NodeWatchResources",
            request_serializer=self._messages.NodeWatchResourcesRequest.SerializeToString,
            response_deserializer=self._messages.NodeWatchResourcesResponse.FromString,
        )(self._messages.NodeWatchResourcesRequest())
        try:
            async for response in call:
                self._hear(response)
        except grpc.aio.AioRpcError as error:
            self.ended = error.code()
        else:
            self.ended = await call.code()

    def _hear(self, response: Any) -> None:
        self.heard += 1
        for each in response.devices:
            name = self._messages.HealthStatus.Name(each.health)
            self.devices[each.device.device_name] = (name, each.message)
            self.pools.add(each.device.pool_name)
            self.timeouts_s.add(each.health_check_timeout_seconds)
