"""What no claim has goes, and what one has stays."""

from dataclasses import replace
from pathlib import Path

import pytest

from dra_driver.devices.model import Device, Inventory, Partition
from dra_driver.errors import DeviceError
from kubeletplugin.prepare.checkpoint import LOCK_FILE
from kubeletplugin.prepare.lock import StateLocks, device_key
from tests.support.builder import DRIVER, FakeBackend, a_claim, a_ref, a_result, a_share
from tests.support.prepare_node import PART, SPLIT, WHOLE, PrepareNode, prepare


@pytest.fixture
def node(tmp_path: Path) -> PrepareNode:
    return PrepareNode(tmp_path)


class SeeingBackend(FakeBackend):
    """A backend that reports which partitions exist."""

    def read_inventory(self) -> Inventory:
        return Inventory(devices=tuple(map(self._seen, self.devices)))

    def _seen(self, device: Device) -> Device:
        partitions = (
            replace(each, uuid="MIG-1") if device.partition_name(each) in self.partitions else each
            for each in device.partitions
        )
        return replace(device, partitions=tuple(partitions))


def test_a_partition_whose_device_was_away_when_its_claim_went_goes_when_it_is_back(tmp_path: Path) -> None:
    node = PrepareNode(tmp_path, SeeingBackend((WHOLE, SPLIT)))
    preparer = node.start()
    prepare(preparer, a_claim(a_result(PART)))
    other = a_ref("uid-2", "claim-2")
    second = SPLIT.partition_name(SPLIT.partitions[2])
    prepare(preparer, a_claim(a_result(second), ref=other), other)
    node.backend.devices = (WHOLE,)
    preparer.unprepare(a_ref())
    node.backend.devices = (WHOLE, SPLIT)
    assert node.backend.partitions == {PART, second}
    for _ in range(2):
        preparer.sweep()
    assert node.backend.partitions == {second}


def test_a_partition_of_a_device_that_hangs_keeps_nobody_waiting_and_goes_later(tmp_path: Path) -> None:
    node = PrepareNode(tmp_path, SeeingBackend((WHOLE, SPLIT), partitions={PART}))
    preparer = node.start()
    preparer.sweep()
    other = StateLocks(tmp_path / "claims" / LOCK_FILE)
    with other.hold(device_key(SPLIT.name)):
        preparer.sweep()
    assert node.backend.partitions == {PART}
    preparer.sweep()
    assert node.backend.partitions == set()


def test_a_partition_that_cannot_be_removed_does_not_stop_files_from_being_put_back(tmp_path: Path) -> None:
    class StuckBackend(SeeingBackend):
        def undo_partition(self, device: Device, partition: Partition) -> None:
            raise DeviceError("partition in use")

    node = PrepareNode(tmp_path, StuckBackend((WHOLE, SPLIT), partitions={PART}))
    preparer = node.start()
    prepare(preparer, a_claim(a_result(WHOLE.name)))
    for _ in range(3):
        for path in node.cdi_dir.iterdir():
            path.unlink()
        assert preparer.restore() == ()
        preparer.sweep()
        assert node.resolve(f"uid-1-{WHOLE.name}").device_nodes


def test_shim_configs_and_leftovers_without_a_claim_are_swept(node: PrepareNode) -> None:
    preparer = node.start()
    prepare(preparer, a_claim(a_share(WHOLE.name, "share-1")))
    before = node.files()
    (node.directory / "shim" / "uid-9").mkdir()
    (node.directory / "shim" / "uid-9" / "share").write_text("shim 1")
    (node.directory / "claims" / ".uid-9.json.partial").write_text("{")
    (node.cdi_dir / f".{DRIVER}-claim_uid-9.json.0123456789abcdef.tmp").write_text("{")
    busy = node.directory / "claims" / ".uid-1.json.partial"
    busy.write_text("{")
    with preparer.working_on("uid-1"):
        preparer.sweep()
    assert busy.exists()
    busy.unlink()
    assert node.files() == before
    assert not (node.directory / "shim" / "uid-9").exists()
