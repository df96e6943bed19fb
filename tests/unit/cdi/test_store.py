import errno
import os
import stat
from pathlib import Path

import pytest

from cdi import (
    ContainerEdits,
    InvalidNameError,
    InvalidSpecError,
    OsFileSystem,
    SpecStore,
    StoreError,
    encode_spec,
)
from tests.support.cdi_filesystem import StoppingFileSystem
from tests.support.cdi_spec import a_device, a_full_spec, a_spec


class FailingFileSystem(OsFileSystem):
    """Refuses to create, read and list, for one reason."""

    def __init__(self, number: int) -> None:
        self._error = OSError(number, os.strerror(number))

    def create(self, path: Path) -> int:
        raise self._error

    def read(self, path: Path) -> bytes:
        raise self._error

    def list_names(self, path: Path) -> list[str]:
        raise self._error


def nothing() -> None:
    pass


def file_names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_what_is_written_can_be_read(tmp_path: Path) -> None:
    store = SpecStore(tmp_path)
    assert store.write_spec("vendor.com-gpu_1", a_full_spec()) == tmp_path / "vendor.com-gpu_1.json"
    assert store.read_spec("vendor.com-gpu_1") == a_full_spec()
    assert (tmp_path / "vendor.com-gpu_1.json").read_bytes() == encode_spec(a_full_spec())
    assert file_names(tmp_path) == ["vendor.com-gpu_1.json"]


def test_everybody_may_read_a_spec_whatever_the_umask(tmp_path: Path) -> None:
    old = os.umask(0o077)
    try:
        path = SpecStore(tmp_path).write_spec("claim", a_spec())
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_a_spec_takes_the_place_of_an_older_one(tmp_path: Path) -> None:
    store = SpecStore(tmp_path)
    store.write_spec("claim", a_spec())
    store.write_spec("claim", a_full_spec())
    assert store.read_spec("claim") == a_full_spec()


def test_writing_the_same_again_leaves_the_file_alone(tmp_path: Path) -> None:
    before = SpecStore(tmp_path).write_spec("claim", a_spec()).stat()
    files = StoppingFileSystem(99, nothing)
    after = SpecStore(tmp_path, files).write_spec("claim", a_spec(edits=ContainerEdits())).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert files.calls == ["read", "open_directory", "sync", "close"]


def test_a_spec_is_synced_before_it_gets_its_name_and_the_directory_after(tmp_path: Path) -> None:
    files = StoppingFileSystem(99, nothing)
    SpecStore(tmp_path, files).write_spec("claim", a_spec())
    assert [call for call in files.calls if call != "write"] == [
        "read",
        "create",
        "chmod",
        "sync",
        "close",
        "replace",
        "open_directory",
        "sync",
        "close",
    ]


def test_an_invalid_spec_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidSpecError, match=r"spec 'claim': devices\[0\]\.containerEdits: empty"):
        SpecStore(tmp_path).write_spec("claim", a_spec(a_device("x", ContainerEdits())))
    assert file_names(tmp_path) == []


def test_a_removed_spec_is_gone_and_removing_it_again_is_no_error(tmp_path: Path) -> None:
    store = SpecStore(tmp_path)
    store.write_spec("claim", a_spec())
    assert store.remove_spec("claim") is True
    assert store.read_spec("claim") is None
    assert store.remove_spec("claim") is False


def test_removal_syncs_the_directory_even_if_the_file_is_gone_already(tmp_path: Path) -> None:
    files = StoppingFileSystem(99, nothing)
    SpecStore(tmp_path, files).remove_spec("claim")
    assert files.calls == ["remove", "open_directory", "sync", "close"]


def test_without_the_directory_there_is_no_spec_to_remove_or_read(tmp_path: Path) -> None:
    store = SpecStore(tmp_path / "gone")
    assert store.remove_spec("claim") is False
    assert store.read_spec("claim") is None


