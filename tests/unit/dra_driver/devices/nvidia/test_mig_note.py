import threading
from pathlib import Path

import pytest

from dra_driver.devices.nvidia.mig_note import MigNote, MigNotes
from dra_driver.errors import StateError


def test_a_note_is_there_until_it_is_removed(tmp_path: Path) -> None:
    notes = MigNotes(tmp_path / "mig", boot_id="one")
    with notes.locked("gpu-1"):
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


def test_there_are_no_notes_while_the_boot_is_not_known(tmp_path: Path) -> None:
    MigNotes(tmp_path, boot_id="one").write("gpu-1")
    notes = MigNotes(tmp_path, boot_id=None)
    assert notes.find("gpu-1") is None
    with pytest.raises(StateError, match="boot id: unknown, want it readable"):
        notes.write("gpu-2")
    assert [path.name for path in tmp_path.glob("*.json")] == ["gpu-1.json"]


def test_what_is_left_is_found_by_the_beginning_of_its_name(tmp_path: Path) -> None:
    notes = MigNotes(tmp_path, boot_id="one")
    for name in ("gpu-1", "gpu-1-a", "gpu-1-b", "gpu-2-a"):
        notes.write(name, "MIG-1")
    for name in ("gpu-1-a", "gpu-2-a", "gpu-1-nothing"):
        notes.leave(name)
    assert notes.find_left("gpu-1-") == {"gpu-1-a"}
    assert notes.find("gpu-1-a") == MigNote(boot="one", uuid="MIG-1", left=True)
    notes.write("gpu-1-a", "MIG-1")
    assert notes.find_left("gpu-1-") == frozenset()
    assert MigNotes(tmp_path / "gone", boot_id="one").find_left("gpu-1-") == frozenset()


def test_what_is_noted_of_a_gpu_ends_with_its_binding(tmp_path: Path) -> None:
    notes = MigNotes(tmp_path, boot_id="one")
    notes.renew("gpu-1", 7)
    for name in ("gpu-1", "gpu-1-a", "gpu-10-a", "gpu-2"):
        notes.write(name)
    for binding in (7, None):
        notes.renew("gpu-1", binding)
        assert notes.is_current("gpu-1", binding)
        assert notes.find("gpu-1-a") is not None
    assert not notes.is_current("gpu-1", 8)
    notes.renew("gpu-1", 8)
    assert [name for name in ("gpu-1", "gpu-1-a", "gpu-10-a", "gpu-2") if notes.find(name)] == ["gpu-10-a", "gpu-2"]
    assert notes.is_current("gpu-1", 8)
    assert MigNotes(tmp_path, boot_id="two").is_current("gpu-1", 9)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff", b"[]", b'{"boot": 1}', b'{"uuid": "MIG-1"}', b'{"deep": ' + b"[" * 100_000]
)
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
    with pytest.raises(StateError, match=wanted), notes.locked("gpu-1"):
        pass


def test_one_at_a_time_holds_the_lock(tmp_path: Path) -> None:
    order: list[str] = []
    first, second = MigNotes(tmp_path, boot_id="one"), MigNotes(tmp_path, boot_id="one")

    def work() -> None:
        with second.locked("gpu-1"):
            order.append("second")

    with first.locked("gpu-1"):
        thread = threading.Thread(target=work)
        thread.start()
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_the_lock_of_one_gpu_holds_up_no_other(tmp_path: Path) -> None:
    notes = MigNotes(tmp_path, boot_id="one")
    with notes.locked("gpu-1"), notes.locked("gpu-2"):
        notes.write("gpu-2")
    assert notes.find("gpu-2") is not None
