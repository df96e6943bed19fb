"""An API server, and others who use it, that do everything wrong: slices are right in the end, by few writes."""

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kubeletplugin.publish.diff import LAST_GENERATION
from kubeletplugin.publish.slice_name import build_slice_name
from sandbox.api_server.kind import Kind, Object
from sandbox.api_server.refusal import Refusal
from tests.support.api_fault import Action, Fault
from tests.support.api_server import TestApiServer
from tests.support.builder import DRIVER, NODE, a_device
from tests.support.publishing import QUICK, a_node, a_publisher, device_names, devices, generations, slices, writes
from tests.support.wait import until

DEVICES = [a_device(f"GPU-{number}") for number in range(65)]


@pytest.fixture
async def server() -> AsyncIterator[TestApiServer]:
    async with TestApiServer() as server:
        server.put("nodes", a_node())
        yield server


async def test_a_device_that_is_refused_only_when_it_is_written_is_left_out_alone(
    server: TestApiServer, tmp_path: Path
) -> None:
    def admit(kind: Kind, _: str, item: Object) -> None:
        """Refuse a device, but not in dry runs, as a webhook that does not see them."""
        if kind.plural != "resourceslices" or item["metadata"]["name"].startswith("probe"):
            return
        for index, device in enumerate(item["spec"].get("devices", ())):
            if device["name"] == DEVICES[1].name:
                raise Refusal(422, "Invalid", f"spec.devices[{index}].name: Invalid value: not this one")

    server.admission.append(admit)
    async with a_publisher(server, tmp_path) as running:
        running.show(*DEVICES[:3])
        await running.ready()
        assert device_names(server) == [DEVICES[0].name, DEVICES[2].name]
        assert running.reasons() == ["DeviceLeftOut"]
        assert "not this one" in running.events[0][1]


async def test_a_name_that_another_node_s_slice_has_is_told_and_waited_for(
    server: TestApiServer, tmp_path: Path
) -> None:
    taken = build_slice_name(0, driver=DRIVER, node_name=NODE)
    spec = {
        "driver": DRIVER,
        "nodeName": "node-b",
        "pool": {"name": "node-b", "generation": 1, "resourceSliceCount": 1},
    }
    server.put("resourceslices", {"metadata": {"name": taken}, "spec": spec})
    async with a_publisher(server, tmp_path) as running:
        running.show(*DEVICES[:1])
        await until(running.reasons)
        assert running.reasons() == ["PublishFailed"]
        assert taken in running.events[0][1]
        server.remove("resourceslices", taken)
        await running.ready()


async def test_the_last_generation_that_somebody_wrote_is_no_dead_end(server: TestApiServer, tmp_path: Path) -> None:
    async with a_publisher(server, tmp_path) as running:
        running.show(*DEVICES[:1])
        await running.ready()
        [item] = slices(server)
        item["spec"]["pool"]["generation"] = LAST_GENERATION
        server.put("resourceslices", item)
        running.show(*DEVICES)
        await until(lambda: device_names(server) == [each.name for each in DEVICES])
        assert generations(server) == [1, 1]


async def test_a_wait_that_is_out_of_all_reason_is_cut(server: TestApiServer, tmp_path: Path) -> None:
    for _ in range(2):
        server.inject(Fault("status", path="resourceslices", watch=False, status=429, headers={"Retry-After": "1e9"}))
        server.inject(Fault("status", path="nodes/", status=503, headers={"Retry-After": "86400"}))
    async with a_publisher(server, tmp_path, replace(QUICK, retry_after_s=0.05)) as running:
        running.show(*DEVICES[:1])
        await running.ready()


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", b'{"metadata": 7}', b"<html>", b"\xff"])
@pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
async def test_an_answer_of_nonsense_with_status_200_is_tried_again(
    server: TestApiServer, tmp_path: Path, method: str, body: bytes
) -> None:
    async with a_publisher(server, tmp_path) as running:
        running.show(*DEVICES[:1])
        await running.ready()
        server.inject(Fault("status", path="resourceslices", method=method, watch=False, status=200, body=body))
        running.show(*DEVICES[:2])
        await until(lambda: device_names(server) == [each.name for each in DEVICES[:2]])