def test_names_are_sorted_and_only_those_of_specs_with_the_prefix(tmp_path: Path) -> None:
    store = SpecStore(tmp_path)
    for name in ("b-2", "b-1", "a-1"):
        store.write_spec(name, a_spec())
    for file in (".b-3.json", "b-4.yaml", "b-5", "b-6.json.json", ".b-7.json.0123456789abcdef.tmp"):
        (tmp_path / file).touch()
    assert store.read_names() == ("a-1", "b-1", "b-2")
    assert store.read_names("b-") == ("b-1", "b-2")


def test_only_leftovers_with_the_prefix_are_removed(tmp_path: Path) -> None:
    leftovers = (".a-1.json.0123456789abcdef.tmp", ".a-2.json.0123456789abcdef.tmp", ".b-1.json.0123456789abcdef.tmp")
    others = (".a-1.json", "a-1.json.0123456789abcdef.tmp", ".a-1.json.tmp", "spec.123.tmp")
    for file in (*leftovers, *others):
        (tmp_path / file).touch()
    assert SpecStore(tmp_path).remove_leftovers("a-") == leftovers[:2]
    assert SpecStore(tmp_path).remove_leftovers() == leftovers[2:]
    assert file_names(tmp_path) == sorted(others)


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", ".hidden", "a/b", "/a", "../a", "a\0", "a\n", "a b", "ö", "-a", "a.json", "a.yaml", "x" * 229],
    ids=repr,
)
def test_a_name_that_is_no_safe_file_name_is_refused(tmp_path: Path, name: str) -> None:
    store = SpecStore(tmp_path)
    for call in (
        lambda: store.write_spec(name, a_spec()),
        lambda: store.read_spec(name),
        lambda: store.remove_spec(name),
    ):
        with pytest.raises(InvalidNameError, match="spec name"):
            call()
    assert file_names(tmp_path) == []


def test_the_longest_name_can_be_written(tmp_path: Path) -> None:
    name = "x" * 228
    SpecStore(tmp_path).write_spec(name, a_spec())
    assert SpecStore(tmp_path).read_names() == (name,)


def test_a_damaged_file_is_reported_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "claim.json").write_bytes(b"")
    with pytest.raises(InvalidSpecError) as caught:
        SpecStore(tmp_path).read_spec("claim")
    assert str(caught.value) == f"{tmp_path}/claim.json: empty, want a CDI spec"


def test_a_fifo_in_the_place_of_a_spec_keeps_nobody_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "claim.json")
    with pytest.raises(InvalidSpecError, match="empty"):
        SpecStore(tmp_path).read_spec("claim")


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (errno.EACCES, "no permission, want to run as a user who may use it"),
        (errno.EROFS, "the file system is read-only, want a writable one"),
        (errno.ENOSPC, "no space left on the file system, want some free"),
        (errno.EDQUOT, "the disk quota is used up, want some free"),
        (errno.EMFILE, "too many open files"),
    ],
    ids=errno.errorcode.get,
)
def test_a_reason_of_the_system_is_said_plainly(tmp_path: Path, number: int, text: str) -> None:
    store = SpecStore(tmp_path, FailingFileSystem(number))
    for path, call in (
        (tmp_path / "claim.json", lambda: store.write_spec("claim", a_spec())),
        (tmp_path / "claim.json", lambda: store.read_spec("claim")),
        (tmp_path, store.read_names),
        (tmp_path, store.remove_leftovers),
    ):
        with pytest.raises(StoreError) as caught:
            call()
        assert str(caught.value) == f"{path}: {text}"
        assert caught.value.errno == number


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"gone/claim\.json: the directory is missing, want an existing one"):
        SpecStore(tmp_path / "gone").write_spec("claim", a_spec())
    with pytest.raises(StoreError, match="gone: the directory is missing, want an existing one"):
        SpecStore(tmp_path / "gone").read_names()


def test_a_file_in_the_place_of_the_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"file/claim\.json: a file stands in the place of the directory"):
        SpecStore(tmp_path / "file").write_spec("claim", a_spec())


def test_a_directory_in_the_place_of_the_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "claim.json").mkdir()
    with pytest.raises(StoreError, match="a directory stands in the place of the file"):
        SpecStore(tmp_path).write_spec("claim", a_spec())
