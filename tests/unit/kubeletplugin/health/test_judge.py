import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from dra_driver.devices.model import Health, Inventory
from kubeletplugin.health.judge import HealthJudge
from kubeletplugin.health.verdict import HoldPolicy
from tests.support.builder import a_device

XID = Health(reason="xid-79", message="fell off the bus")
DEVICE = a_device()


class Node:
    """A node whose plugin is restarted, and which is booted."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.now_s = 100.0
        self.start("boot-1")

    def start(self, boot_id: str | None, *ruled_out: str) -> None:
        self.judge = HealthJudge(
            self.path,
            HoldPolicy(first_s=10),
            boot_id=boot_id,
            ruled_out=frozenset(ruled_out),
            clock=lambda: self.now_s,
        )

    def look(self, health: Health | None) -> Health | None:
        (inventory,) = self.judge.judge([Inventory(devices=(replace(DEVICE, health=health),))])
        return inventory.devices[0].health


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path / "health.json")


def test_nothing_is_written_while_all_are_well(node: Node) -> None:
    assert node.look(None) is None
    assert not node.path.exists()


def test_the_verdict_survives_a_restart_and_a_reboot_until_the_device_stayed_well(node: Node) -> None:
    node.look(XID)
    node.start("boot-1")
    node.now_s += 10_000
    assert node.look(None) == XID
    node.start("boot-2")
    node.now_s = 3.0
    assert node.look(None) == XID
    node.start("boot-2")
    node.now_s = 13.0
    assert node.look(None) is None


def test_an_unknown_boot_is_no_reboot(node: Node) -> None:
    node.look(XID)
    node.look(None)
    node.start(None)
    node.now_s += 10
    assert node.look(None) is None


def test_a_verdict_that_settings_rule_out_falls_at_the_first_look_and_is_told_of_once(node: Node) -> None:
    node.look(XID)
    node.start("boot-1", "xid-48")
    assert node.look(None) == XID
    assert not node.judge.take_fallen()
    node.start("boot-1", "xid-79")
    assert node.look(None) is None
    assert node.judge.take_fallen() == {DEVICE.name: XID}
    assert not node.judge.take_fallen()
    node.start("boot-1", "xid-79")
    assert node.look(None) is None
    assert not node.judge.take_fallen()


def test_a_device_that_is_ill_in_another_way_stays_so_when_its_verdict_falls(node: Node) -> None:
    node.look(XID)
    node.start("boot-1", "xid-79")
    other = Health(reason="xid-48", message="memory error")
    assert node.look(other) == other


def test_looking_again_writes_nothing(node: Node) -> None:
    node.look(XID)
    before = node.path.stat().st_ino
    node.look(XID)
    node.start("boot-1")
    node.look(XID)
    assert node.path.stat().st_ino == before


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b'{"version":2}', b"\xff\xfe", b'{"version":1,"devices":[{}]}', b'{"more":' + b"[" * 100_000],
    ids=["empty", "half", "newer", "no text", "no device", "deep"],
)
def test_a_corrupt_file_is_as_none_and_replaced(node: Node, content: bytes) -> None:
    node.path.write_bytes(content)
    assert node.look(None) is None
    assert node.look(XID) == XID
    node.start("boot-1")
    assert node.look(None) == XID


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir], ids=["FIFO", "directory"])
def test_what_is_no_file_is_as_none(node: Node, make: Callable[[Path], None]) -> None:
    make(node.path)
    assert node.look(XID) == XID


def test_a_file_that_cannot_be_written_stops_nobody_and_is_written_later(tmp_path: Path) -> None:
    node = Node(tmp_path / "missing" / "health.json")
    with capture_logs() as logs:
        for _ in range(3):
            assert node.look(XID) == XID
    assert [each["event"] for each in logs] == ["health of devices not written"]
    node.path.parent.mkdir()
    assert node.look(XID) == XID
    assert node.path.exists()