async def test_a_server_that_changes_everything_that_it_is_sent_is_sent_it_once(
    server: TestApiServer, tmp_path: Path
) -> None:
    def admit(kind: Kind, _: str, item: Object) -> None:
        if kind.plural == "resourceslices":
            for device in item["spec"].get("devices", ()):
                device["attributes"] = {"changed": {"int": len(writes(server))}}

    server.admission.append(admit)
    async with a_publisher(server, tmp_path) as running:
        running.show(*DEVICES[:1])
        await running.ready()
        server.inject(Fault("status", path="nodes/", status=200, body=b"{}"))  # a request more, to see that it is idle
        running.show(*DEVICES[:2])
        await until(lambda: len(device_names(server)) == 2)
        await until(lambda: running.metric("publish_total", result="success") == 2)
        assert len(writes(server)) <= 3


def owner_of(item: Object) -> str:
    return "".join(owner["uid"] for owner in item["metadata"].get("ownerReferences", ()))


class Chaos:
    """Somebody who does one harmful thing after the other, as told by a seed."""

    def __init__(self, server: TestApiServer, seed: int) -> None:
        self._server = server
        self._random = random.Random(seed)

    def harm(self) -> None:
        self._random.choice(
            (self.delete, self.spoil, self.raise_generation, self.add, self.fail, self.compact, self.end, self.node)
        )()

    def _pick(self) -> dict[str, Any] | None:
        ours = [item for item in slices(self._server) if item["spec"]["driver"] == DRIVER]
        return self._random.choice(ours) if ours else None

    def delete(self) -> None:
        if (item := self._pick()) is not None:
            self._server.remove("resourceslices", item["metadata"]["name"])

    def spoil(self) -> None:
        if (item := self._pick()) is not None:
            item["spec"]["devices"] = item["spec"].get("devices", [])[1:]
            item["metadata"]["ownerReferences"] = []
            self._server.put("resourceslices", item)

    def raise_generation(self) -> None:
        if (item := self._pick()) is not None:
            item["spec"]["pool"]["generation"] = self._random.choice((0, 1, 7, LAST_GENERATION - 1, LAST_GENERATION))
            self._server.put("resourceslices", item)

    def add(self) -> None:
        name = f"extra-{self._random.randrange(3)}"
        pool = {"name": self._random.choice((NODE, "else")), "generation": 1, "resourceSliceCount": 9}
        spec = {"driver": DRIVER, "nodeName": NODE, "pool": pool, "devices": [{"name": name}]}
        if name not in [item["metadata"]["name"] for item in slices(self._server)]:
            self._server.put("resourceslices", {"metadata": {"name": name}, "spec": spec})

    def fail(self) -> None:
        actions: tuple[Action, ...] = ("reset", "lose", "status")
        action = self._random.choice(actions)
        method = self._random.choice(("GET", "POST", "PUT", "DELETE"))
        status = self._random.choice((409, 410, 429, 500, 503, 504))
        self._server.inject(Fault(action, method=method, status=status, times=self._random.randrange(1, 4)))

    def compact(self) -> None:
        self._server.compact()
        self._server.send_error(410)

    def end(self) -> None:
        self._random.choice((self._server.end_watches, self._server.cut_watches))()

    def node(self) -> None:
        self._server.remove("nodes", NODE)
        self._server.put("nodes", a_node())


@pytest.mark.parametrize("seed", range(3))
async def test_after_every_harm_that_others_do_slices_are_as_they_should_be(
    server: TestApiServer, tmp_path: Path, seed: int
) -> None:
    chaos = Chaos(server, seed)

    def is_right() -> bool:
        [uid] = [node["metadata"]["uid"] for node in server.all("nodes")]
        owners = {owner_of(item) for item in slices(server)}
        return device_names(server) == wanted and len(set(generations(server))) == 1 and owners == {uid}

    async with a_publisher(server, tmp_path) as running:
        for round_ in range(8):
            shown = DEVICES[round_:]
            wanted = [each.name for each in shown]
            running.show(*shown)
            for _ in range(8):
                chaos.harm()
                await asyncio.sleep(0)
            await until(is_right, within_s=20)
        assert len(devices(server)) == len(wanted)
