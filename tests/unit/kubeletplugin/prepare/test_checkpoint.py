import errno
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from dra_driver.errors import StateError
from kubeletplugin.prepare.checkpoint import LOCK_FILE, Checkpoint
from kubeletplugin.prepare.lock import claim_key
from kubeletplugin.prepare.record import ClaimRecord, ClaimState, PreparedDevice, encode_record
from tests.support.effect import refused_at, watched


def a_record(uid: str = "uid-1", state: ClaimState = ClaimState.COMPLETED) -> ClaimRecord:
    return ClaimRecord(namespace="default", name="claim-1", uid=uid, state=state)


def opened(directory: Path) -> Checkpoint:
    checkpoint = Checkpoint(directory)
    assert checkpoint.read_all() == ()
    return checkpoint


def test_what_is_written_is_there_after_a_restart(tmp_path: Path) -> None:
    checkpoint = opened(tmp_path)
    checkpoint.write(a_record("uid-1", ClaimState.STARTED))
    checkpoint.write(a_record("uid-1", ClaimState.COMPLETED))
    checkpoint.write(a_record("uid-2"))
    checkpoint.remove("uid-2")
    assert opened(tmp_path).list() == (a_record("uid-1"),)


def test_removing_what_is_not_there_is_success(tmp_path: Path) -> None:
    opened(tmp_path).remove("uid-9")


def test_a_damaged_record_is_kept_aside_and_hides_no_other(tmp_path: Path) -> None:
    opened(tmp_path).write(a_record("uid-1"))
    opened(tmp_path).write(a_record("uid-2"))
    (tmp_path / "uid-1.json").write_bytes(b"{")
    checkpoint = Checkpoint(tmp_path)
    (corrupt,) = checkpoint.read_all()
    assert corrupt.uid == "uid-1"
    assert corrupt.kept_as.read_bytes() == b"{"
    assert str(tmp_path / "uid-1.json") in corrupt.problem
    assert checkpoint.list() == (a_record("uid-2"),)
    assert Checkpoint(tmp_path).read_all() == ()


@pytest.mark.parametrize(
    "make",
    [Path.touch, Path.mkdir, lambda path: path.symlink_to("nowhere"), lambda path: path.symlink_to(path), os.mkfifo],
    ids=["empty", "directory", "dangling link", "link to itself", "FIFO"],
)
def test_whatever_stands_in_the_place_of_a_record_is_kept_aside(tmp_path: Path, make: Callable[[Path], None]) -> None:
    opened(tmp_path).write(a_record("uid-2"))
    make(tmp_path / "uid-1.json")
    checkpoint = Checkpoint(tmp_path)
    (corrupt,) = checkpoint.read_all()
    assert os.path.lexists(corrupt.kept_as)
    assert corrupt.problem.startswith(f"{tmp_path}/uid-1.json: ")
    assert checkpoint.list() == (a_record("uid-2"),)


def test_a_record_that_was_kept_is_not_overwritten_when_an_older_one_is_gone(tmp_path: Path) -> None:
    (tmp_path / "uid-1.json.corrupt-2").write_bytes(b"2")
    for content in (b"1", b"3"):
        (tmp_path / "uid-1.json").write_bytes(content)
        Checkpoint(tmp_path).read_all()
    assert {path.name[-1:]: path.read_bytes() for path in tmp_path.glob("uid-*")} == {"1": b"1", "2": b"2", "3": b"3"}


def test_each_damaged_record_of_a_claim_is_kept(tmp_path: Path) -> None:
    for content in (b"1", b"2"):
        (tmp_path / "uid-1.json").write_bytes(content)
        Checkpoint(tmp_path).read_all()
    assert sorted(path.read_bytes() for path in tmp_path.glob("*.corrupt-*")) == [b"1", b"2"]


def test_a_record_under_another_claims_name_is_damaged(tmp_path: Path) -> None:
    opened(tmp_path).write(a_record("uid-1"))
    (tmp_path / "uid-1.json").rename(tmp_path / "uid-3.json")
    (corrupt,) = Checkpoint(tmp_path).read_all()
    assert "record of claim UID 'uid-1', want 'uid-3'" in corrupt.problem


def test_a_write_that_was_cut_short_leaves_the_old_record(tmp_path: Path) -> None:
    opened(tmp_path).write(a_record("uid-1"))
    (tmp_path / ".uid-1.json.partial").write_bytes(b"half a rec")
    assert opened(tmp_path).list() == (a_record("uid-1"),)


def test_a_record_that_cannot_be_written_is_not_remembered(tmp_path: Path) -> None:
    checkpoint = opened(tmp_path / "claims")
    (tmp_path / "claims").rename(tmp_path / "moved")
    with pytest.raises(StateError, match="claims"):
        checkpoint.write(a_record("uid-1"))
    assert checkpoint.list() == ()


def test_a_record_that_a_power_cut_may_take_counts_as_started(tmp_path: Path) -> None:
    """One that was written but for the last sync was told to the kubelet when it asked again."""
    checkpoint = opened(tmp_path / "claims")
    with watched(tmp_path) as effects:
        checkpoint.write(a_record("uid-1"))
    with watched(tmp_path, refused_at(len(effects.seen) - 1, errno.EIO)), pytest.raises(StateError):
        checkpoint.write(a_record("uid-2"))
    assert checkpoint.list() == (a_record("uid-1"), a_record("uid-2", ClaimState.STARTED))
    assert opened(tmp_path / "claims").list() == (a_record("uid-1"), a_record("uid-2"))


