import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from dra_driver.errors import StateError
from kubeletplugin.prepare.lock import StateLocks

HOLDER = """
import sys
from pathlib import Path
from kubeletplugin.prepare.lock import StateLocks

with StateLocks(Path(sys.argv[1])).hold(sys.argv[2], shared=sys.argv[3] == "shared"):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def held_by_another_process(path: Path, key: str, *, shared: bool = False) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-c", HOLDER, str(path), key, "shared" if shared else "alone"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        yield process
        process.kill()


def test_another_process_is_kept_out_of_what_is_held_and_of_nothing_else(tmp_path: Path) -> None:
    locks = StateLocks(tmp_path / "lock")
    with held_by_another_process(tmp_path / "lock", "claim uid-1"):
        with locks.try_hold("claim uid-1") as held:
            assert not held
        with locks.try_hold("claim uid-2") as held:
            assert held


def test_what_a_killed_process_held_is_free(tmp_path: Path) -> None:
    locks = StateLocks(tmp_path / "lock")
    with ThreadPoolExecutor(1) as pool, held_by_another_process(tmp_path / "lock", "claim") as process:

        def wait() -> bool:
            with locks.hold("claim"):
                return True

        waiting = pool.submit(wait)
        assert not waiting.done()
        process.kill()
        assert waiting.result(10)


def test_what_a_stopped_process_holds_is_not_waited_for_without_end(tmp_path: Path) -> None:
    locks = StateLocks(tmp_path / "lock", patience_s=0.05)
    with held_by_another_process(tmp_path / "lock", "claim uid-1") as process:
        process.send_signal(signal.SIGSTOP)
        with (
            pytest.raises(StateError, match=r"lock: 'claim uid-1' locked by others for 0\.05 s, want "),
            locks.hold("claim uid-1"),
        ):
            pass
        process.kill()
        process.wait()
    with locks.hold("claim uid-1"):
        pass


def test_threads_of_one_process_keep_each_other_out(tmp_path: Path) -> None:
    locks = StateLocks(tmp_path / "lock")
    inside, most = 0, 0
    together = threading.Barrier(4)

    def work(_: int) -> None:
        nonlocal inside, most
        together.wait()
        for _ in range(100):
            with locks.hold("claim"):
                inside += 1
                most = max(most, inside)
                inside -= 1

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert (inside, most) == (0, 1)


def test_sharers_hold_together_and_keep_out_who_wants_to_be_alone(tmp_path: Path) -> None:
    locks = StateLocks(tmp_path / "lock")
    with (
        held_by_another_process(tmp_path / "lock", "owner", shared=True),
        locks.hold("owner", shared=True),
        locks.try_hold("owner") as held,
    ):
        assert not held


def test_a_lock_can_be_shared_while_it_is_held(tmp_path: Path) -> None:
    locks = StateLocks(tmp_path / "lock")
    with locks.hold("owner") as hold:
        hold.share()
        with locks.hold("owner", shared=True):
            pass
        with locks.try_hold("owner") as held:
            assert not held


def test_a_lock_file_that_somebody_removed_is_not_used_any_more(tmp_path: Path) -> None:
    locks, other = StateLocks(tmp_path / "lock"), StateLocks(tmp_path / "lock")
    with locks.hold("claim"):
        pass
    (tmp_path / "lock").unlink()
    with locks.hold("claim"), other.try_hold("claim") as held:
        assert not held


def test_a_note_is_read_by_others_and_replaced_whole(tmp_path: Path) -> None:
    locks, other = StateLocks(tmp_path / "lock"), StateLocks(tmp_path / "lock")
    with locks.hold("owner") as hold:
        assert hold.read_note() == ""
        hold.write_note("a longer one")
        hold.write_note("short")
    with other.hold("owner", shared=True) as hold:
        assert hold.read_note() == "short"


def count_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_descriptors_are_used_again_and_given_back(tmp_path: Path) -> None:
    locks = StateLocks(tmp_path / "lock")
    before = count_descriptors()
    for number in range(50):
        with locks.hold(str(number)), locks.try_hold(str(number)) as held:
            assert not held
    assert count_descriptors() <= before + 2
    locks.close()
    assert count_descriptors() == before


def test_a_directory_that_is_gone_is_named(tmp_path: Path) -> None:
    locks = StateLocks(tmp_path / "gone" / "lock")
    with pytest.raises(StateError, match=f"{tmp_path}/gone/lock: no such file"), locks.hold("claim"):
        pass
