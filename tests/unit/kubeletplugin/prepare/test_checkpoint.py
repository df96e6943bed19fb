import os
from collections.abc import Callable
from pathlib import Path

import pytest

from dra_driver.errors import StateError
from kubeletplugin.prepare.checkpoint import Checkpoint
from kubeletplugin.prepare.record import ClaimRecord, ClaimState


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


def test_a_file_in_the_place_of_the_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "claims").write_text("")
    with pytest.raises(StateError, match=str(tmp_path / "claims")):
        Checkpoint(tmp_path / "claims").read_all()
