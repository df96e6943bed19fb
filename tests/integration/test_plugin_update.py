"""An update as the node sees it: a second plugin process starts beside the first, which then leaves."""

import asyncio
import socket
from pathlib import Path

from dra_driver.api.resource_v1 import DeviceRequestAllocationResult
from kubeletplugin.kubelet.socket_name import build_registration_socket, build_service_socket
from kubeletplugin.prepare.record import ClaimRef
from tests.support.builder import DRIVER, a_claim, a_ref, a_result, a_share
from tests.support.claim import put_claim
from tests.support.health_watch import HealthWatch
from tests.support.kubelet import Kubelet
from tests.support.plugin import PluginNode, PluginProcess
from tests.support.wait import until

OLD, NEW, NEWEST = (f"00000000-0000-0000-0000-00000000000{number}" for number in range(3))


def registrar(node: PluginNode, pod_uid: str) -> Path:
    return build_registration_socket(node.registry_dir, DRIVER, pod_uid)


def service(node: PluginNode, pod_uid: str) -> Path:
    return build_service_socket(node.plugin_dir, pod_uid)


def sockets(node: PluginNode) -> set[str]:
    return {path.name for folder in (node.registry_dir, node.plugin_dir) for path in folder.glob("*.sock")}


def sockets_of(node: PluginNode, *pod_uids: str) -> set[str]:
    return {path.name for uid in pod_uids for path in (service(node, uid), registrar(node, uid))}


def writes(node: PluginNode) -> list[str]:
    """What was done to slices, but tried only."""
    return [
        f"{each.method} {each.path}"
        for each in node.server.requests
        if each.method != "GET" and "resourceslices" in each.path and "dryRun" not in each.query
    ]


async def start(node: PluginNode, pod_uid: str, **flags: object) -> PluginProcess:
    return await node.start_ready(pod_uid=pod_uid, **flags)


def put(node: PluginNode, name: str, result: DeviceRequestAllocationResult) -> ClaimRef:
    """Store a claim with that allocation, and return what the kubelet would call it."""
    return put_claim(node.server, a_claim(result, ref=a_ref(name=name)))


async def test_what_one_prepared_the_other_unprepares(node: PluginNode) -> None:
    old = await start(node, OLD)
    first, second, *_ = node.devices()
    held, other = put(node, "held", a_result(first)), put(node, "other", a_result(second))
    rival = put(node, "rival", a_result(first))
    async with Kubelet.registered(registrar(node, OLD)) as old_kubelet:
        before = (await old_kubelet.prepare(held))[held.uid]
        new = await start(node, NEW)
        async with Kubelet.registered(registrar(node, NEW)) as new_kubelet:
            assert (await new_kubelet.prepare(held))[held.uid] == before
            assert "held by claim default/held" in (await new_kubelet.prepare(rival))[rival.uid].error
            assert (await new_kubelet.prepare(other))[other.uid].error == ""
            assert await old.terminate() == 0
            assert (await new_kubelet.unprepare(held))[held.uid].error == ""
            assert (await new_kubelet.prepare(rival))[rival.uid].error == ""
            assert (await new_kubelet.unprepare(rival, other))[other.uid].error == ""
    assert list(node.cdi_dir.iterdir()) == []
    assert (await new.get("/readyz"))[0] == 200


async def test_what_the_new_one_prepared_is_not_lost_on_the_old_one(node: PluginNode) -> None:
    await start(node, OLD)
    new = await start(node, NEW)
    first, *_ = node.devices()
    held, rival = put(node, "held", a_result(first)), put(node, "rival", a_result(first))
    async with Kubelet.registered(registrar(node, NEW)) as kubelet:
        await kubelet.prepare(held)
    await new.kill()
    async with Kubelet.registered(registrar(node, OLD)) as kubelet:
        assert "held by claim default/held" in (await kubelet.prepare(rival))[rival.uid].error
        assert (await kubelet.unprepare(held))[held.uid].error == ""
        assert (await kubelet.prepare(rival))[rival.uid].error == ""


async def test_one_device_is_given_by_one_of_two_at_the_same_moment(node: PluginNode) -> None:
    await start(node, OLD)
    await start(node, NEW)
    async with Kubelet.registered(registrar(node, OLD)) as old, Kubelet.registered(registrar(node, NEW)) as new:
        for number, device in enumerate(node.devices()):
            one, other = (put(node, f"{name}-{number}", a_result(device)) for name in ("one", "other"))
            answers = await asyncio.gather(old.prepare(one), new.prepare(other))
            errors = [answer.error for each in answers for answer in each.values()]
            assert sorted(map(bool, errors)) == [False, True], errors
            assert any("held by claim" in error for error in errors)


async def test_shares_of_one_device_are_counted_over_both(node: PluginNode) -> None:
    await start(node, OLD)
    await start(node, NEW)
    device, *_ = node.devices()
    claims = [put(node, f"share-{n}", a_share(device, f"share-{n}", memory="30Gi")) for n in range(4)]
    async with Kubelet.registered(registrar(node, OLD)) as old, Kubelet.registered(registrar(node, NEW)) as new:
        calls = ((old, new)[n % 2].prepare(ref) for n, ref in enumerate(claims))
        answers = await asyncio.gather(*calls)
    errors = [answer.error for each in answers for answer in each.values()]
    assert len([error for error in errors if not error]) == 2, errors


