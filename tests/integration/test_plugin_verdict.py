"""A device that was ill is held back until it stays well, also by the next process of the plugin."""

from tests.support.plugin import PluginNode
from tests.support.wait import until


def tainted(node: PluginNode) -> list[str]:
    return [name for name, device in node.devices().items() if device.get("taints")]


async def test_a_device_that_recovered_while_no_plugin_ran_is_held_and_then_told_of(node: PluginNode) -> None:
    plugin = await node.start_ready(recovery_hold=3600)
    first = next(iter(node.devices()))
    node.overrides.write_text("unhealthy: {0: {reason: xid-79}}")
    await until(lambda: tainted(node) == [first])
    await plugin.kill()
    node.overrides.write_text("")

    plugin = await node.start_ready(recovery_hold=3600)
    assert tainted(node) == [first]
    _, metrics = await plugin.get("/metrics")
    assert f'dra_kubeletplugin_device_healthy{{device="{first}"}} 0.0' in metrics
    assert "dra_kubeletplugin_damped_health_changes_total 1.0" in metrics
    await plugin.kill()

    (node.plugin_dir / "health.json").write_bytes(b"{")
    plugin = await node.start_ready(recovery_hold=3600)
    assert (await plugin.logged("health of devices not remembered"))["level"] == "warning"
    await until(lambda: not tainted(node))


async def test_a_recovery_is_told_of_as_an_event(node: PluginNode) -> None:
    await node.start_ready()
    node.overrides.write_text("unhealthy: {0: {reason: xid-79}}")
    await until(lambda: tainted(node))
    node.overrides.write_text("")
    await until(lambda: not tainted(node))
    await until(lambda: len(node.server.all("events", "default")) == 2)
    told = {event["reason"]: event["type"] for event in node.server.all("events", "default")}
    assert told == {"DeviceUnhealthy": "Warning", "DeviceHealthy": "Normal"}


async def test_a_verdict_that_settings_rule_out_falls_at_the_start_and_is_told_of(node: PluginNode) -> None:
    plugin = await node.start_ready(recovery_hold=3600)
    node.overrides.write_text("unhealthy: {0: {reason: xid-79}, 1: {reason: xid-48}}")
    await until(lambda: len(tainted(node)) == 2)
    await plugin.kill()
    node.overrides.write_text("")

    first, second, *_ = node.devices()
    await node.start_ready(recovery_hold=3600, ignore_xids=79)
    assert tainted(node) == [second]
    await until(lambda: any(event["reason"] == "DeviceHealthy" for event in node.server.all("events", "default")))
    (well,) = [event for event in node.server.all("events", "default") if event["reason"] == "DeviceHealthy"]
    assert first in well["message"]
