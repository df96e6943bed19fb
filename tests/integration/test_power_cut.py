"""What functions that write state have on the disk when they return: a process calls them, then its cache is lost."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dra_driver.devices.nvidia.mig_note import MigNotes
from kubeletplugin.health.store import read_memories
from tests.crash.durability import Cut, Disk, Entry, Survivors
from tests.crash.journal import Journal, write_survivors

ROOT = Path(__file__).parents[2]

PROCESS = """
import os
import sys
from pathlib import Path

from dra_driver.file import ensure_directory, remove_directory, remove_file, sync_names, sync_way, write_file
from tests.crash.effect import Effects
from tests.crash.journal import Journal

disk = Path(sys.argv[1])
Effects(disk, journal=Journal(Path(sys.argv[2]), disk)).install()
"""


def journal_of(tmp_path: Path, code: str) -> list[Entry]:
    disk = tmp_path / "disk"
    journal = Journal(tmp_path / "journal", disk)
    (disk / "old").mkdir(parents=True)
    (disk / "old" / "file").write_bytes(b"old")
    journal.begin()
    subprocess.run((sys.executable, "-c", PROCESS + code, disk, journal.path), cwd=ROOT, check=True)
    return journal.read()


def power_cut_after(tmp_path: Path, code: str) -> Survivors:
    return Disk(journal_of(tmp_path, code)).cut(Cut.NOTHING)


@pytest.mark.parametrize(
    "code",
    [
        "ensure_directory(new); write_file(new / 'file', b'new')",
        "os.makedirs(new); sync_way(new); write_file(new / 'file', b'new')",
        "ensure_directory(new); write_file(new / 'x', b'new'); os.rename(new / 'x', new / 'file'); sync_names(new)",
    ],
    ids=["made and written", "made by another, who was killed", "renamed by another, who was killed"],
)
def test_what_is_written_in_a_new_directory_outlives_a_power_cut(tmp_path: Path, code: str) -> None:
    left = power_cut_after(tmp_path, f"new = disk / 'a' / 'b'; {code}")
    assert left == {"old": None, "old/file": b"old", "a": None, "a/b": None, "a/b/file": b"new"}


def test_what_a_plugin_reads_at_its_start_outlives_a_power_cut(tmp_path: Path) -> None:
    """Who made the directory, and renamed a record, may have been killed before either was synced."""
    code = """
from kubeletplugin.prepare.checkpoint import Checkpoint
claims = disk / "new" / "claims"
os.makedirs(claims)
write_file(claims / "x", b"{")
os.rename(claims / "x", claims / "uid-1.json")
Checkpoint(claims).read_all()
"""
    assert "new/claims/uid-1.json" in power_cut_after(tmp_path, code)


@pytest.mark.parametrize(
    ("code", "left"),
    [
        ("write_file(disk / 'old' / 'file', b'new')", {"old": None, "old/file": b"new"}),
        ("remove_file(disk / 'old' / 'file')", {"old": None}),
        ("remove_directory(disk / 'old')", {}),
    ],
    ids=["replaced", "removed", "removed with its directory"],
)
def test_what_is_replaced_or_removed_is_not_what_it_was(tmp_path: Path, code: str, left: Survivors) -> None:
    assert power_cut_after(tmp_path, code) == left


def test_what_is_not_synced_is_lost(tmp_path: Path) -> None:
    """Else nothing here could fail."""
    code = "(disk / 'old' / 'file').write_bytes(b'new'); (disk / 'new').mkdir(); (disk / 'new' / 'file').touch()"
    assert power_cut_after(tmp_path, code) == {"old": None, "old/file": b"old"}


VERDICTS = """
from dra_driver.devices.model import DeviceName, Health
from kubeletplugin.health.store import write_memories
from kubeletplugin.health.verdict import Memory

ill = {DeviceName("gpu-0"): Memory(health=Health(reason="xid-79", message="fell off the bus"))}
write_memories(disk / "old" / "health.json", {}, "one")
(disk / "between").mkdir()
write_memories(disk / "old" / "health.json", ill, "two")
"""

NOTES = """
from dra_driver.devices.nvidia.mig_note import MigNotes

notes = MigNotes(disk / "old" / "nvidia", boot_id="boot")
with notes.locked("gpu-1"):
    notes.write("partition", "one")
(disk / "between").mkdir()
with notes.locked("gpu-1"):
    notes.write("partition", "two")
"""


def read_verdicts(disk: Path) -> str | None:
    return read_memories(disk / "old" / "health.json")[1] or None


def read_note(disk: Path) -> str | None:
    note = MigNotes(disk / "old" / "nvidia", boot_id="boot").find("partition")
    return note.uuid if note is not None else None


@pytest.mark.parametrize(
    ("code", "read"), [(VERDICTS, read_verdicts), (NOTES, read_note)], ids=["health verdicts", "MIG notes"]
)
def test_a_state_file_is_as_before_or_as_after_whenever_the_power_is_cut(
    tmp_path: Path, code: str, read: Callable[[Path], str | None]
) -> None:
    journal = journal_of(tmp_path, code)
    between = next(number for number, entry in enumerate(journal) if entry.path == "between")
    for number in range(len(journal) + 1):
        allowed = {None, "one"} if number < between else {"one", "two"} if number < len(journal) else {"two"}
        for how, seed in (*((how, "") for how in Cut), *((Cut.SOME, str(seed)) for seed in range(4))):
            disk = tmp_path / f"{number}, {how}, {seed}"
            disk.mkdir()
            write_survivors(disk, Disk(journal[:number]).cut(how, seed=seed))
            assert read(disk) in allowed, disk.name
