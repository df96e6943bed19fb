"""Claims, as the kubelet and the container runtime see them: a real plugin process behind real sockets."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kubeletplugin.prepare.record import ClaimRef
from tests.support.builder import DRIVER, NODE, a_claim, a_config, a_ref, a_result, a_share, device_config
from tests.support.claim import put_claim
from tests.support.kubelet import Kubelet
from tests.support.plugin import PluginNode
from tests.support.wait import until


def read_lines(file: Path) -> list[Any]:
    return [msgspec.json.decode(line) for line in file.read_bytes().splitlines()]


def one(answers: dict[str, Any]) -> Any:
    (answer,) = answers.values()
    return answer


@pytest.mark.parametrize("known", [("v1.DRAPlugin",), ("v1beta1.DRAPlugin",)], ids=["v1", "v1beta1"])
async def test_a_claim_is_prepared_and_unprepared(node: PluginNode, known: tuple[str, ...]) -> None:
    await node.start_ready()
    device = node.whole_devices()[0]
    ref = put_claim(node.server, a_claim(a_result(device, request="gpu/big")))
    async with Kubelet.registered(node.registrar, known=known) as kubelet:
        (prepared,) = one(await kubelet.prepare(ref)).devices
        assert list(prepared.request_names) == ["gpu"]
        assert (prepared.pool_name, prepared.device_name) == (NODE, device)
        assert list(prepared.cdi_device_ids) == [f"{DRIVER}/claim={ref.uid}-{device}"]
        assert node.resolve(*prepared.cdi_device_ids).env
        assert one(await kubelet.unprepare(ref)).error == ""
    assert list(node.cdi_dir.iterdir()) == []


async def test_two_shares_of_one_device_are_told_apart(node: PluginNode) -> None:
    await node.start_ready()
    device = node.whole_devices()[0]
    claim = a_claim(
        a_share(device, "share-1", request="a", memory="8Gi", cores=30),
        a_share(device, "share-2", request="b", memory="4Gi"),
        config=[a_config(device_config(policy="Burst"), requests=["b"])],
    )
    ref = put_claim(node.server, claim)
    async with Kubelet.registered(node.registrar) as kubelet:
        prepared = one(await kubelet.prepare(ref)).devices
    assert [each.share_id for each in prepared] == ["share-1", "share-2"]
    limits = [node.resolve(*each.cdi_device_ids).mounts[-1] for each in prepared]
    texts = [(node.folder / mount.host_path).read_text().splitlines()[-1] for mount in limits]
    assert [text.split(maxsplit=2)[2] for text in texts] == [
        f"memory={8 << 30} cores=30 policy=force",
        f"memory={4 << 30} cores=- policy=burst",
    ]
    assert len({mount.container_path for mount in limits}) == 2


@pytest.mark.parametrize(
    ("namespace", "name"),
    [("default", ".."), ("..", "claim"), ("default", ""), ("", "claim"), ("default", "a/b")],
    ids=["parent", "parent of namespaces", "no name", "no namespace", "path"],
)
async def test_a_name_that_no_claim_can_have_stops_nothing(node: PluginNode, namespace: str, name: str) -> None:
    plugin = await node.start_ready()
    good = put_claim(node.server, a_claim(a_result(node.whole_devices()[0])))
    async with Kubelet.registered(node.registrar) as kubelet:
        answer = one(await kubelet.prepare(*[ClaimRef(namespace, name, "uid-1")] * 2))
        assert answer.error.startswith(("claim uid-1: namespace: ", "claim uid-1: name: "))
        assert not [each for each in node.server.requests if each.method == "GET" and "resourceclaims" in each.path]
        assert one(await kubelet.prepare(good)).error == ""
        await until(lambda: plugin.ended or "devices" in node.server.all("resourceclaims")[0]["status"])
    assert not plugin.ended


async def test_a_failed_claim_does_not_fail_the_others(node: PluginNode) -> None:
    await node.start_ready()
    first, second, *_ = node.whole_devices()
    good = put_claim(node.server, a_claim(a_result(first), ref=a_ref(name="good")))
    gone = put_claim(node.server, a_claim(a_result("gpu-000000000000"), ref=a_ref(name="gone")))
    missing = ClaimRef("default", "missing", "uid-missing")
    replaced = put_claim(node.server, a_claim(a_result(second), ref=a_ref(name="replaced")))
    replaced = ClaimRef(replaced.namespace, replaced.name, "uid-before")
    hostile = ClaimRef("default", "hostile", "../../escape")
    async with Kubelet.registered(node.registrar) as kubelet:
        answers = await kubelet.prepare(good, gone, missing, replaced, hostile)
    assert answers[good.uid].error == ""
    assert "device node-a/gpu-000000000000: not on this node any more" in answers[gone.uid].error
    assert "gone from the API server" in answers[missing.uid].error
    assert "replaced by another one" in answers[replaced.uid].error
    assert "UID '../../escape' is not one" in answers[hostile.uid].error
    await until(lambda: len(node.server.all("events", "default")) >= 4)
    told = {event["involvedObject"]["name"] for event in node.server.all("events", "default")}
    assert {"gone", "missing", "replaced"} <= told
    assert {event["reason"] for event in node.server.all("events", "default")} == {"PrepareFailed"}


async def test_unprepare_works_while_the_api_server_is_away_and_the_claim_is_gone(node: PluginNode) -> None:
    await node.start_ready()
    ref = put_claim(node.server, a_claim(a_result(node.whole_devices()[0])))
    async with Kubelet.registered(node.registrar) as kubelet:
        await kubelet.prepare(ref)
        node.server.remove("resourceclaims", ref.name, ref.namespace)
        await node.server.stop()
        assert one(await kubelet.prepare(ref)).error == ""
        assert one(await kubelet.unprepare(ref)).error == ""
        assert one(await kubelet.unprepare(ClaimRef("default", "unknown", "uid-9"))).error == ""
    assert list(node.cdi_dir.iterdir()) == []


async def test_a_killed_plugin_remembers_what_it_prepared(node: PluginNode) -> None:
    plugin = await node.start_ready()
    device, other, *_ = node.whole_devices()
    ref = put_claim(node.server, a_claim(a_result(device)))
    async with Kubelet.registered(node.registrar) as kubelet:
        before = one(await kubelet.prepare(ref))
    await plugin.kill()
    for path in node.cdi_dir.iterdir():
        path.unlink()
    await node.start_ready()
    await until(lambda: list(node.cdi_dir.iterdir()))
    second = put_claim(node.server, a_claim(a_result(device), ref=a_ref(name="second")))
    third = put_claim(node.server, a_claim(a_result(other), ref=a_ref(name="third")))
    async with Kubelet.registered(node.registrar) as kubelet:
        answers = await kubelet.prepare(ref, second, third)
        assert answers[ref.uid] == before
        assert f"held by claim default/{ref.name} (UID {ref.uid}" in answers[second.uid].error
        assert answers[third.uid].error == ""
        await kubelet.unprepare(ref)
        assert one(await kubelet.prepare(second)).error == ""


async def test_a_partition_is_made_and_removed_with_its_claim(node: PluginNode) -> None:
    node.profile = "a100x8"
    await node.start_ready()
    profile = {"string": "1g.10gb"}
    partition = next(n for n, d in node.devices().items() if d["attributes"].get("partitionProfile") == profile)
    ref = put_claim(node.server, a_claim(a_result(partition)))
    made = node.plugin_dir / "simulated" / "partitions"
    async with Kubelet.registered(node.registrar) as kubelet:
        assert one(await kubelet.prepare(ref)).error == ""
        assert [path.stem for path in made.glob("*.json")] == [partition]
        await kubelet.unprepare(ref)
    assert list(made.glob("*.json")) == []


async def test_a_record_that_cannot_be_read_stops_neither_the_node_nor_its_unprepare(node: PluginNode) -> None:
    plugin = await node.start_ready()
    ref = put_claim(node.server, a_claim(a_result(node.whole_devices()[0])))
    async with Kubelet.registered(node.registrar) as kubelet:
        await kubelet.prepare(ref)
    await plugin.terminate()
    record = node.plugin_dir / "claims" / f"{ref.uid}.json"
    record.write_bytes(record.read_bytes()[:-5])
    plugin = await node.start_ready()
    assert str(record) in (await plugin.logged("claim record corrupt"))["error"]
    await until(lambda: any(event["reason"] == "CheckpointCorrupt" for event in node.server.all("events", "default")))
    async with Kubelet.registered(node.registrar) as kubelet:
        assert one(await kubelet.unprepare(ref)).error == ""
    assert list(node.cdi_dir.iterdir()) == []
    assert record.with_name(f"{record.name}.corrupt-1").exists()


async def test_files_that_somebody_removed_are_put_back(node: PluginNode) -> None:
    await node.start_ready()
    ref = put_claim(node.server, a_claim(a_result(node.whole_devices()[0])))
    async with Kubelet.registered(node.registrar) as kubelet:
        await kubelet.prepare(ref)
    (spec,) = node.cdi_dir.iterdir()
    content = spec.read_bytes()
    spec.unlink()
    await until(spec.exists)
    assert spec.read_bytes() == content


async def test_a_container_reads_about_its_devices(node: PluginNode) -> None:
    await node.start_ready(device_metadata=True)
    device = node.whole_devices()[0]
    claim = a_claim(a_result(device, request="gpu/big"))
    metadata = msgspec.structs.replace(claim.metadata, annotations={"resource.kubernetes.io/pod-claim-name": "mine"})
    ref = put_claim(node.server, msgspec.structs.replace(claim, metadata=metadata))
    async with Kubelet.registered(node.registrar) as kubelet:
        (prepared,) = one(await kubelet.prepare(ref)).devices
        mount = node.resolve(*prepared.cdi_device_ids).mounts[-1]
        folder = "/var/run/kubernetes.io/dra-device-attributes/resourceclaimtemplates/mine/gpu"
        assert mount.container_path == f"{folder}/{DRIVER}-metadata.json"
        file = Path(mount.host_path)
        newest, older = read_lines(file)
        assert newest["requests"] == older["requests"]
        assert newest["requests"][0]["devices"][0]["attributes"] == node.devices()[device]["attributes"]
        await asyncio.to_thread(file.unlink)
        await until(file.exists)
        await kubelet.unprepare(ref)
        assert not file.parent.exists()
