"""`python -m tests.crash`: run the matrix in several processes, print what was tried, and fail if anything is wrong."""

import argparse
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

from benchmarks.argument import parse_count
from benchmarks.report import render_table
from tests.crash.child import warm_up
from tests.crash.matrix import JOBS, run_all
from tests.crash.row import Row

_TITLES = ("operation", "subject", "crash points", "states", "trials", "wrong")
_FROM_PARENT = "-"


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--full", action="store_true", help="every second process at every point")
    parser.add_argument(
        "--processes", type=parse_count, default=os.cpu_count() or 1, help="how many at once (default: one a CPU)"
    )
    parser.add_argument(
        "--jobs",
        default="",
        help=f"only these, by number from 0 to {JOBS - 1}, as in 0,3; they are printed as JSON lines",
    )
    options = parser.parse_args()
    if options.jobs == _FROM_PARENT:
        _work(map(int, sys.stdin), is_full=options.full)
    elif options.jobs:
        numbers = [int(text) for text in options.jobs.split(",") if text.isdecimal()]
        if len(numbers) < options.jobs.count(",") + 1 or max(numbers) >= JOBS:
            parser.error(f"argument --jobs: {options.jobs!r}, want numbers from 0 to {JOBS - 1}, as in 0,3")
        _work(numbers, is_full=options.full)
    else:
        sys.exit(_Gathering(options.processes, is_full=options.full).run())


def _work(jobs: Iterable[int], *, is_full: bool) -> None:
    warm_up()
    with tempfile.TemporaryDirectory(prefix="dra-") as folder:
        for row in run_all(Path(folder), jobs, is_full=is_full):
            sys.stdout.write(json.dumps(msgspec.to_builtins(row)) + "\n")
            sys.stdout.flush()


class _Gathering:
    """All jobs, given out one by one to as many processes as wanted."""

    def __init__(self, processes: int, *, is_full: bool) -> None:
        self._processes = processes
        self._command = [sys.executable, "-m", "tests.crash", "--jobs", _FROM_PARENT, *(["--full"] if is_full else [])]
        self._left: queue.SimpleQueue[int] = queue.SimpleQueue()
        for number in range(JOBS):
            self._left.put(number)
        self._rows: list[Row] = []
        self._ended_early: list[int] = []
        self._started = time.monotonic()

    def run(self) -> int:
        """Return the status to exit with."""
        threads = [threading.Thread(target=self._give_out) for _ in range(self._processes)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        rows = sorted(self._rows, key=lambda row: (row.operation, row.subject))
        cells = [(row.operation, row.subject, row.points, row.states, row.trials, len(row.problems)) for row in rows]
        totals = [sum(getattr(row, name) for row in rows) for name in ("points", "states", "trials")]
        problems = [problem for row in rows for problem in row.problems]
        sys.stdout.write(render_table(_TITLES, [*cells, ("all", "", *totals, len(problems))]))
        sys.stdout.write(f"{self._seconds:.0f} s\n")
        sys.stdout.writelines(f"{problem}\n" for problem in problems)
        sys.stdout.writelines(f"job {number} ended early\n" for number in self._ended_early)
        return 1 if problems or len(rows) < JOBS else 0

    @property
    def _seconds(self) -> float:
        return time.monotonic() - self._started

    def _give_out(self) -> None:
        """Have a process do one job after the other."""
        with subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
            assert worker.stdin is not None
            assert worker.stdout is not None
            while (number := self._take()) is not None:
                worker.stdin.write(f"{number}\n")
                worker.stdin.flush()
                if not (line := worker.stdout.readline()):
                    self._ended_early.append(number)
                    return
                self._rows.append(msgspec.json.decode(line, type=Row))
                self._tell(self._rows[-1])

    def _take(self) -> int | None:
        try:
            return self._left.get_nowait()
        except queue.Empty:
            return None

    def _tell(self, row: Row) -> None:
        """Tell a person who waits that a job has ended."""
        if sys.stderr.isatty():
            done = f"{len(self._rows)} of {JOBS}, {self._seconds:.0f} s"
            sys.stderr.write(f"{done}: {row.operation} {row.subject}, {row.trials} trials, {len(row.problems)} wrong\n")


if __name__ == "__main__":
    main()
