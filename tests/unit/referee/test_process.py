"""A referee outlives what it asks."""

import sys
from collections.abc import Iterator

import pytest

from tests.referee.process import Referee

_PROGRAM = """
import json, os, sys, time
for line in sys.stdin:
    question = json.loads(line)
    if question["op"] == "end":
        os._exit(1)
    if question["op"] == "hang":
        time.sleep(60)
    print(json.dumps({"pid": os.getpid(), "op": question["op"]}), flush=True)
"""


@pytest.fixture
def referee() -> Iterator[Referee]:
    with Referee([sys.executable, "-c", _PROGRAM], grace=0.2) as referee:
        yield referee


def test_one_process_answers_all_questions(referee: Referee) -> None:
    answers = [referee.ask({"op": op}) for op in "abc"]
    assert [answer["op"] for answer in answers] == ["a", "b", "c"]
    assert len({answer["pid"] for answer in answers}) == 1


def test_a_process_that_ends_is_replaced(referee: Referee) -> None:
    assert referee.ask({"op": "end"}) == {"panic": "the process ended"}
    assert referee.ask({"op": "a"})["op"] == "a"


def test_a_process_that_hangs_is_replaced(referee: Referee) -> None:
    assert referee.ask({"op": "hang", "timeoutMs": 100}) == {"panic": "no answer within 0.3 s"}
    assert referee.ask({"op": "a"})["op"] == "a"
