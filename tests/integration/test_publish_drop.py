"""API servers that do not keep or take everything: what is published is safe, and a person is told."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dra_driver.devices.model import Device, Health, LeftOut
from sandbox.api_server.kind import Kind, Object
from sandbox.api_server.refusal import Refusal
from tests.support.api_fault import Fault
from tests.support.api_server import TestApiServer
from tests.support.builder import a_device, a_partition, a_partitionable_device
from tests.support.publishing import QUICK, a_node, a_publisher, device_names, devices, slices, writes
from tests.support.wait import until

SHARING = ("spec.devices.*.allowMultipleAllocations", "spec.devices.*.capacity.*.requestPolicy")
PARTITIONS = ("spec.sharedCounters", "spec.devices.*.consumesCounters")
TAINTS = ("spec.devices.*.taints",)
PROBING = replace(QUICK, probe_s=0.05)


@pytest.fixture
async def server() -> AsyncIterator[TestApiServer]:
    async with TestApiServer() as server:
        server.put("nodes", a_node())
        yield server


def sick(identity: str = "GPU-sick") -> Device:
    return a_device(identity, health=Health(reason="XidError", message="Xid 79"))


async def test_without_partitions_whole_devices_are_published(server: TestApiServer, tmp_path: Path) -> None:
    server.drop_fields("resourceslices", *PARTITIONS)
    whole = a_partitionable_device()
    async with a_publisher(server, tmp_path) as running:
        running.show(whole, a_device("GPU-1"))
        await running.ready()
        assert device_names(server) == [whole.name, a_device("GPU-1").name]
        assert len(slices(server)) == 1
        [(reason, message)] = running.events
        assert reason == "FieldsDropped"
        assert message == (
            "the API server does not keep spec.devices[*].consumesCounters, spec.sharedCounters; "
            "enable the feature gate DRAPartitionableDevices in kube-apiserver, kube-scheduler and kubelet; "
            "until then devices are not partitioned on demand"
        )
        assert running.metric("dropped_fields") == 2


async def test_without_partitions_what_an_administrator_made_is_published(
    server: TestApiServer, tmp_path: Path
) -> None:
    server.drop_fields("resourceslices", *PARTITIONS)
    made = a_partition(permanent=True)
    whole = a_partitionable_device("GPU-P", made)
    async with a_publisher(server, tmp_path) as running:
        running.show(whole)
        await running.ready()
        assert device_names(server) == [whole.partition_name(made)]


async def test_without_sharing_a_device_is_for_one_claim(server: TestApiServer, tmp_path: Path) -> None:
    server.drop_fields("resourceslices", *SHARING)
    async with a_publisher(server, tmp_path) as running:
        running.show(a_device())
        await running.ready()
        [device] = devices(server)
        assert "allowMultipleAllocations" not in device
        assert all(list(capacity) == ["value"] for capacity in device["capacity"].values())
        assert running.reasons() == ["FieldsDropped"]
        assert "DRAConsumableCapacity" in running.events[0][1]


async def test_without_taints_an_unhealthy_device_is_left_out(server: TestApiServer, tmp_path: Path) -> None:
    server.drop_fields("resourceslices", *TAINTS)
    async with a_publisher(server, tmp_path) as running:
        running.show(a_device("GPU-0"), a_device("GPU-1"))
        await running.ready()
        assert running.events == []
        running.show(a_device("GPU-0"), sick("GPU-1"))
        await until(lambda: device_names(server) == [a_device("GPU-0").name])
        await until(lambda: running.reasons() == ["FieldsDropped", "DeviceLeftOut"])
        assert "Xid 79" in running.events[1][1]
        running.show(a_device("GPU-0"), a_device("GPU-1"))
        await until(lambda: len(device_names(server)) == 2)


async def test_what_was_never_safe_is_never_stored(server: TestApiServer, tmp_path: Path) -> None:
    server.drop_fields("resourceslices", *SHARING, *PARTITIONS, *TAINTS)
    async with a_publisher(server, tmp_path) as running:
        running.show(a_partitionable_device(), sick(), a_device("GPU-1"))
        await running.ready()
        [request] = writes(server)
        stored = [device["name"] for device in request.json["spec"]["devices"]]
        assert stored == [a_partitionable_device().name, a_device("GPU-1").name]
        assert running.reasons() == ["FieldsDropped", "DeviceLeftOut"]


async def test_dropped_fields_are_told_once(server: TestApiServer, tmp_path: Path) -> None:
    server.drop_fields("resourceslices", *SHARING)
    async with a_publisher(server, tmp_path, PROBING) as running:
        running.show(a_device("GPU-0"))
        await running.ready()
        running.show(a_device("GPU-0"), a_device("GPU-1"))
        await until(lambda: len(device_names(server)) == 2)
        await until(lambda: running.metric("publish_total", result="success") >= 4)
        assert running.reasons() == ["FieldsDropped"]
        assert len(writes(server)) == 2


async def test_gates_that_are_enabled_later_are_found(server: TestApiServer, tmp_path: Path) -> None:
    server.drop_fields("resourceslices", *SHARING, *PARTITIONS, *TAINTS)
    async with a_publisher(server, tmp_path, PROBING) as running:
        running.show(a_partitionable_device(), sick())
        await running.ready()
        assert len(device_names(server)) == 1
        server.dropped.clear()
        await until(lambda: len(device_names(server)) == 5)
        await until(lambda: running.metric("dropped_fields") == 0)
        assert any("sharedCounters" in item["spec"] for item in slices(server))
        assert any("taints" in device for device in devices(server))


async def test_an_api_server_that_comes_back_is_asked_anew(server: TestApiServer, tmp_path: Path) -> None:
    server.drop_fields("resourceslices", *SHARING)
    async with a_publisher(server, tmp_path) as running:
        running.show(a_device("GPU-0"))
        await running.ready()
        await server.stop()
        running.show(a_device("GPU-0"), a_device("GPU-1"))
        await until(lambda: running.metric("publish_total", result="error") >= 1)
        server.dropped.clear()
        await server.start()
        await until(lambda: [device.get("allowMultipleAllocations") for device in devices(server)] == [True, True])


async def test_an_api_server_that_was_restarted_is_asked_anew_though_nothing_else_changes(
    server: TestApiServer, tmp_path: Path
) -> None:
    server.drop_fields("resourceslices", *SHARING)
    async with a_publisher(server, tmp_path) as running:
        running.show(a_device())
        await running.ready()
        await until(lambda: server.watches == 2)
        await server.stop()
        server.dropped.clear()
        await server.start()
        await until(lambda: devices(server)[0].get("allowMultipleAllocations") is True)
        assert running.metric("dropped_fields") == 0


async def test_a_field_that_a_dry_run_keeps_and_a_write_drops_is_noticed(server: TestApiServer, tmp_path: Path) -> None:
    def drop_for_good(_: Kind, __: str, item: Object) -> None:
        if item["kind"] == "ResourceSlice" and not item["metadata"]["name"].startswith("probe"):
            for device in item["spec"].get("devices", []):
                device.pop("consumesCounters", None)

    server.admission.append(drop_for_good)
    whole = a_partitionable_device()
    async with a_publisher(server, tmp_path) as running:
        running.show(whole)
        await running.ready()
        assert device_names(server) == [whole.name]
        assert running.reasons() == ["FieldsDropped"]


async def test_a_server_that_changes_what_it_is_sent_is_not_sent_it_again(
    server: TestApiServer, tmp_path: Path
) -> None:
    def rename(_: Kind, __: str, item: Object) -> None:
        for device in item["spec"].get("devices", []):
            device["attributes"]["model"] = {"string": "renamed"}

    server.admission.append(rename)
    async with a_publisher(server, tmp_path, PROBING) as running:
        running.show(*(a_device(f"GPU-{number}") for number in range(65)))
        await running.ready()
        await until(lambda: running.metric("publish_total", result="success") >= 4)
        assert [request.method for request in writes(server)] == ["POST", "POST"]
        assert running.events == [
            ("FieldsDropped", "the API server does not keep spec.devices[*].attributes[*].string"),
        ]


def refuse(*names: str) -> Any:
    """An API server that takes no device of these names."""

    def admit(_: Kind, __: str, item: Object) -> None:
        causes = tuple(
            {"reason": "FieldValueInvalid", "message": "Invalid value: odd", "field": f"spec.devices[{index}].name"}
            for index, device in enumerate(item["spec"].get("devices", []))
            if device["name"] in names
        )
        if causes:
            raise Refusal(422, "Invalid", 'ResourceSlice.resource.k8s.io "x" is invalid', {"causes": list(causes)})

    return admit


async def test_a_device_that_the_server_refuses_is_left_out_alone(server: TestApiServer, tmp_path: Path) -> None:
    wholes = [a_device(f"GPU-{number}") for number in range(70)]
    odd = [wholes[3], wholes[66]]
    server.admission.append(refuse(*(whole.name for whole in odd)))
    async with a_publisher(server, tmp_path) as running:
        running.show(*wholes)
        await running.ready()
        assert device_names(server) == [whole.name for whole in wholes if whole not in odd]
        assert sorted(message for _, message in running.events) == sorted(
            f"left out {whole.name}: the API server refuses it: spec.devices[{index}].name: Invalid value: odd"
            for whole, index in zip(odd, (3, 2), strict=True)
        )
        assert running.reasons() == ["DeviceLeftOut", "DeviceLeftOut"]
        assert running.metric("left_out_devices") == 2


async def test_a_device_that_is_accepted_later_is_published_then(server: TestApiServer, tmp_path: Path) -> None:
    wholes = [a_device(f"GPU-{number}") for number in range(3)]
    server.admission.append(refuse(wholes[1].name))
    async with a_publisher(server, tmp_path, PROBING) as running:
        running.show(*wholes)
        await running.ready()
        assert len(device_names(server)) == 2
        server.admission.clear()
        await until(lambda: len(device_names(server)) == 3)
        assert running.reasons() == ["DeviceLeftOut"]


async def test_a_refusal_that_no_device_explains_is_told_once_and_tried_again(
    server: TestApiServer, tmp_path: Path
) -> None:
    def admit(_: Kind, __: str, item: Object) -> None:
        raise Refusal(422, "Invalid", f"{item['kind']} is invalid: spec.pool.name: Invalid value")

    server.admission.append(admit)
    async with a_publisher(server, tmp_path) as running:
        running.show(a_device())
        await until(lambda: running.metric("publish_total", result="error") >= 2)
        assert running.reasons() == ["PublishFailed"]
        assert "spec.pool.name: Invalid value" in running.events[0][1]
        server.admission.clear()
        await running.ready()


async def test_a_missing_right_is_told_once(server: TestApiServer, tmp_path: Path) -> None:
    fault = server.inject(Fault("status", method="POST", path="resourceslices", status=403, times=1000))
    async with a_publisher(server, tmp_path) as running:
        running.show(a_device())
        await until(lambda: running.metric("publish_total", result="error") >= QUICK.passing + 2)
        assert running.reasons() == ["PublishFailed"]
        fault.times = 0
        await running.ready()


async def test_what_backends_leave_out_is_told_until_it_is_back(server: TestApiServer, tmp_path: Path) -> None:
    left_out = LeftOut(subject="0000:1b:00.0", problem="no UUID")
    async with a_publisher(server, tmp_path) as running:
        running.show(a_device("GPU-0"), left_out=[left_out])
        await running.ready()
        running.show(a_device("GPU-0"), a_device("GPU-1"), left_out=[left_out])
        await until(lambda: len(device_names(server)) == 2)
        await until(lambda: running.metric("left_out_devices") == 1)
        assert running.events == [("DeviceLeftOut", "left out 0000:1b:00.0: no UUID")]
        running.show(a_device("GPU-0"), a_device("GPU-1"))
        await until(lambda: running.metric("left_out_devices") == 0)
        running.show(a_device("GPU-0"), a_device("GPU-1"), left_out=[left_out])
        await until(lambda: len(running.events) == 2)


async def test_a_device_of_unknown_memory_is_told_to_be_for_one_claim(server: TestApiServer, tmp_path: Path) -> None:
    whole = a_device(memory=None)
    async with a_publisher(server, tmp_path) as running:
        running.show(whole)
        await running.ready()
        assert running.events == [
            (
                "DeviceNotShareable",
                f"device {whole.name} is given to one claim at a time: its memory is not known",
            )
        ]


async def test_an_api_server_that_knows_no_roles_yet_is_asked_again_soon_and_nobody_is_told(
    server: TestApiServer, tmp_path: Path
) -> None:
    server.inject(Fault("status", path="resourceslices", method="POST", status=403, times=3))
    async with a_publisher(server, tmp_path, replace(QUICK, refused_s=600.0)) as running:
        running.show(a_device())
        await running.ready()
        assert running.events == []
