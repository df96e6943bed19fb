from pathlib import Path

import pytest

from dra_driver.devices.model import DeviceName
from dra_driver.devices.nvidia.xid_note import XidNote, XidNotes, plan_note

GPU = DeviceName("gpu-0123456789ab")
NOTE = XidNote(boot="boot-1", xids=(48,), binding=7)
WANTED = XidNote(boot="boot-1", xids=(48,), binding=7, wanted_reset=True)


@pytest.mark.parametrize(
    ("note", "boot", "binding", "wants_reset", "planned"),
    [
        pytest.param(NOTE, "boot-1", 7, False, NOTE, id="nothing happened"),
        pytest.param(NOTE, "boot-1", None, None, NOTE, id="nobody can tell"),
        pytest.param(NOTE, "boot-2", 7, False, None, id="booted"),
        pytest.param(NOTE, "boot-1", 8, False, None, id="taken on anew"),
        pytest.param(NOTE, "boot-1", 8, None, None, id="taken on anew, silent"),
        pytest.param(NOTE, "boot-1", 7, True, WANTED, id="wants a reset"),
        pytest.param(WANTED, "boot-1", 7, True, WANTED, id="still wants it"),
        pytest.param(WANTED, "boot-1", 7, None, WANTED, id="wanted it, silent"),
        pytest.param(WANTED, "boot-1", 7, False, None, id="was reset"),
        pytest.param(XidNote(boot="boot-1", xids=(48,)), "boot-1", 7, False, NOTE, id="first look"),
        pytest.param(NOTE, None, 7, False, NOTE, id="boot not known"),
        pytest.param(XidNote(boot=None, xids=(48,), binding=7), "boot-1", 7, False, NOTE, id="boot known again"),
    ],
)
def test_xids_count_until_the_gpu_was_reset(
    note: XidNote, boot: str, binding: int | None, wants_reset: bool | None, planned: XidNote | None
) -> None:
    assert plan_note(note, boot=boot, binding=binding, wants_reset=wants_reset) == planned


def notes_in(folder: Path, boot: str | None = "boot-1") -> XidNotes:
    return XidNotes(folder / "xid", boot_id=boot)


def test_nothing_is_made_while_there_is_nothing_to_note(tmp_path: Path) -> None:
    assert notes_in(tmp_path).read() == {}
    assert not list(tmp_path.iterdir())


def test_xids_are_kept_each_once_in_their_order_for_the_next_process(tmp_path: Path) -> None:
    notes = notes_in(tmp_path)
    for xid in (48, 45, 48):
        notes.add(GPU, xid)
    notes_in(tmp_path).add(GPU, 79)
    assert notes.read() == notes_in(tmp_path).read() == {GPU: XidNote(boot="boot-1", xids=(48, 45, 79))}


def test_xids_of_an_earlier_boot_do_not_mix_with_those_of_this_one(tmp_path: Path) -> None:
    notes_in(tmp_path).add(GPU, 48)
    notes = notes_in(tmp_path, "boot-2")
    assert notes.read() == {GPU: XidNote(boot="boot-1", xids=(48,))}
    notes.add(GPU, 79)
    assert notes.read() == {GPU: XidNote(boot="boot-2", xids=(79,))}


def test_xids_outlast_a_process_that_does_not_know_the_boot(tmp_path: Path) -> None:
    notes_in(tmp_path).add(GPU, 48)
    notes_in(tmp_path, None).add(GPU, 79)
    assert notes_in(tmp_path).read() == {GPU: XidNote(boot="boot-1", xids=(48, 79))}


def test_an_update_writes_what_is_planned_and_removes_what_is_over(tmp_path: Path) -> None:
    notes = notes_in(tmp_path)
    notes.add(GPU, 48)
    notes.update(GPU, lambda _: NOTE)
    assert notes.read() == {GPU: NOTE}
    notes.update(GPU, lambda _: None)
    assert notes.read() == {}


def test_what_cannot_be_written_counts_all_the_same_and_is_written_later(tmp_path: Path) -> None:
    (tmp_path / "xid").touch()
    notes = notes_in(tmp_path)
    notes.add(GPU, 48)
    notes.add(GPU, 79)
    assert notes.read() == {GPU: XidNote(boot="boot-1", xids=(48, 79))}
    (tmp_path / "xid").unlink()
    assert notes.read() == notes_in(tmp_path).read() == {GPU: XidNote(boot="boot-1", xids=(48, 79))}


def test_what_cannot_be_written_outlasts_a_look_at_the_gpu(tmp_path: Path) -> None:
    """On a disk that is full, say, the lock can be had, and nothing can be written."""
    notes = notes_in(tmp_path)
    in_the_way = tmp_path / "xid" / f".{GPU}.json.partial"
    in_the_way.mkdir(parents=True)
    notes.add(GPU, 48)
    notes.update(GPU, lambda _: NOTE)
    assert notes.read() == {GPU: XidNote(boot="boot-1", xids=(48,))}
    in_the_way.rmdir()
    notes.update(GPU, lambda _: NOTE)
    assert notes.read() == notes_in(tmp_path).read() == {GPU: NOTE}


def test_what_cannot_be_written_is_over_with_a_reset_like_all_else(tmp_path: Path) -> None:
    notes = notes_in(tmp_path)
    in_the_way = tmp_path / "xid" / f".{GPU}.json.partial"
    in_the_way.mkdir(parents=True)
    notes.add(GPU, 48)
    in_the_way.rmdir()
    notes.update(GPU, lambda _: None)
    assert notes.read() == {}


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b'{"boot":1}', b'{"a":' + b"[" * 100_000])
def test_a_note_that_cannot_be_read_is_as_none_and_written_anew(tmp_path: Path, content: bytes) -> None:
    notes = notes_in(tmp_path)
    notes.add(GPU, 48)
    (tmp_path / "xid" / f"{GPU}.json").write_bytes(content)
    assert notes.read() == {}
    notes.add(GPU, 79)
    assert notes.read() == {GPU: XidNote(boot="boot-1", xids=(79,))}


def test_a_note_that_is_a_directory_is_as_none(tmp_path: Path) -> None:
    (tmp_path / "xid" / f"{GPU}.json").mkdir(parents=True)
    notes = notes_in(tmp_path)
    assert notes.read() == {}
    notes.add(GPU, 48)
    assert notes.read() == {GPU: XidNote(boot="boot-1", xids=(48,))}
