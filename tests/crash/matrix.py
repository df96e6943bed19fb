"""Every crash point of every scenario, followed by every recovery."""

import itertools
import signal
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

from tests.crash.bench import Bench
from tests.crash.effect import points
from tests.crash.invariant import check_owned
from tests.crash.power import PowerCuts
from tests.crash.power import run_start as run_power_start
from tests.crash.publish import CHANGES, run_publish
from tests.crash.recovery import DEAD, STOPPED, Recovery, Trial, find_problems
from tests.crash.row import Row, describe
from tests.crash.scenario import OPERATIONS, POWER_SCENARIOS, SCENARIOS, Scenario
from tests.crash.start import STARTS, run_start

JOBS: Final = len(OPERATIONS) * (SCENARIOS + POWER_SCENARIOS) + len(STARTS) + len(CHANGES) + 1
"""How many there are: each operation of each scenario, starts, changes to publish; power cuts of most scenarios."""


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
            _try(row, Trial(bench.node, scenario, operation, clean), describe(effects, point), name, recovery)
    row.states = len(known)
    turns = itertools.cycle(STOPPED)
    for point in points(effects, signal.SIGSTOP):
        for name in STOPPED if is_full else [next(turns)]:
            with bench.begun(scenario, operation) as first:
                first.begin(operation, scenario.ref, point)
                first.child.stopped()
                where = describe(effects, point)
                _try(row, Trial(bench.node, scenario, operation, clean, first), where, name, STOPPED[name])
    return row


def _try(row: Row, trial: Trial, where: str, name: str, recovery: Recovery) -> None:
    row.trials += 1
    found = [f"at once: {problem}" for problem in check_owned(trial.node.look())]
    found += find_problems(trial, recovery)
    row.problems += (f"{row.operation} {row.subject}, {where}, then {name}: {problem}" for problem in found)


def run_all(folder: Path, chosen: Iterable[int], *, is_full: bool) -> Iterator[Row]:
    """Yield what came of the jobs, which are numbered."""
    bench = Bench(folder)
    try:
        jobs: list[Callable[[], Row]] = [
            *(
                partial(run_claims, bench, scenario, operation, is_full=is_full)
                for scenario in bench.scenarios
                for operation in OPERATIONS
            ),
            *(partial(run_start, bench, subject) for subject in STARTS),
            *(partial(run_publish, bench, subject) for subject in CHANGES),
            *(
                PowerCuts(bench, scenario, operation).run
                for scenario in bench.scenarios[:POWER_SCENARIOS]
                for operation in OPERATIONS
            ),
            partial(run_power_start, bench),
        ]
        assert len(jobs) == JOBS
        for number in chosen:
            yield jobs[number]()
    finally:
        bench.server.close()