async def test_the_leaving_one_takes_its_own_sockets_and_no_others(node: PluginNode) -> None:
    old = await start(node, OLD)
    new = await start(node, NEW)
    assert sockets(node) == sockets_of(node, OLD, NEW)
    async with Kubelet.registered(registrar(node, NEW)) as kubelet, HealthWatch.open(service(node, NEW)) as watch:
        assert await old.terminate() == 0
        assert sockets(node) == sockets_of(node, NEW)
        assert await kubelet.prepare() == {}
        assert watch.ended is None
        assert [(await new.get(path))[0] for path in ("/healthz", "/readyz")] == [200, 200]


async def test_each_answers_for_itself(node: PluginNode) -> None:
    old, new = await start(node, OLD), await start(node, NEW)
    async with Kubelet.registered(registrar(node, NEW)):
        assert (await new.get("/readyz"))[0] == 200
        assert "registered: the kubelet has not accepted" in (await old.get("/readyz"))[1]
    registrar(node, OLD).unlink()
    assert (await old.get("/healthz"))[0] == 503
    assert (await new.get("/healthz"))[0] == 200


async def test_sockets_of_the_dead_are_removed_and_those_of_the_living_and_of_others_are_not(node: PluginNode) -> None:
    await (await start(node, OLD)).kill()
    await start(node, NEW)
    foreign = node.registry_dir / "other.io-reg.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(foreign))
    assert sockets(node) == {*sockets_of(node, NEW), foreign.name}
    await start(node, NEWEST)
    assert sockets(node) == {*sockets_of(node, NEW, NEWEST), foreign.name}


async def test_equal_instances_write_nothing_while_they_come_and_go(node: PluginNode) -> None:
    old = await start(node, OLD)
    before = node.server.all("resourceslices")
    node.server.requests.clear()
    new = await start(node, NEW)
    await old.terminate()
    await (await start(node, NEWEST)).terminate()
    assert (await new.get("/readyz"))[0] in {200, 503}
    assert node.server.all("resourceslices") == before
    assert writes(node) == []


async def test_instances_that_see_different_devices_do_not_write_by_turns(node: PluginNode) -> None:
    old = await start(node, OLD)
    names = list(node.devices())
    other = node.folder / "other.yaml"
    other.write_text("removed: [0]\n")
    new = await start(node, NEW, simulated_overrides=other)
    await until(lambda: list(node.devices()) == names[1:])
    await old.logged("publishing left to a newer plugin of this node")
    node.server.requests.clear()
    node.overrides.write_text("removed: [1]\n")  # the old one sees it, and leaves it
    other.write_text("removed: [2]\n")
    await until(lambda: names[2] not in node.devices())
    assert names[1] in node.devices()
    assert len(writes(node)) == 1
    await new.kill()
    await until(lambda: names[1] not in node.devices() and names[2] in node.devices())
    await old.logged("publishing again")


async def test_many_updates_in_a_row_lose_nothing(node: PluginNode) -> None:
    plugin = await start(node, OLD)
    first, *_ = node.devices()
    held = put(node, "held", a_result(first))
    async with Kubelet.registered(registrar(node, OLD)) as kubelet:
        before = (await kubelet.prepare(held))[held.uid]
    for number in range(3, 7):
        uid = f"00000000-0000-0000-0000-00000000000{number}"
        following = await start(node, uid)
        end = plugin.kill if number % 2 else plugin.terminate
        await end()
        plugin = following
        async with Kubelet.registered(registrar(node, uid)) as kubelet:
            assert (await kubelet.prepare(held))[held.uid] == before
    assert sockets(node) == sockets_of(node, uid)
    async with Kubelet.registered(registrar(node, uid)) as kubelet:
        assert (await kubelet.unprepare(held))[held.uid].error == ""
    assert list(node.cdi_dir.iterdir()) == []


async def test_of_two_that_see_a_device_fall_ill_one_tells_of_it(node: PluginNode) -> None:
    old, new = await start(node, OLD), await start(node, NEW)
    names = list(node.devices())
    node.overrides.write_text("unhealthy:\n  0: {reason: XidCritical, message: fell off the bus}\n")
    for plugin in (old, new):
        await plugin.logged("device unhealthy")
    await until(lambda: node.server.all("events", "default"))
    await new.kill()
    node.overrides.write_text("unhealthy:\n  1: {reason: XidCritical, message: fell off the bus}\n")
    await until(lambda: len(node.server.all("events", "default")) >= 3)  # the other one is well again
    await old.terminate()
    told = [(each["reason"], each["message"], each["count"]) for each in node.server.all("events", "default")]
    ill = "XidCritical: fell off the bus"
    assert sorted(told) == [
        ("DeviceHealthy", f"device node-a/{names[0]}: well again, and may be used", 1),
        ("DeviceUnhealthy", f"device node-a/{names[0]}: {ill}", 1),
        ("DeviceUnhealthy", f"device node-a/{names[1]}: {ill}", 1),
    ]
