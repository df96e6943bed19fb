"""Crash points and recoveries, in processes that are really killed: a part of what `python -m tests.crash` runs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PARTS = {
    "7": "unprepare several devices",
    "9,14": "unprepare admin access, start after an update",
    "18,22": "publish for the first time, power cut, unprepare a whole device",
}
"""A claim with a whole device, a share and a partition, one that holds nothing, a start; by the numbers of the jobs."""

ANSWERS_AT_ONCE = """
from tests.crash.child import Child

child = Child(lambda channel: (channel.sendall(b"1\\n2\\n"), channel.recv(1)))
print(child.hear(), child.hear())
child.close()
"""


@pytest.mark.timeout(600)
def test_whatever_follows_a_death_ends_as_if_nobody_had_died() -> None:
    runs = [
        subprocess.Popen(
            (sys.executable, "-m", "tests.crash", "--jobs", part), cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        for part in PARTS
    ]
    parts = [[json.loads(line) for line in run.communicate()[0].splitlines()] for run in runs]
    assert [run.returncode for run in runs] == [0] * len(runs)
    assert [", ".join(f"{row['operation']} {row['subject']}" for row in rows) for rows in parts] == list(PARTS.values())
    assert [problem for rows in parts for row in rows for problem in row["problems"]] == []


def test_answers_that_come_at_once_are_heard_one_by_one() -> None:
    """A second process that was done with both commands when it was heard seemed silent: its last answer was read."""
    run = subprocess.run((sys.executable, "-c", ANSWERS_AT_ONCE), cwd=ROOT, stdout=subprocess.PIPE, check=True)
    assert run.stdout == b"1 2\n"
