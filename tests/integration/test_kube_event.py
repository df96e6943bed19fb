import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from dra_driver.api.core_v1 import Node, ObjectReference
from dra_driver.api.meta_v1 import ObjectMeta
from dra_driver.kube.event import EventRecorder, EventType, reference_to
from tests.support.api_fault import Fault
from tests.support.api_server import TestApiServer
from tests.support.kube import a_client, running

CLAIM = ObjectReference(api_version="resource.k8s.io/v1", kind="ResourceClaim", namespace="ns", name="c", uid="u")
NODE = reference_to(Node(metadata=ObjectMeta(name="node-a", uid="nu", resource_version="7")))


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


async def _no_sleep(_: float) -> None:
    await asyncio.sleep(0)


@asynccontextmanager
async def a_recorder(server: TestApiServer, folder: Path, **options: Any) -> AsyncIterator[EventRecorder]:
    """Run a recorder of node-a."""
    async with a_client(server, folder, timeout_s=0.5) as client:
        recorder = EventRecorder(client, component="accel.dra-driver.io", host="node-a", sleep=_no_sleep, **options)
        async with running(recorder.run()):
            yield recorder


async def written(recorder: EventRecorder) -> None:
    async with asyncio.timeout(10):
        await recorder.idle()


async def test_an_event_says_what_kubectl_describe_shows(tmp_path: Path) -> None:
    async with TestApiServer() as server, a_recorder(server, tmp_path, clock=Clock()) as recorder:
        recorder.record(CLAIM, "PrepareFailed", "device node-a/gpu-9: not on this node", type=EventType.WARNING)
        await written(recorder)
        (event,) = server.all("events")
    assert event["metadata"]["namespace"] == "ns"
    assert event["metadata"]["name"].startswith("c.")
    shown = {name: event[name] for name in event if name not in ("metadata", "apiVersion", "kind")}
    assert shown == {
        "involvedObject": {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "namespace": "ns",
            "name": "c",
            "uid": "u",
        },
        "type": "Warning",
        "reason": "PrepareFailed",
        "message": "device node-a/gpu-9: not on this node",
        "source": {"component": "accel.dra-driver.io", "host": "node-a"},
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "count": 1,
        "eventTime": None,
        "reportingComponent": "accel.dra-driver.io",
        "reportingInstance": "node-a",
    }


async def test_an_event_about_a_node_goes_to_the_default_namespace(tmp_path: Path) -> None:
    async with TestApiServer() as server, a_recorder(server, tmp_path) as recorder:
        recorder.record(NODE, "FieldsDropped", "x")
        await written(recorder)
        (event,) = server.all("events", "default")
    assert event["involvedObject"] == {"apiVersion": "v1", "kind": "Node", "name": "node-a", "uid": "nu"}


async def test_repeats_are_one_event_that_counts(tmp_path: Path) -> None:
    clock = Clock()
    async with TestApiServer() as server, a_recorder(server, tmp_path, clock=clock) as recorder:
        for version in ("1", "2", "3"):
            recorder.record(msgspec.structs.replace(CLAIM, resource_version=version), "R", "again")
        await written(recorder)
        clock.now += timedelta(minutes=5)
        recorder.record(CLAIM, "R", "again")
        await written(recorder)
        recorder.record(CLAIM, "R", "another")
        await written(recorder)
        events = {event["message"]: event for event in server.all("events")}
    assert events["again"]["count"] == 4
    assert events["again"]["firstTimestamp"] == "2026-01-01T00:00:00Z"
    assert events["again"]["lastTimestamp"] == "2026-01-01T00:05:00Z"
    assert events["another"]["count"] == 1


async def test_an_event_that_the_server_forgot_is_written_anew(tmp_path: Path) -> None:
    async with TestApiServer() as server, a_recorder(server, tmp_path) as recorder:
        recorder.record(CLAIM, "R", "again")
        await written(recorder)
        server.remove("events", server.all("events")[0]["metadata"]["name"], "ns")
        recorder.record(CLAIM, "R", "again")
        await written(recorder)
        assert [event["count"] for event in server.all("events")] == [1]


async def test_a_server_that_is_away_for_a_moment_loses_nothing(tmp_path: Path) -> None:
    async with TestApiServer() as server, a_recorder(server, tmp_path) as recorder:
        server.inject(Fault("status", times=3))
        server.inject(Fault("reset", times=3))
        recorder.record(CLAIM, "R", "m")
        await written(recorder)
        assert len(server.all("events")) == 1
        assert recorder.dropped == 0


async def test_an_event_whose_answer_is_lost_is_not_written_twice(tmp_path: Path) -> None:
    async with TestApiServer() as server, a_recorder(server, tmp_path) as recorder:
        server.inject(Fault("lose"))
        recorder.record(CLAIM, "R", "m")
        await written(recorder)
        assert len(server.requests) == 2
        assert recorder.dropped == 0
        assert [event["count"] for event in server.all("events")] == [1]


async def test_a_server_that_stays_away_costs_the_event_and_not_the_next(tmp_path: Path) -> None:
    async with TestApiServer() as server, a_recorder(server, tmp_path) as recorder:
        server.inject(Fault("status", times=12))
        recorder.record(CLAIM, "R", "lost")
        await written(recorder)
        recorder.record(CLAIM, "R", "kept")
        await written(recorder)
        assert [event["message"] for event in server.all("events")] == ["kept"]
        assert recorder.dropped == 1


async def test_a_refusal_is_not_tried_again(tmp_path: Path) -> None:
    async with TestApiServer() as server, a_recorder(server, tmp_path) as recorder:
        server.inject(Fault("status", status=403))
        recorder.record(CLAIM, "R", "m")
        await written(recorder)
        assert len(server.requests) == 1
        assert recorder.dropped == 1


async def test_one_object_does_not_flood_the_server(tmp_path: Path) -> None:
    async with TestApiServer() as server, a_recorder(server, tmp_path) as recorder:
        for number in range(40):
            recorder.record(CLAIM, "R", f"message {number}")
        recorder.record(NODE, "R", "m")
        await written(recorder)
        assert len(server.all("events", "ns")) == 25
        assert len(server.all("events", "default")) == 1
        assert recorder.dropped == 15


async def test_what_waits_is_bounded(tmp_path: Path) -> None:
    async with TestApiServer() as server, a_client(server, tmp_path) as client:
        recorder = EventRecorder(client, component="c", host="h")
        for number in range(300):
            recorder.record(CLAIM, "R", str(number))
            recorder.record(CLAIM, "R", "0")
        assert recorder.dropped == 44
        assert server.requests == []
