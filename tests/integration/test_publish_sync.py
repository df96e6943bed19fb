"""What is stored follows the devices, over restarts, changes by others and an API server that comes and goes."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from dra_driver.devices.model import Device, Health
from dra_driver.kube.backoff import Backoff
from tests.support.api_fault import Fault
from tests.support.api_server import TestApiServer
from tests.support.builder import DRIVER, NODE, a_device, a_partitionable_device
from tests.support.publishing import (
    QUICK,
    a_node,
    a_publisher,
    device_names,
    devices,
    generations,
    slices,
    writes,
)
from tests.support.wait import until


@pytest.fixture
async def server() -> AsyncIterator[TestApiServer]:
    async with TestApiServer() as server:
        server.put("nodes", a_node())
        yield server


def wholes(count: int, *, sick: tuple[int, ...] = ()) -> list[Device]:
    health = Health(reason="XidError", message="Xid 79")
    return [a_device(f"GPU-{number}", health=health if number in sick else None) for number in range(count)]


async def test_devices_are_published_and_the_publisher_is_ready(server: TestApiServer, tmp_path: Path) -> None:
    async with a_publisher(server, tmp_path) as running:
        running.show(*wholes(65))
        await running.ready()
        assert device_names(server) == [each.name for each in wholes(65)]
        assert generations(server) == [1, 1]
        owners = [item["metadata"]["ownerReferences"][0] for item in slices(server)]
        node_uid = server.all("nodes")[0]["metadata"]["uid"]
        assert owners == 2 * [
            {"apiVersion": "v1", "kind": "Node", "name": NODE, "uid": node_uid, "controller": True},
        ]
        assert running.metric("published_devices") == 65
        assert running.metric("published_slices") == 2
        assert running.metric("pool_generation") == 1
        assert running.metric("publish_total", result="success") == 1
        assert running.metric("publish_total", result="error") == 0
        assert running.metric("first_publish_seconds") > 0
        assert running.metric("last_publish_timestamp_seconds") > 0
        assert running.events == []


async def test_nothing_is_published_before_devices_are_known(server: TestApiServer, tmp_path: Path) -> None:
    async with a_publisher(server, tmp_path) as running:
        await until(lambda: server.watches == 2)
        assert writes(server) == []
        assert not running.publisher.ready.is_set()


async def test_a_node_without_devices_says_so_with_one_empty_slice(server: TestApiServer, tmp_path: Path) -> None:
    async with a_publisher(server, tmp_path) as running:
        running.show()
        await running.ready()
        assert [item["spec"].get("devices", []) for item in slices(server)] == [[]]


async def test_slices_stay_when_it_ends_and_a_restart_writes_nothing(server: TestApiServer, tmp_path: Path) -> None:
    show = [a_partitionable_device(), *wholes(70, sick=(2,))]
    async with a_publisher(server, tmp_path) as running:
        running.show(*show)
        await running.ready()
    before = slices(server)
    assert len(before) == 3
    server.requests.clear()
    async with a_publisher(server, tmp_path) as running:
        running.show(*show)
        await running.ready()
        assert writes(server) == []
        assert slices(server) == before
        running.show(*show[:-1])
        await until(lambda: len(device_names(server)) == len(show) + 3 - 1)
        assert [request.method for request in writes(server)] == ["PUT"]


async def test_one_device_that_changes_is_one_update(server: TestApiServer, tmp_path: Path) -> None:
    async with a_publisher(server, tmp_path) as running:
        running.show(*wholes(129))
        await running.ready()
        server.requests.clear()
        running.show(*wholes(129, sick=(70,)))
        await until(lambda: any("taints" in device for device in devices(server)))
        await until(lambda: running.metric("publish_total", result="success") == 2)
        [request] = writes(server)
        assert (request.method, request.path.rsplit("/", 1)[1][:5]) == ("PUT", "00001")
        assert generations(server) == [1, 1, 1]


async def test_devices_that_come_and_go_change_the_slices(server: TestApiServer, tmp_path: Path) -> None:
    async with a_publisher(server, tmp_path) as running:
        running.show(*wholes(1))
        await running.ready()
        running.show(*wholes(66))
        await until(lambda: len(device_names(server)) == 66)
        await until(lambda: generations(server) == [2, 2])
        running.show()
        await until(lambda: device_names(server) == [])
        await until(lambda: generations(server) == [3])


async def test_a_slice_that_somebody_deletes_comes_back(server: TestApiServer, tmp_path: Path) -> None:
    async with a_publisher(server, tmp_path) as running:
        running.show(*wholes(65))
        await running.ready()
        await until(lambda: server.watches == 2)
        server.remove("resourceslices", slices(server)[0]["metadata"]["name"])
        await until(lambda: generations(server) == [2, 2])
        assert len(device_names(server)) == 65


async def test_all_slices_come_back_after_a_kubelet_deleted_them(server: TestApiServer, tmp_path: Path) -> None:
    async with a_publisher(server, tmp_path) as running:
        running.show(a_partitionable_device(), *wholes(65))
        await running.ready()
        await until(lambda: server.watches == 2)
        before = [item["spec"]["devices"] for item in slices(server) if "devices" in item["spec"]]
        for _ in range(3):
            for item in slices(server):
                server.remove("resourceslices", item["metadata"]["name"])
            await until(lambda: len(set(generations(server))) == 1 and len(slices(server)) == 3)
        assert [item["spec"]["devices"] for item in slices(server) if "devices" in item["spec"]] == before


async def test_what_somebody_changes_is_changed_back(server: TestApiServer, tmp_path: Path) -> None:
    async with a_publisher(server, tmp_path) as running:
        running.show(*wholes(2))
        await running.ready()
        await until(lambda: server.watches == 2)
        [item] = slices(server)
        item["spec"]["devices"].pop()
        server.put("resourceslices", item)
        await until(lambda: len(device_names(server)) == 2)


async def test_slices_of_others_are_left_alone_and_old_ones_of_ours_are_not(
    server: TestApiServer, tmp_path: Path
) -> None:
    def stored(name: str, driver: str, pool: str, node: str = NODE) -> dict[str, object]:
        spec = {"driver": driver, "nodeName": node, "pool": {"name": pool, "generation": 1, "resourceSliceCount": 1}}
        return {"metadata": {"name": name}, "spec": spec}

    server.put("resourceslices", stored("theirs", "other.example.com", NODE))
    server.put("resourceslices", stored("of-another-node", DRIVER, "node-b", "node-b"))
    server.put("resourceslices", stored("obsolete", DRIVER, NODE))
    server.put("resourceslices", stored("former-pool", DRIVER, "former"))
    theirs = [item for item in slices(server) if item["metadata"]["name"] in ("theirs", "of-another-node")]
    async with a_publisher(server, tmp_path) as running:
        running.show(*wholes(1))
        await running.ready()
        names = [item["metadata"]["name"] for item in slices(server)]
        assert len(names) == 3
        assert [item for item in slices(server) if item["metadata"]["name"] in ("theirs", "of-another-node")] == theirs
        assert "obsolete" not in names
        assert "former-pool" not in names


async def test_an_obsolete_slice_that_may_not_be_deleted_hinders_nothing(server: TestApiServer, tmp_path: Path) -> None:
    spec = {"driver": DRIVER, "nodeName": NODE, "pool": {"name": "former", "generation": 1, "resourceSliceCount": 1}}
    server.put("resourceslices", {"metadata": {"name": "former"}, "spec": spec})
    server.inject(Fault("status", method="DELETE", status=403, times=100))
    async with a_publisher(server, tmp_path) as running:
        running.show(*wholes(1))
        await running.ready()
        await until(lambda: server.watches == 2)
        running.show(*wholes(2))
        await until(lambda: len(device_names(server)) == 2)
        assert [request.method for request in writes(server)] == ["DELETE", "POST", "PUT"]


async def test_a_node_that_is_made_anew_gets_the_slices(server: TestApiServer, tmp_path: Path) -> None:
    async with a_publisher(server, tmp_path) as running:
        running.show(*wholes(1))
        await running.ready()
        server.remove("nodes", NODE)
        server.put("nodes", a_node())
        new = server.all("nodes")[0]["metadata"]["uid"]
        await until(lambda: slices(server)[0]["metadata"]["ownerReferences"][0]["uid"] == new)


async def test_an_api_server_that_is_away_at_the_start_is_waited_for(tmp_path: Path) -> None:
    async with TestApiServer() as server:
        server.put("nodes", a_node())
        await server.stop()
        async with a_publisher(server, tmp_path) as running:
            running.show(*wholes(1))
            await until(lambda: running.metric("publish_total", result="error") >= 2)
            assert not running.publisher.ready.is_set()
            await server.start()
            await running.ready()
            assert len(device_names(server)) == 1


async def test_what_changes_while_the_api_server_is_away_is_published_after(
    server: TestApiServer, tmp_path: Path
) -> None:
    async with a_publisher(server, tmp_path) as running:
        running.show(*wholes(1))
        await running.ready()
        await server.stop()
        running.show(*wholes(2))
        await until(lambda: running.metric("publish_total", result="error") >= 1)
        await server.start()
        await until(lambda: len(device_names(server)) == 2)


async def test_a_node_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    async with TestApiServer() as server, a_publisher(server, tmp_path) as running:
        running.show(*wholes(1))
        await until(lambda: running.metric("publish_total", result="error") >= 1)
        server.put("nodes", a_node())
        await running.ready()


async def test_a_node_that_comes_back_late_is_noticed_at_once(server: TestApiServer, tmp_path: Path) -> None:
    patient = replace(QUICK, retry=Backoff(initial_s=600, max_s=600))
    async with a_publisher(server, tmp_path, patient) as running:
        running.show(*wholes(1))
        await running.ready()
        await until(lambda: server.watches == 2)
        server.remove("nodes", NODE)
        running.show(*wholes(2))
        await until(lambda: running.metric("publish_total", result="error") >= 1)
        server.put("nodes", a_node())
        await until(lambda: len(device_names(server)) == 2)


@pytest.mark.parametrize(("method", "reason"), [("POST", "AlreadyExists"), ("PUT", "Conflict"), ("DELETE", "Conflict")])
async def test_a_conflict_is_resolved_by_reading_again(
    server: TestApiServer, tmp_path: Path, method: str, reason: str
) -> None:
    async with a_publisher(server, tmp_path) as running:
        running.show(*wholes(1 if method != "DELETE" else 65))
        await running.ready()
        body = {"kind": "Status", "status": "Failure", "reason": reason, "message": "changed", "code": 409}
        server.inject(
            Fault("status", path="resourceslices/" if method != "POST" else "", method=method, status=409, body=body)
        )
        running.show(*wholes({"POST": 65, "PUT": 2, "DELETE": 3}[method]))
        await until(lambda: running.metric("publish_total", result="success") == 2)
        assert running.metric("publish_total", result="error") == 1
        assert len(set(generations(server))) == 1
        assert len(device_names(server)) == {"POST": 65, "PUT": 2, "DELETE": 3}[method]


async def test_two_publishers_of_one_node_create_every_slice_once(server: TestApiServer, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    async with a_publisher(server, tmp_path / "a") as one, a_publisher(server, tmp_path / "b") as other:
        one.show(*wholes(129))
        other.show(*wholes(129))
        await one.ready()
        await other.ready()
        assert device_names(server) == [each.name for each in wholes(129)]
        assert len(set(generations(server))) == 1
