"""A node's devices follow its label: they are the controller's while the label is there, and never in between."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.api_fault import Fault
from tests.support.api_server import TestApiServer
from tests.support.builder import NODE, a_device, a_partitionable_device
from tests.support.publishing import Running, a_node, a_publisher, device_names, devices, slices, writes
from tests.support.wait import until

TAINT = {"key": "dra-driver.io/allocator", "value": "controller", "effect": "NoSchedule"}
TAINTS = ("spec.devices.*.taints",)


@pytest.fixture
async def server() -> AsyncIterator[TestApiServer]:
    async with TestApiServer() as server:
        yield server


def label(server: TestApiServer, value: str | None, **status: Any) -> None:
    labels = {} if value is None else {"dra-driver.io/allocator": value}
    server.put("nodes", {"metadata": {"name": NODE, "labels": labels}, "status": status})


def tainted(server: TestApiServer) -> list[bool]:
    keys = ("key", "value", "effect")
    return [
        TAINT in [{key: taint.get(key) for key in keys} for taint in each.get("taints", [])] for each in devices(server)
    ]


def show(running: Running) -> None:
    running.show(a_device("GPU-0"), a_partitionable_device())


async def settled(server: TestApiServer, running: Running) -> None:
    await running.ready()
    await until(lambda: server.watches == 2)


async def test_devices_of_a_labelled_node_are_never_stored_without_the_taint(
    server: TestApiServer, tmp_path: Path
) -> None:
    label(server, "controller")
    async with a_publisher(server, tmp_path) as running:
        show(running)
        await running.ready()
        assert tainted(server) == [True] * 5
        assert running.events == []
        assert all(device["taints"] for request in writes(server) for device in request.json["spec"].get("devices", []))


async def test_the_taint_comes_and_goes_with_the_label(server: TestApiServer, tmp_path: Path) -> None:
    server.put("nodes", a_node())
    async with a_publisher(server, tmp_path) as running:
        show(running)
        await settled(server, running)
        assert tainted(server) == [False] * 5
        names = device_names(server)
        label(server, "controller")
        await until(lambda: tainted(server) == [True] * 5)
        label(server, None)
        await until(lambda: tainted(server) == [False] * 5)
        label(server, "controller")
        await until(lambda: tainted(server) == [True] * 5)
        label(server, "kube-scheduler")
        await until(lambda: tainted(server) == [False] * 5)
        assert device_names(server) == names
        assert {item["spec"]["pool"]["generation"] for item in slices(server)} == {1}


async def test_signs_of_life_of_the_node_cost_nothing(server: TestApiServer, tmp_path: Path) -> None:
    label(server, "controller")
    async with a_publisher(server, tmp_path) as running:
        show(running)
        await settled(server, running)
        server.requests.clear()
        for beat in range(5):
            label(server, "controller", conditions=[{"type": "Ready", "status": "True", "reason": str(beat)}])
        label(server, None)
        await until(lambda: tainted(server) == [False] * 5)
        gets = [request for request in server.requests if request.path.endswith(f"/nodes/{NODE}")]
        assert len(gets) == 1


async def test_a_label_that_changed_while_the_plugin_was_away_counts(server: TestApiServer, tmp_path: Path) -> None:
    label(server, "controller")
    async with a_publisher(server, tmp_path) as running:
        show(running)
        await running.ready()
    label(server, None)
    async with a_publisher(server, tmp_path) as running:
        show(running)
        await running.ready()
        assert tainted(server) == [False] * 5


async def test_nothing_is_published_while_the_node_cannot_be_read(server: TestApiServer, tmp_path: Path) -> None:
    label(server, "controller")
    fault = server.inject(Fault("status", path="/nodes", status=500, times=10_000))
    async with a_publisher(server, tmp_path) as running:
        show(running)
        await until(lambda: running.metric("publish_total", result="error") >= 3)
        assert slices(server) == []
        assert not running.publisher.ready.is_set()
        fault.times = 0
        await running.ready()
        assert tainted(server) == [True] * 5


async def test_what_is_published_stays_while_the_node_cannot_be_read(server: TestApiServer, tmp_path: Path) -> None:
    label(server, "controller")
    async with a_publisher(server, tmp_path) as running:
        show(running)
        await settled(server, running)
        fault = server.inject(Fault("status", path="/nodes/", status=500, times=10_000))
        running.show(a_device("GPU-0"))
        await until(lambda: running.metric("publish_total", result="error") >= 2)
        assert tainted(server) == [True] * 5
        fault.times = 0
        await until(lambda: tainted(server) == [True])


async def test_where_taints_are_dropped_no_device_is_published(server: TestApiServer, tmp_path: Path) -> None:
    label(server, "controller")
    server.drop_fields("resourceslices", *TAINTS)
    async with a_publisher(server, tmp_path) as running:
        show(running)
        await settled(server, running)
        assert device_names(server) == []
        assert not any(request.json["spec"].get("devices") for request in writes(server))
        assert running.reasons() == ["FieldsDropped", "DeviceLeftOut"]
        assert "DRADeviceTaints" in running.events[0][1]
        assert running.events[0][1].endswith(
            "until then no device of this node is published, since they are the controller's"
        )
        assert running.events[1][1].startswith("left out all devices: the node is labelled dra-driver.io/allocator")
        label(server, None)
        await until(lambda: tainted(server) == [False] * 5)


async def test_devices_are_withdrawn_when_the_label_comes_where_taints_are_dropped(
    server: TestApiServer, tmp_path: Path
) -> None:
    server.put("nodes", a_node())
    server.drop_fields("resourceslices", *TAINTS)
    async with a_publisher(server, tmp_path) as running:
        show(running)
        await settled(server, running)
        assert tainted(server) == [False] * 5
        label(server, "controller")
        await until(lambda: device_names(server) == [])
        await until(lambda: running.reasons() == ["FieldsDropped", "DeviceLeftOut"])
