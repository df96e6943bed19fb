"""Health streams under kubelets that read slowly, never, or die, and under devices that change all the time."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from dra_driver.devices.model import Device, Health, Inventory
from kubeletplugin.health.stream import GAP_S, RESPONSE_MAX, HealthStreams
from kubeletplugin.kubelet.socket import serve_socket
from kubeletplugin.proto import dra_health_v1_pb2 as health_v1
from tests.support.builder import NODE, a_device
from tests.support.health_watch import HealthWatch
from tests.support.wait import until

MANY = 200
LONG = "x" * 900
"""So long that a few reports of `MANY` devices are more than a connection takes from nobody who reads."""

READER = """
import sys, time
import grpc
from kubeletplugin.proto import dra_health_v1_pb2 as messages

call = grpc.insecure_channel(f"unix://{sys.argv[1]}").unary_stream(
    "/v1.DRAResourceHealth/NodeWatchResources",
    request_serializer=messages.NodeWatchResourcesRequest.SerializeToString,
    response_deserializer=messages.NodeWatchResourcesResponse.FromString,
)
streams = [call(messages.NodeWatchResourcesRequest()) for _ in range(20)]
for stream in streams:
    next(stream)
print("reading", flush=True)
time.sleep(600)
"""


@asynccontextmanager
async def serving(path: Path, *, gap_s: float = GAP_S) -> AsyncIterator[HealthStreams]:
    streams = HealthStreams(pool=NODE, resend_s=3600.0, gap_s=gap_s)
    server = await serve_socket(path, streams.handlers())
    try:
        yield streams
    finally:
        streams.end()
        await server.stop(0)


@asynccontextmanager
async def unread(path: Path, count: int = 1) -> AsyncIterator[list[Any]]:
    """Open streams that nobody reads from."""
    async with grpc.aio.insecure_channel(f"unix://{path}") as channel:
        call = channel.unary_stream(
            "/v1.DRAResourceHealth/NodeWatchResources",
            request_serializer=health_v1.NodeWatchResourcesRequest.SerializeToString,
            response_deserializer=health_v1.NodeWatchResourcesResponse.FromString,
        )
        yield [call(health_v1.NodeWatchResourcesRequest()) for _ in range(count)]


def devices(count: int, message: str | None = None) -> tuple[Device, ...]:
    health = Health(reason="xid-79", message=message) if message is not None else None
    return tuple(a_device(f"GPU-{index}", health=health) for index in range(count))


async def until_all_are(watch: HealthWatch, message: str) -> None:
    await until(lambda: set(watch.devices.values()) == {("UNHEALTHY", f"xid-79: {message}")})


@pytest.fixture
def socket(short_path: Path) -> Path:
    return short_path / "dra.sock"


async def test_streams_that_nobody_reads_from_hold_up_nobody_and_end_with_their_connection(socket: Path) -> None:
    async with serving(socket, gap_s=0.0) as streams:
        streams.set_inventory(Inventory(devices=devices(MANY)))
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(unread(socket, 20))
            watch = await stack.enter_async_context(HealthWatch.open(socket))
            await until(lambda: streams.open_count == 21)
            for number in range(30):
                message = f"{number:03} {LONG}"
                streams.set_inventory(Inventory(devices=devices(MANY, message)))
                await until_all_are(watch, message)
        await until(lambda: streams.open_count == 0)


async def test_a_kubelet_that_reads_late_hears_little_of_what_is_past_and_then_how_things_are(socket: Path) -> None:
    async with serving(socket, gap_s=0.0) as streams, HealthWatch.open(socket) as watch, unread(socket) as (late,):
        streams.set_inventory(Inventory(devices=devices(MANY)))
        for number in range(50):
            message = f"{number:03} {LONG}"
            streams.set_inventory(Inventory(devices=devices(MANY, message)))
            await until_all_are(watch, message)
        heard: list[str] = []
        async with asyncio.timeout(30):
            while not heard or not heard[-1].startswith("xid-79: 049 "):
                response = await late.read()
                heard.append(response.devices[0].message)
        assert len(heard) < 50


async def test_a_thousand_changes_at_once_are_few_reports_and_the_last_is_heard(socket: Path) -> None:
    async with serving(socket, gap_s=0.5) as streams, HealthWatch.open(socket) as watch:
        streams.set_inventory(Inventory(devices=devices(1)))
        await until(lambda: watch.heard == 1)
        for number in range(1000):
            streams.set_inventory(Inventory(devices=devices(1, str(number))))
            await asyncio.sleep(0)
        await until_all_are(watch, "999")
        assert watch.heard <= 5


async def test_devices_that_come_and_go_all_the_time_end_as_they_are(socket: Path) -> None:
    async with serving(socket, gap_s=0.0) as streams, HealthWatch.open(socket) as watch:
        both = devices(2)
        for number in range(200):
            streams.set_inventory(Inventory(devices=both[: number % 3]))
            await asyncio.sleep(0)
        gone = ("UNKNOWN", "not found on this node any more")
        await until(lambda: watch.devices == {both[0].name: ("HEALTHY", ""), both[1].name: gone})


async def test_a_report_that_is_too_large_for_a_client_comes_in_parts(socket: Path) -> None:
    async with serving(socket) as streams, HealthWatch.open(socket, "v1alpha1") as watch:
        streams.set_inventory(Inventory(devices=devices(5 * RESPONSE_MAX + 1, "x" * 2000)))
        await until(lambda: len(watch.devices) == 5 * RESPONSE_MAX + 1)
        assert watch.heard == 6


async def test_a_kubelet_that_is_killed_leaves_no_streams_and_the_next_one_hears_everything(socket: Path) -> None:
    async with serving(socket) as streams:
        streams.set_inventory(Inventory(devices=devices(3)))
        reader = await asyncio.create_subprocess_exec(
            sys.executable, "-c", READER, str(socket), stdout=asyncio.subprocess.PIPE, cwd=Path(__file__).parents[2]
        )
        assert reader.stdout is not None
        try:
            async with asyncio.timeout(30):
                assert await reader.stdout.readline() == b"reading\n"
            assert streams.open_count == 20
        finally:
            reader.kill()
            await reader.wait()
        await until(lambda: streams.open_count == 0)
        async with HealthWatch.open(socket) as watch:
            await until(lambda: len(watch.devices) == 3)
