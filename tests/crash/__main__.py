"""`python -m tests.crash`: run the matrix in two processes, print what was tried, and fail if anything is wrong."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from benchmarks.report import render_table
from tests.crash.child import warm_up
from tests.crash.matrix import JOBS, run_all
from tests.crash.row import Row

_TITLES = ("operation", "subject", "crash points", "states", "trials", "wrong")


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--full", action="store_true", help="every second process at every point")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="how many at once")
    parser.add_argument("--jobs", default="", help="only these, by number; they are printed as JSON lines")
    options = parser.parse_args()
    if options.jobs:
        _work([int(number) for number in options.jobs.split(",")], is_full=options.full)
    else:
        sys.exit(_gather(options.processes, is_full=options.full))


def _work(jobs: list[int], *, is_full: bool) -> None:
    warm_up()
    with tempfile.TemporaryDirectory(prefix="dra-") as folder:
        for row in run_all(Path(folder), jobs, is_full=is_full):
            sys.stdout.write(json.dumps(msgspec.to_builtins(row)) + "\n")
            sys.stdout.flush()


def _gather(processes: int, *, is_full: bool) -> int:
    started = time.monotonic()
    full = ["--full"] if is_full else []
    parts = [part for part in (range(JOBS)[first::processes] for first in range(processes)) if part]
    workers = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.crash", "--jobs", ",".join(map(str, part)), *full], stdout=subprocess.PIPE
        )
        for part in parts
    ]
    rows = [msgspec.json.decode(line, type=Row) for each in workers for line in each.communicate()[0].splitlines()]
    broken = [number for number, each in enumerate(workers) if each.returncode]
    cells = [
        (row.operation, row.subject, row.points, row.states, row.trials, len(row.problems))
        for row in sorted(rows, key=lambda row: (row.operation, row.subject))
    ]
    totals = [sum(getattr(row, name) for row in rows) for name in ("points", "states", "trials")]
    problems = [problem for row in rows for problem in row.problems]
    sys.stdout.write(render_table(_TITLES, [*cells, ("all", "", *totals, len(problems))]))
    sys.stdout.write(f"{time.monotonic() - started:.0f} s\n")
    sys.stdout.writelines(f"{problem}\n" for problem in problems)
    sys.stdout.writelines(f"this part of the matrix ended early: {number}\n" for number in broken)
    return 1 if problems or broken else 0


if __name__ == "__main__":
    main()
