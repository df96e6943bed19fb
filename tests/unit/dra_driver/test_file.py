import fcntl
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from dra_driver.errors import StateError
from dra_driver.file import ensure_directory, hold_directory, remove_directory, remove_file, write_file


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_a_file_is_replaced_and_nothing_else_is_left(tmp_path: Path) -> None:
    for data in (b"old, and longer", b"new"):
        write_file(tmp_path / "file", data)
        assert (tmp_path / "file").read_bytes() == data
        assert names(tmp_path) == ["file"]


def test_the_permissions_are_as_wanted_whatever_the_umask(tmp_path: Path) -> None:
    old = os.umask(0o077)
    try:
        write_file(tmp_path / "file", b"")
        write_file(tmp_path / "secret", b"", mode=0o600)
    finally:
        os.umask(old)
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("file", "secret")]
    assert modes == [0o644, 0o600]


def test_what_a_killed_writer_left_is_in_nobodys_way(tmp_path: Path) -> None:
    (tmp_path / ".file.partial").write_bytes(b"half, and longer than the whole")
    write_file(tmp_path / "file", b"whole")
    assert (tmp_path / "file").read_bytes() == b"whole"
    assert names(tmp_path) == ["file"]


def test_what_a_killed_writer_left_goes_with_the_file(tmp_path: Path) -> None:
    for files in (["file", ".file.partial"], [".file.partial"]):
        for name in files:
            (tmp_path / name).touch()
        remove_file(tmp_path / "file")
        assert names(tmp_path) == []
    remove_file(tmp_path / "gone" / "file")


def test_an_error_names_the_path_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(StateError, match="taken"):
        write_file(tmp_path / "taken", b"data")
    assert names(tmp_path) == ["taken"]
    with pytest.raises(StateError, match=r"gone/\.file\.partial"):
        write_file(tmp_path / "gone" / "file", b"data")


def test_removing_what_is_gone_is_success(tmp_path: Path) -> None:
    write_file(tmp_path / "file", b"")
    ensure_directory(tmp_path / "folder")
    write_file(tmp_path / "folder" / "file", b"")
    for _ in range(2):
        remove_file(tmp_path / "file")
        remove_directory(tmp_path / "folder")
        assert names(tmp_path) == []


def test_a_directory_that_is_there_is_left_as_it_is(tmp_path: Path) -> None:
    write_file(tmp_path / "file", b"data")
    ensure_directory(tmp_path)
    ensure_directory(tmp_path / "deep" / "down")
    assert names(tmp_path) == ["deep", "file"]


def test_a_file_in_the_place_of_a_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StateError, match=str(tmp_path / "file")):
        ensure_directory(tmp_path / "file")


@pytest.mark.parametrize(
    "make",
    [
        Path.touch,
        lambda path: (path / "deep" / "down").mkdir(parents=True),
        lambda path: path.symlink_to("others"),
        lambda path: path.symlink_to("nowhere"),
        lambda path: (path.mkdir(), (path / "link").symlink_to("../others")),
    ],
    ids=["file", "folders", "link", "dangling link", "link inside"],
)
def test_whatever_stands_in_the_place_of_a_directory_is_removed_and_no_link_is_followed(
    tmp_path: Path, make: Callable[[Path], object]
) -> None:
    write_file(tmp_path / "kept", b"")
    (tmp_path / "others").mkdir()
    (tmp_path / "others" / "precious").touch()
    make(tmp_path / "folder")
    remove_directory(tmp_path / "folder")
    assert names(tmp_path) == ["kept", "others"]
    assert names(tmp_path / "others") == ["precious"]


def test_a_directory_is_held_alone_and_only_until_the_block_ends(tmp_path: Path) -> None:
    with hold_directory(tmp_path):
        assert not lock_at_once(tmp_path / ".lock")
    assert lock_at_once(tmp_path / ".lock")


def test_a_directory_that_cannot_be_held_is_named(tmp_path: Path) -> None:
    (tmp_path / "state" / ".lock").mkdir(parents=True)
    with pytest.raises(StateError, match=r"state/\.lock: "), hold_directory(tmp_path / "state"):
        pass


def lock_at_once(path: Path) -> bool:
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
