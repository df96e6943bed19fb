"""A claim whose record was lost holds its devices by its CDI spec."""

from pathlib import Path

import pytest

from dra_driver.errors import DeviceBusyError
from kubeletplugin.prepare.preparer import Preparer
from tests.support.builder import a_claim, a_ref, a_result, a_share
from tests.support.prepare_node import PART, SPLIT, WHOLE, WIDE, PrepareNode, prepare


@pytest.fixture
def node(tmp_path: Path) -> PrepareNode:
    return PrepareNode(tmp_path)


@pytest.fixture
def lost(node: PrepareNode) -> Preparer:
    """A process that comes up on a node where the record of a prepared claim was damaged."""
    prepare(node.start(), a_claim(a_share(WHOLE.name, "share-1"), a_result(PART)))
    (node.directory / "claims" / "uid-1.json").write_bytes(b"{")
    return node.start()


@pytest.mark.parametrize("device", [WHOLE.name, PART, WIDE, SPLIT.name])
def test_a_claim_whose_record_was_lost_holds_its_devices_until_it_is_unprepared(
    node: PrepareNode, lost: Preparer, device: str
) -> None:
    other = a_ref("uid-2", "claim-2")
    claim = a_claim(a_result(device), ref=other)
    with pytest.raises(DeviceBusyError, match=r"held by claim default/claim-1 \(UID uid-1, "):
        lost.prepare(other, claim)
    lost.unprepare(a_ref())
    assert node.backend.partitions == set()
    prepare(lost, claim, other)


def test_a_claim_whose_record_was_lost_can_be_prepared_again(node: PrepareNode, lost: Preparer) -> None:
    prepare(lost, a_claim(a_share(WHOLE.name, "share-1"), a_result(PART)))
    lost.unprepare(a_ref())
    assert [name for name in node.files() if "corrupt" not in name] == []
    assert node.backend.partitions == set()


def test_a_spec_that_turns_up_while_the_plugin_runs_holds_its_device_from_the_next_sweep_on(node: PrepareNode) -> None:
    preparer = node.start()
    prepare(preparer, a_claim(a_result(WHOLE.name)))
    preparer.unprepare(a_ref())
    prepare(node.start(), a_claim(a_result(PART)))
    (node.directory / "claims" / "uid-1.json").unlink()
    second = node.start()
    other = a_ref("uid-2", "claim-2")
    with pytest.raises(DeviceBusyError, match="uid-1"):
        second.prepare(other, a_claim(a_result(WIDE), ref=other))
    for path in node.cdi_dir.iterdir():
        path.unlink()
    prepare(second, a_claim(a_result(WIDE), ref=other), other)
