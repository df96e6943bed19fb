"""Devices that a device plugin or another DRA driver serves, too, are tainted while that lasts."""

from pathlib import Path
from typing import Any

from dra_driver.devices.model import Health
from tests.support.api_server import TestApiServer
from tests.support.builder import NODE, a_device, a_partitionable_device
from tests.support.publishing import Pods, a_node, a_publisher, device_names, devices, writes
from tests.support.wait import until

KEY = "dra-driver.io/in-use-by"
HUAWEI = a_device("NPU-0", vendor="huawei")


def allocatable(server: TestApiServer, **resources: str) -> None:
    """Say what the kubelet counts on the node."""
    names = {name.replace("__", "/").replace("_", "."): count for name, count in resources.items()}
    server.put("nodes", a_node() | {"status": {"allocatable": names}})


def a_foreign_slice() -> dict[str, Any]:
    pool = {"name": NODE, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.nvidia.com", "nodeName": NODE, "pool": pool, "devices": [{"name": "gpu-0"}]}
    return {"metadata": {"name": "foreign"}, "spec": spec}


def owners(server: TestApiServer) -> dict[str, str]:
    """Who else serves a device, by the device's name."""
    return {
        device["name"]: taint["value"]
        for device in devices(server)
        for taint in device.get("taints", ())
        if taint["key"] == KEY
    }


async def test_devices_of_a_device_plugin_are_tainted_from_the_start_and_freed_when_it_is_gone(tmp_path: Path) -> None:
    async with TestApiServer() as server:
        allocatable(server, cpu="8", nvidia_com__gpu="8")
        async with a_publisher(server, tmp_path) as running:
            running.show(a_device("GPU-0"), a_partitionable_device("GPU-P"), HUAWEI)
            await running.ready()
            names = [name for name in device_names(server) if name != HUAWEI.name]
            assert owners(server) == dict.fromkeys(names, "nvidia.com_gpu")
            allocatable(server, cpu="8", nvidia_com__gpu="0")
            await until(lambda: not owners(server))
            await until(lambda: running.reasons() == ["DevicesInUse", "DevicesNotInUse"])
            assert "the device plugin of nvidia.com/gpu" in running.events[0][1]


async def test_a_device_plugin_that_comes_later_is_noticed(tmp_path: Path) -> None:
    async with TestApiServer() as server:
        allocatable(server, cpu="8")
        async with a_publisher(server, tmp_path) as running:
            running.show(a_device("GPU-0"), HUAWEI)
            await running.ready()
            assert not owners(server)
            allocatable(server, cpu="8", huawei_com__Ascend910="8")
            await until(lambda: owners(server) == {HUAWEI.name: "huawei.com_Ascend910"})


async def test_another_driver_s_slice_counts_and_its_heartbeats_do_not(tmp_path: Path) -> None:
    async with TestApiServer() as server:
        allocatable(server, cpu="8")
        async with a_publisher(server, tmp_path) as running:
            running.show(a_device("GPU-0"))
            await running.ready()
            server.put("resourceslices", a_foreign_slice())
            await until(lambda: list(owners(server).values()) == ["gpu.nvidia.com"])
            server.requests.clear()
            server.put("resourceslices", a_foreign_slice())
            allocatable(server, cpu="7")
            server.remove("resourceslices", "foreign")
            await until(lambda: not owners(server))
            assert len(writes(server)) == 1
            await until(lambda: running.reasons() == ["DevicesInUse", "DevicesNotInUse"])


async def test_devices_that_go_from_one_to_another_are_not_free_until_the_last_is_gone(
    tmp_path: Path,
) -> None:
    async with TestApiServer() as server:
        allocatable(server, nvidia_com__gpu="1")
        server.put("resourceslices", a_foreign_slice())
        async with a_publisher(server, tmp_path) as running:
            running.show(a_device("GPU-0"))
            await running.ready()
            allocatable(server, nvidia_com__gpu="0")
            await until(lambda: list(owners(server).values()) == ["gpu.nvidia.com"])
            server.remove("resourceslices", "foreign")
            await until(lambda: not owners(server))
            await until(lambda: running.reasons()[-1] == "DevicesNotInUse")
            assert running.reasons() == ["DevicesInUse", "DevicesInUse", "DevicesNotInUse"]


async def test_an_unhealthy_device_has_both_taints(tmp_path: Path) -> None:
    async with TestApiServer() as server:
        allocatable(server, nvidia_com__gpu="1")
        async with a_publisher(server, tmp_path) as running:
            running.show(a_device("GPU-0", health=Health(reason="xid-79", message="")))
            await running.ready()
            [device] = devices(server)
            assert [taint["key"] for taint in device["taints"]] == ["dra-driver.io/unhealthy", KEY]


async def test_where_taints_are_dropped_devices_are_left_out(tmp_path: Path) -> None:
    async with TestApiServer() as server:
        server.drop_fields("resourceslices", "spec.devices.*.taints")
        allocatable(server, nvidia_com__gpu="1")
        async with a_publisher(server, tmp_path) as running:
            running.show(a_device("GPU-0"), HUAWEI)
            await running.ready()
            assert device_names(server) == [HUAWEI.name]
            assert set(running.reasons()) == {"DevicesInUse", "DeviceLeftOut", "FieldsDropped"}


async def test_what_pods_still_hold_of_a_device_plugin_that_ended_is_tainted_until_they_end(tmp_path: Path) -> None:
    pods = Pods("nvidia.com/gpu")
    async with TestApiServer() as server:
        allocatable(server, nvidia_com__gpu="0")
        async with a_publisher(server, tmp_path, pods=pods) as running:
            running.show(a_device("GPU-0"), HUAWEI)
            await running.ready()
            assert list(owners(server).values()) == ["nvidia.com_gpu"]
            pods.held = frozenset()
            await until(lambda: not owners(server))


async def test_what_pods_hold_is_as_it_was_while_the_kubelet_does_not_say(tmp_path: Path) -> None:
    pods = Pods("nvidia.com/gpu")
    async with TestApiServer() as server:
        allocatable(server)
        async with a_publisher(server, tmp_path, pods=pods) as running:
            running.show(a_device("GPU-0"))
            await running.ready()
            pods.held = None
            running.show(a_device("GPU-0"), a_device("GPU-1"))
            await until(lambda: list(owners(server).values()) == ["nvidia.com_gpu"] * 2)


async def test_a_device_plugin_that_went_while_the_publisher_was_away_is_held_like_any_other(tmp_path: Path) -> None:
    async with TestApiServer() as server:
        allocatable(server, nvidia_com__gpu="1")
        async with a_publisher(server, tmp_path) as running:
            running.show(a_device("GPU-0"), HUAWEI)
            await running.ready()
        allocatable(server, nvidia_com__gpu="0")
        before = len(writes(server))
        async with a_publisher(server, tmp_path, hold_s=0.5) as running:
            running.show(a_device("GPU-0"), HUAWEI)
            await running.ready()
            assert (len(writes(server)), running.reasons()) == (before, ["DevicesInUse"])
            await until(lambda: not owners(server))
            await until(lambda: running.reasons() == ["DevicesInUse", "DevicesNotInUse"])


async def test_a_device_plugin_that_is_gone_for_a_moment_is_no_news(tmp_path: Path) -> None:
    async with TestApiServer() as server:
        allocatable(server, nvidia_com__gpu="1")
        async with a_publisher(server, tmp_path, hold_s=30) as running:
            running.show(a_device("GPU-0"))
            await running.ready()
            allocatable(server, nvidia_com__gpu="0")
            running.show(a_device("GPU-0"), a_device("GPU-1"))
            await until(lambda: list(owners(server).values()) == ["nvidia.com_gpu"] * 2)
            assert running.reasons() == ["DevicesInUse"]
