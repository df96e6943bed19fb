"""The kubelet's calls of one registered driver, in the version of the service that the driver likes best.

Protobuf messages do not leave this module and `registration`. Contract: k8s.io/kubelet pkg/apis/dra.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import grpc
import grpc.aio

from kubeletplugin.proto import dra_health_v1_pb2, dra_health_v1alpha1_pb2, dra_v1_pb2, dra_v1beta1_pb2
from sandbox.node.claim_record import ClaimName, PreparedDevice
from sandbox.node.error import DriverCallError, NoHealthError
from sandbox.node.health import DeviceHealth

_MESSAGES: Final = {"v1.DRAPlugin": dra_v1_pb2, "v1beta1.DRAPlugin": dra_v1beta1_pb2}
VERSIONS: Final = tuple(_MESSAGES)
"""The versions of the service that are spoken here."""

_HEALTH_MESSAGES: Final = {
    "v1.DRAResourceHealth": dra_health_v1_pb2,
    "v1alpha1.DRAResourceHealth": dra_health_v1alpha1_pb2,
}
HEALTH_VERSIONS: Final = tuple(_HEALTH_MESSAGES)
"""The versions of the health stream that are spoken here, newest first: here the kubelet chooses, not the driver."""

_CALL_S: Final = 45.0
_OPTIONS: Final = (
    ("grpc.use_local_subchannel_pool", 1),  # else a socket that came back waits out another channel's back-off
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.enable_http_proxy", 0),
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a driver did not do it for one claim."""

    problem: str


class Driver:
    """A driver at its socket. Close it when it is no longer needed. Without `health_version` it tells no health."""

    def __init__(self, name: str, version: str, endpoint: Path, *, health_version: str = "") -> None:
        self.name = name
        self.version = version
        self.health_version = health_version
        self.endpoint = endpoint
        self._channel = open_channel(endpoint)

    async def close(self) -> None:
        """Close the connection; calls under way end with DriverCallError."""
        await self._channel.close()

    async def prepare(self, claims: Sequence[ClaimName]) -> dict[str, tuple[PreparedDevice, ...] | Refusal]:
        """Prepare claims in one call. Returns the devices, or the refusal, by claim UID. Raises DriverCallError."""
        answers = await self._call("NodePrepareResources", claims)
        return {
            uid: Refusal(answer.error) if answer.error else tuple(map(_device, answer.devices))
            for uid, answer in answers.items()
        }

    async def unprepare(self, claims: Sequence[ClaimName]) -> dict[str, Refusal | None]:
        """Unprepare claims in one call. Returns None, or the refusal, by claim UID. Raises DriverCallError."""
        answers = await self._call("NodeUnprepareResources", claims)
        return {uid: Refusal(answer.error) if answer.error else None for uid, answer in answers.items()}

    async def watch_health(self) -> AsyncIterator[tuple[DeviceHealth, ...]]:
        """Yield what the driver says of its devices, until it ends the stream.

        Raises NoHealthError if there is no such stream, DriverCallError if it breaks.
        """
        messages = _HEALTH_MESSAGES[self.health_version]
        open_stream = self._channel.unary_stream(
            f"/{self.health_version}/NodeWatchResources",
            request_serializer=messages.NodeWatchResourcesRequest.SerializeToString,
            response_deserializer=messages.NodeWatchResourcesResponse.FromString,
        )
        subject = f"driver {self.name}: NodeWatchResources"
        try:
            stream = open_stream(messages.NodeWatchResourcesRequest())
            try:
                async for answer in stream:
                    yield tuple(_health(messages, each) for each in answer.devices)
            finally:
                stream.cancel()
        except grpc.aio.AioRpcError as error:
            kind = NoHealthError if error.code() is grpc.StatusCode.UNIMPLEMENTED else DriverCallError
            raise kind(f"{subject}: {error.code().name}: {error.details()}") from error
        except grpc.aio.UsageError as error:
            raise DriverCallError(f"{subject}: the connection was closed") from error

    async def _call(self, method: str, claims: Iterable[ClaimName]) -> dict[str, Any]:
        messages = _MESSAGES[self.version]
        asked = [messages.Claim(namespace=claim.namespace, uid=claim.uid, name=claim.name) for claim in claims]
        service = f"k8s.io.kubelet.pkg.apis.dra.{self.version.removesuffix('.DRAPlugin')}.DRAPlugin"
        answer = await call(
            self._channel,
            f"{service}/{method}",
            getattr(messages, f"{method}Request")(claims=asked),
            getattr(messages, f"{method}Response"),
            timeout_s=_CALL_S,
            subject=f"driver {self.name}",
        )
        answered, wanted = set(answer.claims), {claim.uid for claim in asked}
        if answered != wanted:
            problem = f"{method} answered for {sorted(answered)}, want an answer for {sorted(wanted)}"
            raise DriverCallError(f"driver {self.name}: {problem}")
        return dict(answer.claims)


def open_channel(socket: Path) -> grpc.aio.Channel:
    """Open a channel to a unix socket. Nothing is connected before the first call."""
    return grpc.aio.insecure_channel(f"unix:{socket}", options=_OPTIONS)


async def call(  # noqa: PLR0913 - the parts of a call
    channel: grpc.aio.Channel, method: str, request: Any, answer: Any, *, timeout_s: float, subject: str
) -> Any:
    """Call a method and return its answer. Raises DriverCallError."""
    stub = channel.unary_unary(
        f"/{method}", request_serializer=type(request).SerializeToString, response_deserializer=answer.FromString
    )
    try:
        return await stub(request, timeout=timeout_s)
    except grpc.aio.AioRpcError as error:
        name = method.rpartition("/")[2]
        raise DriverCallError(f"{subject}: {name}: {error.code().name}: {error.details()}") from error
    except (grpc.aio.UsageError, asyncio.CancelledError) as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise
        raise DriverCallError(f"{subject}: the connection was closed") from error  # which cancels the call, not us


def _device(message: Any) -> PreparedDevice:
    return PreparedDevice(
        requests=tuple(message.request_names),
        pool=message.pool_name,
        device=message.device_name,
        cdi_ids=tuple(message.cdi_device_ids),
        share_id=getattr(message, "share_id", ""),
    )


def _health(messages: Any, message: Any) -> DeviceHealth:
    return DeviceHealth(
        pool=message.device.pool_name,
        device=message.device.device_name,
        health=messages.HealthStatus.Name(message.health).capitalize(),
        message=message.message,
        timeout_s=message.health_check_timeout_seconds,
    )
