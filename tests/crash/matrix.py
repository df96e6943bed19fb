"""Every crash point of every scenario, followed by every recovery."""

import contextlib
import itertools
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.crash.effect import Point, points
from tests.crash.invariant import check_owned
from tests.crash.node import Node
from tests.crash.recovery import DEAD, STOPPED, Clean, Recovery, Trial
from tests.crash.scenario import JOBS, OPERATIONS, Scenario, build_scenarios
from tests.crash.server import Server
from tests.crash.session import Session


@dataclass(slots=True)
class Row:
    """What was tried of one operation."""

    operation: str
    subject: str
    points: int = 0
    states: int = 0
    trials: int = 0
    problems: list[str] = field(default_factory=list)


class Bench:
    """A node and an API server, each trial from the start."""

    def __init__(self, folder: Path) -> None:
        self.node = Node(folder)
        self.scenarios = build_scenarios(self.node)
        claims = [claim for each in self.scenarios for claim in (each.claim, each.rival)]
        self.server = Server(folder, claims)

    def reset(self) -> None:
        """Begin anew."""
        self.node.reset()
        self.server.reset()

    @contextlib.contextmanager
    def begun(self, scenario: Scenario, operation: str) -> Iterator[Session]:
        """Give a process on a new node that is about to do the operation."""
        self.reset()
        session = Session(self.node)
        try:
            session.start()
            if operation == "unprepare":
                answer = session.call("prepare", scenario.ref)
                assert isinstance(answer, list), answer
            yield session
        finally:
            session.close()

    def read_clean(self, scenario: Scenario) -> Clean:
        """Return how it looks where nobody dies."""
        with self.begun(scenario, "prepare") as session:
            return Clean(session.call("prepare", scenario.ref), self.node.look())


def run_claims(bench: Bench, scenario: Scenario, operation: str, *, is_full: bool = False) -> Row:
    """Try everything on one scenario.

    The process dies at every point. What follows is tried for each state of the disk that a death leaves: where two
    points leave the same, the same would follow. A process that is stopped instead still holds its locks, so there each
    point counts; unless `is_full`, what a second process does varies from point to point.
    """
    row = Row(operation, scenario.name)
    clean = bench.read_clean(scenario)
    with bench.begun(scenario, operation) as session:
        effects = session.record(operation, scenario.ref)
    every = points(effects)
    row.points = len(every)
    known = set()
    for point in every:
        with bench.begun(scenario, operation) as first:
            first.kill_at(operation, scenario.ref, point)
        if (state := bench.node.state()) in known:
            continue
        known.add(state)
        bench.node.save()
        for name, recovery in DEAD.items():
            bench.node.restore()
            _try(row, Trial(bench.node, scenario, operation, clean, first), _describe(effects, point), name, recovery)
    row.states = len(known)
    turns = itertools.cycle(STOPPED)
    for point in points(effects, signal.SIGSTOP):
        for name in STOPPED if is_full else [next(turns)]:
            with bench.begun(scenario, operation) as first:
                first.begin(operation, scenario.ref, point)
                first.child.stopped()
                where = _describe(effects, point)
                _try(row, Trial(bench.node, scenario, operation, clean, first), where, name, STOPPED[name])
    return row


def _try(row: Row, trial: Trial, where: str, name: str, recovery: Recovery) -> None:
    row.trials += 1
    found = [f"at once: {problem}" for problem in check_owned(trial.node.look())]
    try:
        found += recovery(trial)
    except Exception as error:  # noqa: BLE001 - a trial that cannot go on is a problem of its own
        found.append(f"{type(error).__name__}: {error}")
    row.problems += (f"{row.operation} {row.subject}, {where}, then {name}: {problem}" for problem in found)


def _describe(effects: list[str], point: Point) -> str:
    effect = effects[point.number] if point.number < len(effects) else "the answer"
    end = "killed" if point.signal == signal.SIGKILL else "stopped"
    return f"{end} {point.moment} {effect} (#{point.number})"


def run_all(folder: Path, chosen: list[int], *, is_full: bool) -> Iterator[Row]:
    """Yield what came of the jobs, which are numbered: each operation of each scenario."""
    bench = Bench(folder)
    try:
        jobs = [(scenario, operation) for scenario in bench.scenarios for operation in OPERATIONS]
        assert len(jobs) == JOBS
        for number in chosen:
            scenario, operation = jobs[number]
            yield run_claims(bench, scenario, operation, is_full=is_full)
    finally:
        bench.server.close()