def test_a_file_in_the_place_of_the_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "claims").write_text("")
    with pytest.raises(StateError, match=str(tmp_path / "claims")):
        Checkpoint(tmp_path / "claims").read_all()


def test_what_another_process_wrote_or_removed_is_seen(tmp_path: Path) -> None:
    first, second = opened(tmp_path), opened(tmp_path)
    first.write(a_record("uid-1"))
    with second.owned():
        assert second.list() == (a_record("uid-1"),)
    second.write(a_record("uid-2"))
    second.remove("uid-1")
    with first.owned():
        assert first.list() == (a_record("uid-2"),)


def test_a_process_that_is_alone_reads_the_directory_once(tmp_path: Path) -> None:
    checkpoint = opened(tmp_path)
    before = checkpoint.generation
    for number in range(10):
        checkpoint.write(a_record(f"uid-{number}"))
        checkpoint.remove(f"uid-{number}")
    assert checkpoint.generation == before


def test_a_lock_file_that_somebody_removed_is_a_reason_to_read_again(tmp_path: Path) -> None:
    checkpoint = opened(tmp_path)
    (tmp_path / LOCK_FILE).unlink()
    opened(tmp_path).write(a_record("uid-1"))
    with checkpoint.owned():
        assert checkpoint.find("uid-1") == a_record("uid-1")


def test_a_record_of_a_newer_version_stays_for_the_newer_driver(tmp_path: Path) -> None:
    newer = (Path(__file__).parent / "testdata" / "record_newer_version.json").read_bytes()
    (tmp_path / "uid-1.json").write_bytes(newer)
    for _ in range(2):
        checkpoint = Checkpoint(tmp_path)
        (corrupt,) = checkpoint.read_all()
        assert corrupt.kept_as == tmp_path / "uid-1.json"
        assert "version 2 is newer" in corrupt.problem
    assert checkpoint.find("uid-1") is None
    checkpoint.write(a_record("uid-1"))
    assert (tmp_path / "uid-1.json.corrupt-1").read_bytes() == newer
    assert opened(tmp_path).list() == (a_record("uid-1"),)


def test_a_record_of_a_newer_version_is_removed_with_its_claim(tmp_path: Path) -> None:
    (tmp_path / "uid-1.json").write_bytes(b'{"version":2}')
    checkpoint = Checkpoint(tmp_path)
    checkpoint.read_all()
    checkpoint.remove("uid-1")
    assert list(tmp_path.glob("uid-1*")) == []


def test_what_a_killed_writer_left_is_removed_unless_somebody_writes(tmp_path: Path) -> None:
    checkpoint = opened(tmp_path)
    for uid in ("uid-1", "uid-2"):
        (tmp_path / f".{uid}.json.partial").write_bytes(b"half")
    with checkpoint.locks.hold(claim_key("uid-2")):
        checkpoint.remove_leftovers()
    assert [path.name for path in tmp_path.glob("*.partial")] == [".uid-2.json.partial"]


def test_holders_are_found_by_whole_device(tmp_path: Path) -> None:
    checkpoint = opened(tmp_path)
    part = PreparedDevice(request="main", pool="node-a", device="gpu-1-small-0", parent="gpu-1")
    whole = PreparedDevice(request="main", pool="node-a", device="gpu-2")
    for uid, devices in (("uid-1", (part, whole)), ("uid-2", (whole,))):
        checkpoint.write(msgspec.structs.replace(a_record(uid), devices=devices))
    assert [record.uid for record in checkpoint.find_holders({"gpu-1"})] == ["uid-1"]
    assert [record.uid for record in checkpoint.find_holders(["gpu-1", "gpu-2"])] == ["uid-1", "uid-2"]
    checkpoint.write(a_record("uid-1"))
    assert [record.uid for record in checkpoint.find_holders(["gpu-1", "gpu-2"])] == ["uid-2"]
    checkpoint.remove("uid-2")
    assert checkpoint.find_holders(["gpu-1", "gpu-2"]) == ()


def test_what_lies_beside_records_and_is_nobodys_stops_nothing(tmp_path: Path) -> None:
    checkpoint = opened(tmp_path)
    checkpoint.write(a_record("uid-1"))
    (tmp_path / ".uid-2.json.partial").touch()
    (tmp_path / ".uid-3.json.partial" / "deep").mkdir(parents=True)
    foreign = tmp_path / os.fsdecode(b".\xff.json.partial")
    foreign.touch()
    checkpoint.remove_leftovers()
    assert sorted(tmp_path.iterdir()) == sorted([foreign, tmp_path / LOCK_FILE, tmp_path / "uid-1.json"])


def test_a_record_that_is_named_like_no_claim_is_kept_aside(tmp_path: Path) -> None:
    (tmp_path / "..x y.json").write_bytes(encode_record(a_record("..x y")))
    (corrupt,) = Checkpoint(tmp_path).read_all()
    assert "want the UID of a claim" in corrupt.problem
