"""Crash points and recoveries, in processes that are really killed: a part of what `python -m tests.crash` runs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

UNPREPARES = {"7": "several devices", "9": "admin access"}
"""A whole device, a share and a partition in one claim; and a claim that holds nothing. By the number of the job."""

ANSWERS_AT_ONCE = """
from tests.crash.child import Child

child = Child(lambda channel: (channel.sendall(b"1\\n2\\n"), channel.recv(1)))
print(child.hear(), child.hear())
child.close()
"""


@pytest.mark.timeout(300)
def test_whatever_follows_a_death_in_an_unprepare_ends_as_if_nobody_had_died() -> None:
    runs = [
        subprocess.Popen(
            (sys.executable, "-m", "tests.crash", "--jobs", job), cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        for job in UNPREPARES
    ]
    rows = [json.loads(line) for run in runs for line in run.communicate()[0].splitlines()]
    assert [run.returncode for run in runs] == [0] * len(runs)
    assert [row["subject"] for row in rows] == list(UNPREPARES.values())
    assert [problem for row in rows for problem in row["problems"]] == []


def test_answers_that_come_at_once_are_heard_one_by_one() -> None:
    """A second process that was done with both commands when it was heard seemed silent: its last answer was read."""
    run = subprocess.run((sys.executable, "-c", ANSWERS_AT_ONCE), cwd=ROOT, stdout=subprocess.PIPE, check=True)
    assert run.stdout == b"1 2\n"
