"""What is left on the disk when a write stops at any of its system calls."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cdi import Resolver, Spec, SpecStore, StoreError
from tests.support.cdi_filesystem import StoppingFileSystem
from tests.support.cdi_spec import a_full_spec, a_spec

ROOT = Path(__file__).parents[3]


def full_disk() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def nothing() -> None:
    pass


def calls_of_a_write(directory: Path) -> list[str]:
    files = StoppingFileSystem(-1, nothing)
    SpecStore(directory, files).write_spec("claim", a_full_spec())
    return files.calls


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def other_files(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir() if path.name != "claim.json"]


@pytest.fixture(params=[None, a_spec()], ids=["new", "over an older one"])
def older(request: pytest.FixtureRequest) -> Spec | None:
    spec: Spec | None = request.param
    return spec


def test_a_failed_call_leaves_the_old_or_the_new_spec_and_no_temporary_file(tmp_path: Path, older: Spec | None) -> None:
    calls = calls_of_a_write(tmp_path)
    for at in range(len(calls)):
        directory = tmp_path / str(at)
        directory.mkdir()
        if older is not None:
            SpecStore(directory).write_spec("claim", older)
        descriptors = open_descriptors()
        with pytest.raises(StoreError, match="no space left"):
            SpecStore(directory, StoppingFileSystem(at, full_disk)).write_spec("claim", a_full_spec())
        renamed = at > calls.index("replace")
        assert SpecStore(directory).read_spec("claim") == (a_full_spec() if renamed else older)
        assert other_files(directory) == []
        assert open_descriptors() == descriptors


def test_a_write_after_a_failed_one_succeeds(tmp_path: Path) -> None:
    for at in range(len(calls_of_a_write(tmp_path))):
        directory = tmp_path / str(at)
        directory.mkdir()
        with pytest.raises(StoreError):
            SpecStore(directory, StoppingFileSystem(at, full_disk)).write_spec("claim", a_full_spec())
        SpecStore(directory).write_spec("claim", a_full_spec())
        assert SpecStore(directory).read_spec("claim") == a_full_spec()


def test_a_killed_writer_leaves_the_old_or_the_new_spec_and_at_most_a_leftover(tmp_path: Path) -> None:
    (tmp_path / "count").mkdir()
    calls = calls_of_a_write(tmp_path / "count")
    first_write = calls.index("write")
    for at in [0, 1, first_write + 1, *range(calls.index("chmod"), len(calls))]:
        directory = tmp_path / str(at)
        directory.mkdir()
        SpecStore(directory).write_spec("claim", a_spec())
        died = subprocess.run(
            [sys.executable, "-m", "tests.support.cdi_filesystem", directory, str(at)], cwd=ROOT, check=False
        )
        assert died.returncode == -signal.SIGKILL
        store = SpecStore(directory)
        assert store.read_spec("claim") == (a_full_spec() if at > calls.index("replace") else a_spec())
        assert Resolver([directory]).read_inventory().faults == ()
        left = store.remove_leftovers("claim")
        assert len(left) == (1 if calls.index("create") < at <= calls.index("replace") else 0)
        assert other_files(directory) == []


def test_a_leftover_that_cannot_be_removed_does_not_hide_the_reason(tmp_path: Path) -> None:
    class ReadOnlyAfterCreation(StoppingFileSystem):
        def remove(self, path: Path) -> None:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    with pytest.raises(StoreError, match="no space left"):
        SpecStore(tmp_path, ReadOnlyAfterCreation(3, full_disk)).write_spec("claim", a_spec())
    assert SpecStore(tmp_path).read_names() == ()
    assert len(SpecStore(tmp_path).remove_leftovers()) == 1
