"""What a reboot or somebody took of prepared claims is put back."""

import shutil
from pathlib import Path

import pytest

from tests.support.builder import NODE, a_claim, a_ref, a_result, a_share
from tests.support.prepare_node import PART, SPLIT, WHOLE, PrepareNode, prepare


@pytest.fixture
def node(tmp_path: Path) -> PrepareNode:
    return PrepareNode(tmp_path)


@pytest.mark.parametrize("restarted", [False, True], ids=["running", "restarted"])
def test_files_that_a_reboot_took_are_put_back(node: PrepareNode, restarted: bool) -> None:
    preparer = node.start()
    claim = a_claim(a_share(WHOLE.name, "share-1"), a_result(PART))
    prepare(preparer, claim)
    before = node.files()
    for path in node.cdi_dir.iterdir():
        path.unlink()
    if restarted:
        preparer = node.start()
    assert preparer.restore() == ()
    assert node.files() == before


def test_asking_again_puts_back_files_before_it_answers(node: PrepareNode) -> None:
    preparer = node.start()
    prepare(preparer, a_claim(a_result(WHOLE.name)))
    before = node.files()
    for path in node.cdi_dir.iterdir():
        path.unlink()
    assert preparer.find_prepared(a_ref()) is not None
    assert node.files() == before


def test_a_device_that_is_gone_stops_only_its_own_claim_from_being_restored(node: PrepareNode) -> None:
    other = a_ref("uid-2", "claim-2")
    preparer = node.start()
    prepare(preparer, a_claim(a_result(WHOLE.name)))
    prepare(preparer, a_claim(a_result(PART), ref=other), other)
    for path in node.cdi_dir.iterdir():
        path.unlink()
    node.backend.devices = (SPLIT,)
    ((ref, error),) = node.start().restore()
    assert ref.uid == "uid-1"
    assert f"claim default/claim-1: device {NODE}/{WHOLE.name}: not on this node any more" in str(error)
    assert node.resolve(f"uid-2-{PART}").device_nodes


def test_a_cdi_directory_that_somebody_removed_stops_nothing(node: PrepareNode) -> None:
    preparer = node.start()
    prepare(preparer, a_claim(a_result(WHOLE.name)))
    shutil.rmtree(node.cdi_dir)
    assert preparer.restore() == ()
    assert node.resolve(f"uid-1-{WHOLE.name}").device_nodes
    shutil.rmtree(node.cdi_dir)
    other = a_ref("uid-2", "claim-2")
    prepare(preparer, a_claim(a_result(PART), ref=other), other)
    assert node.resolve(f"uid-2-{PART}").device_nodes
    shutil.rmtree(node.cdi_dir)
    for ref in (a_ref(), other):
        preparer.unprepare(ref)
    assert node.files() == {}


def test_after_a_reboot_files_are_written_and_partitions_made_anew_though_they_survived(node: PrepareNode) -> None:
    prepare(node.start("boot-1"), a_claim(a_share(WHOLE.name, "share-1"), a_result(PART)))
    before = node.files()
    for path in (*node.cdi_dir.iterdir(), *(node.directory / "shim" / "uid-1").iterdir()):
        path.write_bytes(b"{}")
    node.backend.partitions.clear()
    assert node.start("boot-1").restore() == ()
    assert node.backend.partitions == set()
    assert node.start("boot-2").restore() == ()
    assert node.backend.partitions == {PART}
    assert node.files() == {
        name: data.replace(b"boot-1", b"boot-2") if name != "claims/uid-1.json" else node.files()[name]
        for name, data in before.items()
    }
    settled = node.files()
    assert node.start("boot-2").restore() == ()
    assert node.files() == settled


def test_asking_again_after_a_reboot_sets_up_before_it_answers(node: PrepareNode) -> None:
    prepare(node.start("boot-1"), a_claim(a_result(PART)))
    node.backend.partitions.clear()
    record = node.start("boot-2").find_prepared(a_ref())
    assert record is not None
    assert record.boot_id == "boot-2"
    assert node.backend.partitions == {PART}


def test_a_record_that_does_not_tell_its_boot_is_set_up_once(node: PrepareNode) -> None:
    prepare(node.start(), a_claim(a_result(PART)))
    node.backend.partitions.clear()
    assert node.start("boot-1").restore() == ()
    assert node.backend.partitions == {PART}
