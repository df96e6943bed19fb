"""What functions that write state have on the disk when they return: a process calls them, then its cache is lost."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.crash.durability import Cut, Disk, Survivors
from tests.crash.journal import Journal

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


def power_cut_after(tmp_path: Path, code: str) -> Survivors:
    disk = tmp_path / "disk"
    journal = Journal(tmp_path / "journal", disk)
    (disk / "old").mkdir(parents=True)
    (disk / "old" / "file").write_bytes(b"old")
    journal.begin()
    subprocess.run((sys.executable, "-c", PROCESS + code, disk, journal.path), cwd=ROOT, check=True)
    return Disk(journal.read()).cut(Cut.NOTHING)


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
