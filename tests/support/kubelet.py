"""The kubelet's side of the DRA contract, over real sockets, with the checks that the kubelet makes."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from kubeletplugin.prepare.record import ClaimRef
from kubeletplugin.proto import dra_v1_pb2, dra_v1beta1_pb2
from kubeletplugin.proto import pluginregistration_v1_pb2 as registration

MESSAGES = {"v1": dra_v1_pb2, "v1beta1": dra_v1beta1_pb2}
KNOWN = tuple(f"{version}.DRAPlugin" for version in MESSAGES)


class PluginError(Exception):
    """The plugin answered something that the kubelet does not accept."""


class Kubelet:
    """Finds a plugin by its registrar socket and calls it in the version that it prefers."""

    def __init__(self, channel: grpc.aio.Channel, driver: str, version: str) -> None:
        self._channel = channel
        self.driver = driver
        self.version = version

    @classmethod
    @asynccontextmanager
    async def registered(
        cls, registrar: Path, *, known: tuple[str, ...] = KNOWN, refusal: str = ""
    ) -> AsyncIterator["Kubelet"]:
        """Register the plugin behind the socket, as the plugin watcher does; a `refusal` turns it down."""
        async with grpc.aio.insecure_channel(f"unix://{registrar}") as channel:
            info = await _call(
                channel,
                "pluginregistration.Registration/GetInfo",
                registration.InfoRequest(),
                registration.PluginInfo,
                timeout_s=1.0,
            )
            if info.type != "DRAPlugin":
                raise PluginError(f"type {info.type!r}")
            if not Path(info.endpoint).is_absolute():
                raise PluginError(f"endpoint {info.endpoint!r}")
            version = next((each for each in info.supported_versions if each in known), None)
            if version is None:
                raise PluginError(f"versions {list(info.supported_versions)}")
            await _call(
                channel,
                "pluginregistration.Registration/NotifyRegistrationStatus",
                registration.RegistrationStatus(plugin_registered=not refusal, error=refusal),
                registration.RegistrationStatusResponse,
                timeout_s=5.0,
            )
        async with grpc.aio.insecure_channel(f"unix://{info.endpoint}") as channel:
            yield cls(channel, info.name, version.removesuffix(".DRAPlugin"))

    async def prepare(self, *refs: ClaimRef) -> dict[str, Any]:
        """Prepare claims, and return the answers by claim UID. Raises PluginError if they are not for these claims."""
        return await self._claims("NodePrepareResources", refs)

    async def unprepare(self, *refs: ClaimRef) -> dict[str, Any]:
        """Unprepare claims, likewise."""
        return await self._claims("NodeUnprepareResources", refs)

    async def _claims(self, method: str, refs: Iterable[ClaimRef]) -> dict[str, Any]:
        messages = MESSAGES[self.version]
        claims = [messages.Claim(namespace=ref.namespace, uid=ref.uid, name=ref.name) for ref in refs]
        response = await _call(
            self._channel,
            f"k8s.io.kubelet.pkg.apis.dra.{self.version}.DRAPlugin/{method}",
            getattr(messages, f"{method}Request")(claims=claims),
            getattr(messages, f"{method}Response"),
            timeout_s=45.0,
        )
        if set(response.claims) != {claim.uid for claim in claims}:
            raise PluginError(f"answered for {sorted(response.claims)}, asked for {sorted(c.uid for c in claims)}")
        return dict(response.claims)


async def _call(channel: grpc.aio.Channel, method: str, request: Any, response: Any, *, timeout_s: float) -> Any:
    call = channel.unary_unary(
        f"/{method}", request_serializer=type(request).SerializeToString, response_deserializer=response.FromString
    )
    return await call(request, timeout=timeout_s)
