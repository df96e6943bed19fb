import threading
from pathlib import Path

import pytest

from dra_driver.devices.nvidia.mig_note import MigNote, MigNotes
from dra_driver.errors import StateError


def test_a_note_is_there_until_it_is_removed(tmp_path: Path) -> None:
    notes = MigNotes(tmp_path / "mig", boot_id="one")
    with notes.locked():
        assert notes.find("gpu-1") is None
        notes.write("gpu-1")
        notes.write("gpu-1-1g-10gb-0", "MIG-1")
    again = MigNotes(tmp_path / "mig", boot_id="one")
    assert again.find("gpu-1") == MigNote(boot="one")
    assert again.find("gpu-1-1g-10gb-0") == MigNote(boot="one", uuid="MIG-1")
    for _ in range(2):
        again.remove("gpu-1")
    assert notes.find("gpu-1") is None


def test_a_note_of_another_boot_is_none(tmp_path: Path) -> None:
    MigNotes(tmp_path, boot_id="one").write("gpu-1")
    assert MigNotes(tmp_path, boot_id="two").find("gpu-1") is None


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[]", b'{"boot": 1}', b'{"uuid": "MIG-1"}'])
def test_a_note_that_cannot_be_understood_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "gpu-1.json").write_bytes(content)
    assert MigNotes(tmp_path, boot_id="one").find("gpu-1") is None


def test_a_directory_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "mig").write_text("a file")
    notes = MigNotes(tmp_path / "mig", boot_id="one")
    wanted = str(tmp_path / "mig")
    with pytest.raises(StateError, match=wanted):
        notes.find("gpu-1")
    with pytest.raises(StateError, match=wanted):
        notes.write("gpu-1")
    with pytest.raises(StateError, match=wanted), notes.locked():
        pass


def test_one_at_a_time_holds_the_lock(tmp_path: Path) -> None:
    order: list[str] = []
    first, second = MigNotes(tmp_path, boot_id="one"), MigNotes(tmp_path, boot_id="one")

    def work() -> None:
        with second.locked():
            order.append("second")

    with first.locked():
        thread = threading.Thread(target=work)
        thread.start()
        order.append("first")
    thread.join()
    assert order == ["first", "second"]
