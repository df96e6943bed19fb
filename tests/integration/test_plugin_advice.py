"""What an operator is told of settings that come to nothing, by a real plugin process."""

from tests.support.plugin import PluginNode
from tests.support.wait import until


async def test_settings_that_come_to_nothing_are_told_of_once_each(node: PluginNode) -> None:
    plugin = await node.start_ready(partitions_of="GPU-9=none", sharing_strategy="TimeSlicing")

    def told() -> list[str]:
        events = node.server.all("events", "default")
        return sorted(event["message"] for event in events if event["reason"] == "SettingHasNoEffect")

    await until(lambda: len(told()) == 2)
    one, other = told()
    assert one.startswith("--partitions-of: 'GPU-9': no device of this node, want gpu-")
    assert other.startswith("--sharing-strategy: TimeSlicing limits no shares")
    node.overrides.write_text("unhealthy: {0: {reason: xid-79}}")
    await plugin.logged("device unhealthy")
    assert plugin.text.count("setting has no effect") == 2


async def test_all_settings_that_cannot_be_used_are_named_at_once(node: PluginNode) -> None:
    plugin = await node.start(discovery_interval="nan", recovery_hold="inf", slots=0, ignore_xids=0)
    assert await plugin.wait() == 2
    for flag in ("--discovery-interval: nan", "--recovery-hold: inf", "--slots: 0", "--ignore-xids: 0"):
        assert flag in plugin.text
