"""What `status.devices` of a claim says: a real plugin process, and an API server that merges as Kubernetes does."""

from typing import Any

import msgspec

from dra_driver.api import codec
from dra_driver.api.resource_v1 import DeviceRequestAllocationResult
from kubeletplugin.prepare.record import ClaimRef
from tests.support.builder import DRIVER, NODE, a_claim, a_result, a_share
from tests.support.kubelet import Kubelet
from tests.support.plugin import PluginNode
from tests.support.wait import until

SHARE = "6f1c0f6e-2f0e-4b57-9a3c-0d9a4d0c7b11"
OTHER = {"driver": "net.example.com", "pool": NODE, "device": "nic-0", "networkData": {"interfaceName": "eth1"}}


def put_claim(node: PluginNode, *results: DeviceRequestAllocationResult) -> ClaimRef:
    """Store a claim with these results, and one of another driver that has told something already."""
    other = a_result("nic-0", request="net", driver="net.example.com")
    value = msgspec.json.decode(codec.encode(a_claim(*results, other)))
    value["status"]["devices"] = [OTHER]
    stored = node.server.put("resourceclaims", value)
    return ClaimRef("default", stored["metadata"]["name"], stored["metadata"]["uid"])


def told(node: PluginNode) -> dict[str, dict[str, Any]]:
    """Return the plugin's entries of the only claim, by share and device."""
    (claim,) = node.server.all("resourceclaims", "default")
    entries = [entry for entry in claim["status"].get("devices", ()) if entry["driver"] == DRIVER]
    return {entry.get("shareID", entry["device"]): entry for entry in entries}


def conditions(node: PluginNode) -> dict[str, tuple[str, str]]:
    return {
        name: (entry["conditions"][0]["status"], entry["conditions"][0]["reason"]) for name, entry in told(node).items()
    }


async def test_a_claim_tells_of_its_devices_while_it_is_prepared(node: PluginNode) -> None:
    await node.start_ready()
    whole, shared, *_ = node.whole_devices()
    ref = put_claim(node, a_result(whole), a_share(shared, SHARE, request="b", memory="8Gi"))
    async with Kubelet.registered(node.registrar) as kubelet:
        await kubelet.prepare(ref)
        await until(lambda: conditions(node) == {whole: ("True", "Prepared"), SHARE: ("True", "Prepared")})
        assert told(node)[whole]["data"]["uuid"]
        assert told(node)[SHARE]["data"]["consumed"]["memory"] == 8 << 30
        node.overrides.write_text(f"unhealthy:\n  {whole}: {{reason: xid-79, message: fell off the bus}}\n")
        await until(lambda: conditions(node).get(whole) == ("False", "DeviceUnhealthy"))
        assert conditions(node)[SHARE] == ("True", "Prepared")
        await kubelet.unprepare(ref)
        await until(lambda: not told(node))
    (claim,) = node.server.all("resourceclaims", "default")
    assert [entry["networkData"] for entry in claim["status"]["devices"]] == [OTHER["networkData"]]


async def test_a_claim_tells_why_it_is_not_prepared(node: PluginNode) -> None:
    await node.start_ready()
    ref = put_claim(node, a_result("gpu-000000000000"))
    async with Kubelet.registered(node.registrar) as kubelet:
        await kubelet.prepare(ref)
        await until(lambda: conditions(node) == {"gpu-000000000000": ("False", "PrepareFailed")})
    assert "not on this node" in told(node)["gpu-000000000000"]["conditions"][0]["message"]


async def test_a_restarted_plugin_writes_nothing_that_is_told_already(node: PluginNode) -> None:
    plugin = await node.start_ready()
    ref = put_claim(node, a_result(node.whole_devices()[0]))
    async with Kubelet.registered(node.registrar) as kubelet:
        await kubelet.prepare(ref)
        await until(lambda: told(node))
    await plugin.kill()
    (before,) = node.server.all("resourceclaims", "default")
    await node.start_ready()
    async with Kubelet.registered(node.registrar) as kubelet:
        await kubelet.prepare(ref)
    (after,) = node.server.all("resourceclaims", "default")
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
