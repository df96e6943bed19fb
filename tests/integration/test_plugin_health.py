"""What the kubelet hears of devices on the health streams, from a real plugin process behind real sockets."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import grpc
import pytest

from dra_driver.devices.model import Health, Inventory
from kubeletplugin.health.stream import STALE, HealthStreams
from kubeletplugin.kubelet.socket import serve_socket
from kubeletplugin.proto import pluginregistration_v1_pb2 as registration
from tests.support.builder import NODE, a_device
from tests.support.health_watch import HealthWatch
from tests.support.plugin import PluginNode
from tests.support.wait import until

WELL = ("HEALTHY", "")
ILL = ("UNHEALTHY", "XidCritical: fell off the bus")
OVERRIDES = "unhealthy:\n  0: {reason: XidCritical, message: fell off the bus}\n"


def a_health(message: str = "fell off the bus") -> Health:
    return Health(reason="XidCritical", message=message)


async def test_both_versions_are_advertised_after_those_of_the_service(node: PluginNode) -> None:
    await node.start_ready()
    async with grpc.aio.insecure_channel(f"unix://{node.registrar}") as channel:
        ask = channel.unary_unary(
            "/pluginregistration.Registration/GetInfo",
            request_serializer=registration.InfoRequest.SerializeToString,
            response_deserializer=registration.PluginInfo.FromString,
        )
        info = await ask(registration.InfoRequest(), timeout=5)
    assert list(info.supported_versions) == [
        "v1.DRAPlugin",
        "v1beta1.DRAPlugin",
        "v1.DRAResourceHealth",
        "v1alpha1.DRAResourceHealth",
    ]


@pytest.mark.parametrize("version", ["v1", "v1alpha1"])
async def test_a_device_and_its_partitions_fall_ill_and_recover(node: PluginNode, version: str) -> None:
    node.profile = "a100x8"
    await node.start_ready()
    names = list(node.devices())
    async with HealthWatch.open(node.service, version) as watch:
        await until(lambda: watch.heard)
        assert watch.devices == dict.fromkeys(names, WELL)
        assert (watch.pools, watch.timeouts_s) == ({NODE}, {30})
        node.overrides.write_text(OVERRIDES)
        await until(lambda: ILL in watch.devices.values())
        first = names[0]
        assert {name for name, health in watch.devices.items() if health == ILL} == {
            name for name in names if name.startswith(first)
        }
        node.overrides.write_text("")
        await until(lambda: watch.devices == dict.fromkeys(names, WELL))


async def test_a_device_that_went_is_unknown_and_well_again_when_it_comes_back(node: PluginNode) -> None:
    await node.start_ready()
    first, second, *_ = node.devices()
    async with HealthWatch.open(node.service) as watch:
        await until(lambda: watch.heard)
        node.overrides.write_text("removed: [0]\n")
        await until(lambda: watch.devices[first] == ("UNKNOWN", "not found on this node any more"))
        assert watch.devices[second] == WELL
        node.overrides.write_text("")
        await until(lambda: watch.devices[first] == WELL)


async def test_the_streams_end_in_order_with_the_plugin(node: PluginNode) -> None:
    plugin = await node.start_ready()
    async with HealthWatch.open(node.service) as one, HealthWatch.open(node.service, "v1alpha1") as other:
        await until(lambda: one.heard and other.heard)
        async with asyncio.timeout(10):  # an open stream would take up the whole grace period
            assert await plugin.terminate() == 0
        await until(lambda: one.ended and other.ended)
        assert (one.ended, other.ended) == (grpc.StatusCode.OK, grpc.StatusCode.OK)


async def test_a_stream_waits_for_the_first_look_at_the_devices(short_path: Path) -> None:
    streams = HealthStreams(pool=NODE)
    server = await serve_socket(short_path / "dra.sock", streams.handlers())
    async with HealthWatch.open(short_path / "dra.sock") as watch:
        await until(lambda: watch.ended is None)
        assert watch.heard == 0
        device = a_device()
        streams.set_inventory(Inventory(devices=(device,)))
        await until(lambda: watch.devices == {device.name: WELL})
        streams.end()
    await server.stop(0)


async def test_what_does_not_change_is_repeated_and_what_changes_is_sent_at_once(short_path: Path) -> None:
    repeating, quiet = HealthStreams(pool=NODE, resend_s=0.02), HealthStreams(pool=NODE, resend_s=3600.0)
    well, ill = a_device(), a_device(health=a_health())
    async with AsyncExitStack() as stack:
        watches = []
        for name, streams in (("repeating", repeating), ("quiet", quiet)):
            path = short_path / name
            server = await serve_socket(path, streams.handlers())
            stack.push_async_callback(server.stop, 0)
            streams.set_inventory(Inventory(devices=(well,)))
            watches.append(await stack.enter_async_context(HealthWatch.open(path)))
        repeated, told = watches
        await until(lambda: repeated.heard >= 5 and told.heard)
        assert told.heard == 1
        quiet.set_inventory(Inventory(devices=(well,)))
        quiet.set_inventory(Inventory(devices=(ill,)))
        await until(lambda: told.devices == {well.name: ILL})
        assert told.heard == 2


async def test_devices_that_nobody_looks_at_any_more_are_unknown_until_somebody_does(short_path: Path) -> None:
    age_s = 60.0
    streams = HealthStreams(pool=NODE, age_s=lambda: age_s, stale_s=60.0, resend_s=0.01)
    server = await serve_socket(short_path / "dra.sock", streams.handlers())
    device = a_device()
    streams.set_inventory(Inventory(devices=(device,)))
    async with HealthWatch.open(short_path / "dra.sock") as watch:
        await until(lambda: watch.devices == {device.name: WELL})
        age_s = 61.0
        await until(lambda: watch.devices == {device.name: ("UNKNOWN", STALE)})
        age_s = 0.0
        await until(lambda: watch.devices == {device.name: WELL})
        streams.end()
    await server.stop(0)


async def test_many_kubelets_at_once_hear_the_same_and_one_that_goes_disturbs_none(short_path: Path) -> None:
    streams = HealthStreams(pool=NODE)
    path = short_path / "dra.sock"
    server = await serve_socket(path, streams.handlers())
    well, ill = a_device(), a_device(health=a_health())
    streams.set_inventory(Inventory(devices=(well,)))
    async with AsyncExitStack() as stack:
        watches = [await stack.enter_async_context(HealthWatch.open(path)) for _ in range(50)]
        await until(lambda: all(watch.heard for watch in watches))
        async with HealthWatch.open(path) as leaving:
            await until(lambda: leaving.heard)
        streams.set_inventory(Inventory(devices=(ill,)))
        await until(lambda: all(watch.devices == {well.name: ILL} for watch in watches))
        streams.end()
        await until(lambda: all(watch.ended is grpc.StatusCode.OK for watch in watches))
    await server.stop(0)


async def test_a_stream_that_is_opened_while_the_plugin_ends_is_ended_at_once(short_path: Path) -> None:
    streams = HealthStreams(pool=NODE)
    server = await serve_socket(short_path / "dra.sock", streams.handlers())
    streams.set_inventory(Inventory(devices=(a_device(),)))
    streams.end()
    async with HealthWatch.open(short_path / "dra.sock") as watch:
        await until(lambda: watch.ended is grpc.StatusCode.OK)
        assert watch.heard == 0
    await server.stop(0)
