"""Two plugin processes work on the state of one node at once, as during an update."""

import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.preparing import open_backend
from tests.support.wait import until

ROOT = Path(__file__).parents[2]


class Worker:
    """A process of `tests.support.preparing`."""

    def __init__(self, directory: Path, *options: str) -> None:
        command = [sys.executable, "-m", "tests.support.preparing", str(directory), *options]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, cwd=ROOT
        )
        assert self.hear() == "ready"

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def hear(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def ask(self, line: str) -> str:
        self.tell(line)
        return self.hear()

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


class Node:
    def __init__(self, directory: Path, processes: ExitStack) -> None:
        self.directory = directory
        self._processes = processes
        first, second = open_backend(directory).read_inventory().devices
        self.whole = first.name
        self.small, self.wide = (second.partition_name(each) for each in second.partitions[:2])

    def start(self, *options: str) -> Worker:
        worker = Worker(self.directory, *options)
        self._processes.callback(worker.close)
        return worker

    def files(self) -> list[str]:
        folders = (self.directory / name for name in ("claims", "cdi", "shim", "simulated/partitions"))
        return [path.name for folder in folders for path in folder.glob("**/*") if path.name != ".lock"]


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with ExitStack() as processes:
        yield Node(tmp_path, processes)


def test_of_two_processes_at_once_exactly_one_gets_the_device(node: Node) -> None:
    workers = (node.start(), node.start())
    for number in range(40):
        wanted = (node.small, node.wide) if number % 2 else (node.whole, node.whole)
        for index, worker in enumerate(workers):
            worker.tell(f"prepare uid-{number}-{index} {wanted[index]}")
        answers = [worker.hear() for worker in workers]
        (winner,) = [index for index, answer in enumerate(answers) if answer == "done"]
        (refusal,) = [answer for answer in answers if answer != "done"]
        assert f"held by claim default/claim-uid-{number}-{winner} (UID uid-{number}-{winner}" in refusal
        assert workers[number // 2 % 2].ask(f"unprepare uid-{number}-{winner}") == "done"
        assert node.files() == []


def test_what_one_process_prepared_the_other_unprepares_and_gives_away(node: Node) -> None:
    first, second = node.start(), node.start()
    assert first.ask(f"prepare uid-1 {node.small}") == "done"
    assert second.ask(f"prepare uid-1 {node.small}") == "done"
    assert "held by claim default/claim-uid-1" in second.ask(f"prepare uid-2 {node.wide}")
    assert second.ask("unprepare uid-1") == "done"
    assert second.ask(f"prepare uid-2 {node.wide}") == "done"
    assert "held by claim default/claim-uid-2" in first.ask(f"prepare uid-1 {node.small}")
    assert first.ask("unprepare uid-2") == "done"
    assert node.files() == []
    assert first.ask(f"prepare uid-1 {node.small}") == "done"


@pytest.mark.parametrize("ending", ["finishes", "is killed"])
def test_a_prepare_of_one_process_leaves_nothing_after_unprepare_in_another(node: Node, ending: str) -> None:
    slow, other = node.start("slow"), node.start()
    slow.tell(f"prepare uid-1 {node.small}")
    assert slow.hear() == "applying"
    assert "held by" in other.ask(f"prepare uid-2 {node.wide}")
    other.tell("unprepare uid-1")
    if ending == "finishes":
        slow.tell("go on")
        assert slow.hear() == "done"
    else:
        slow.process.kill()
    assert other.hear() == "done"
    assert node.files() == []
    assert other.ask(f"prepare uid-2 {node.wide}") == "done"


def test_a_sweep_takes_nothing_from_a_claim_that_another_process_prepares(node: Node) -> None:
    slow, other = node.start("slow"), node.start()
    slow.tell(f"prepare uid-1 {node.whole} {node.small}")
    assert slow.hear() == "applying"
    for _ in range(3):
        assert other.ask("restore") == "done"
    slow.tell("go on")
    assert slow.hear() == "done"
    before = node.files()
    for _ in range(3):
        assert other.ask("restore") == "done"
    assert sorted(node.files()) == sorted(before)
    assert any("uid-1" in name for name in before)


async def test_processes_that_are_killed_at_any_time_neither_lose_nor_double_a_device(node: Node) -> None:
    chance = random.Random(7)
    workers = [node.start(), node.start()]
    for number in range(12):
        victim = number % 2
        workers[victim].tell(f"prepare uid-{number} {node.wide}")
        workers[1 - victim].tell(f"prepare other-{number} {node.small}")
        if chance.random() < 0.5:
            await until(lambda: bool(node.files()))
        workers[victim].process.send_signal(signal.SIGKILL)
        survivor = workers[1 - victim]
        answer = survivor.hear()
        held = [name for name in node.files() if name.endswith(("wide-0", "wide-0.json", "small-0", "small-0.json"))]
        assert answer == "done" or "held by claim default/claim-uid-" in answer
        assert len({name.partition(".")[0] for name in held}) <= 1
        for uid in (f"uid-{number}", f"other-{number}"):
            assert survivor.ask(f"unprepare {uid}") == "done"
        assert [name for name in node.files() if not name.endswith((".partial", ".tmp"))] == []
        assert survivor.ask("restore") == "done"
        assert node.files() == []
        workers[victim] = node.start()
