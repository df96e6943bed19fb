"""Crash points and recoveries, in processes that are really killed: a part of what `python -m tests.crash` runs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

UNPREPARES = "3,5,9"
"""Shares, a partition and admin access."""


@pytest.mark.timeout(300)
def test_whatever_follows_a_death_in_an_unprepare_ends_as_if_nobody_had_died() -> None:
    command = (sys.executable, "-m", "tests.crash", "--jobs", UNPREPARES)
    run = subprocess.run(command, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, text=True, check=True)
    rows = [json.loads(line) for line in run.stdout.splitlines()]
    assert [row["subject"] for row in rows] == ["two shares", "a partition", "admin access"]
    assert [problem for row in rows for problem in row["problems"]] == []
