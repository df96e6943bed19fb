"""The streams on which the kubelet follows the health of devices, for the status of the Pods that hold them (KEP-4680).

Each stream begins with a report on everything, sends another one at once when something changes, and repeats it in
time when nothing does: the kubelet counts a report's age from when it receives it.
Where nobody has looked at the devices for long, since a driver hangs, say, they are unknown.
A report on everything each time means that a kubelet that missed one, or slept, is right again with the next.
It comes in several responses where it is large, which is as good: what one lacks stays as it was.
A kubelet that reads slowly finds the newest report when it reads on, and nothing is kept for it meanwhile.
"""

import asyncio
import contextlib
import math
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any

import grpc

from dra_driver.devices.model import Inventory
from kubeletplugin.health.report import DeviceReport, build_reports, build_unknown
from kubeletplugin.proto import dra_health_v1_pb2, dra_health_v1alpha1_pb2

HEALTH_VERSIONS = ("v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth")
"""Newest first. Kubelets up to 1.36 open the v1alpha1 stream whatever is advertised."""

TIMEOUT_S = 30
"""For how long the kubelet believes a report."""

RESEND_S = 10.0
"""How often a report is repeated; two may get lost before the kubelet forgets."""

GAP_S = 0.1
"""The least time between two reports on a stream, so that many changes at once are few reports."""

RESPONSE_MAX = 1000
"""The most devices in a response: even with the longest messages it stays below what a client of gRPC takes (4 MiB)."""

STALE = "nobody could look at the devices lately"


class HealthStreams:
    """Answers any number of kubelets' streams, in both versions, from what was last set.

    `age_s` gives the seconds since the devices were last looked at; from more than `stale_s` on, nothing is known.
    """

    def __init__(  # noqa: PLR0913 - times, by keyword
        self,
        *,
        pool: str,
        age_s: Callable[[], float] = lambda: 0.0,
        stale_s: float = math.inf,
        resend_s: float = RESEND_S,
        gap_s: float = GAP_S,
        timeout_s: int = TIMEOUT_S,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._pool = pool
        self._age_s = age_s
        self._stale_s = stale_s
        self._resend_s = resend_s
        self._gap_s = gap_s
        self._timeout_s = timeout_s
        self._now = now
        self._reports: tuple[DeviceReport, ...] | None = None
        self._changed = asyncio.Event()
        self._ended = False
        self._open_count = 0
        self._rendered: dict[str, tuple[object, tuple[bytes, ...]]] = {}

    @property
    def open_count(self) -> int:
        """How many streams are open."""
        return self._open_count

    def set_inventory(self, inventory: Inventory) -> None:
        """Say what is there now, and how it is. Call it in the event loop; without a change nothing is sent."""
        reports = build_reports(inventory, self._reports or ())
        if reports != self._reports:
            self._reports = reports
            self._tell()

    def end(self) -> None:
        """End all streams, and each one that is opened from now on, in order: one that nobody reads from stays."""
        self._ended = True
        self._tell()

    def handlers(self) -> tuple[grpc.GenericRpcHandler, ...]:
        """Return the service in each version, to be added to a server."""
        return self._handlers("v1", dra_health_v1_pb2), self._handlers("v1alpha1", dra_health_v1alpha1_pb2)

    def _tell(self) -> None:
        """Wake every stream, and let those that look away now find the next change."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def _handlers(self, version: str, messages: Any) -> grpc.GenericRpcHandler:
        async def node_watch_resources(_request: Any, _context: Any) -> AsyncIterator[Any]:
            with self._opened():
                while not self._ended:
                    changed = self._changed
                    for response in self._render(version, messages):
                        yield response
                    await asyncio.sleep(self._gap_s)
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(self._resend_s):
                            await changed.wait()

        handler: grpc.RpcMethodHandler[Any, bytes] = grpc.unary_stream_rpc_method_handler(
            node_watch_resources,
            request_deserializer=messages.NodeWatchResourcesRequest.FromString,
            response_serializer=None,  # each response is rendered once, for all streams
        )
        return grpc.method_handlers_generic_handler(f"{version}.DRAResourceHealth", {"NodeWatchResources": handler})

    @contextlib.contextmanager
    def _opened(self) -> Iterator[None]:
        self._open_count += 1
        try:
            yield
        finally:
            self._open_count -= 1

    def _render(self, version: str, messages: Any) -> tuple[bytes, ...]:
        """Return the responses that say how all devices are now."""
        if self._reports is None:
            return ()
        age_s = self._age_s()
        looked_at_s = int(self._now() - age_s)
        key = (self._reports, looked_at_s, age_s > self._stale_s)
        known, rendered = self._rendered.get(version, (None, ()))
        if key == known:
            return rendered
        reports = build_unknown(self._reports, STALE) if age_s > self._stale_s else self._reports
        starts = range(0, max(len(reports), 1), RESPONSE_MAX)
        rendered = tuple(self._render_some(messages, reports[at : at + RESPONSE_MAX], looked_at_s) for at in starts)
        self._rendered[version] = key, rendered
        return rendered

    def _render_some(self, messages: Any, reports: Iterable[DeviceReport], looked_at_s: int) -> bytes:
        response = messages.NodeWatchResourcesResponse(
            devices=[
                messages.DeviceHealth(
                    device=messages.DeviceIdentifier(pool_name=self._pool, device_name=report.device),
                    health=messages.HealthStatus.Value(report.status),
                    last_updated_time=looked_at_s,
                    health_check_timeout_seconds=self._timeout_s,
                    message=report.message,
                )
                for report in reports
            ]
        )
        rendered: bytes = response.SerializeToString()
        return rendered
