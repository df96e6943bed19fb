"""Our answers against those of Kubernetes' own code, asked now. Needs Go, no cluster.

`python -m tests.referee.fuzz` asks more, and cuts disagreements down to their core.
"""

import os

import pytest

from tests.referee import ours, replay, upstream
from tests.referee.fuzz import ClusterComparison, Comparison, describe, fuzz
from tests.referee.process import Referee

_PROBLEMS = 2000
_HISTORIES = 300
_CASES = 600
_SEED = int(os.environ.get("DRA_DRIVER_TEST_SEED", "1"))


@pytest.fixture(scope="module")
def comparison() -> object:
    with upstream.start() as theirs, ours.start() as own:
        yield Comparison(theirs, own)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("op", ours.OPERATIONS)
def test_we_answer_random_questions_as_upstream(comparison: Comparison, op: str) -> None:
    tally = fuzz(comparison, op, _PROBLEMS, _SEED)
    assert not tally.disagreements, "\n".join(describe(tally))


@pytest.mark.timeout(300)
def test_a_cluster_that_is_kept_up_to_date_answers_as_upstream() -> None:
    with upstream.start() as theirs, ours.start() as own:
        tally = fuzz(ClusterComparison(theirs, own), "cluster", _HISTORIES, _SEED)
    assert not tally.disagreements, "\n".join(describe(tally))


@pytest.mark.timeout(600)
def test_upstreams_own_cases_have_upstreams_answers() -> None:
    cases = replay.run_cases()
    assert len(cases) > _CASES
    assert [case.name for case in cases if case.is_lossy] == ["consumable-capacity-requests-are-not-modified"] * 2
    differences = [replay.find_difference(case) for case in cases if not case.is_lossy]
    assert [difference for difference in differences if difference is not None] == []


@pytest.fixture(scope="module")
def kubernetes() -> object:
    with upstream.start() as referee:
        yield referee


def test_what_go_does_not_survive_is_no_verdict(kubernetes: Referee) -> None:
    hangs = {"op": "cel", "expr": 'isQuantity("1E3000000000")', "driver": "d", "devices": [{"name": "a"}]}
    assert set(kubernetes.ask({**hangs, "timeoutMs": 100})) == {"panic"}
    assert set(kubernetes.ask({**hangs, "expr": '{b"a": 1}.size() == 1'})) == {"panic"}
    assert kubernetes.ask({**hangs, "expr": "true"})["verdicts"] == [True]


def test_a_call_that_takes_too_long_is_a_timeout(kubernetes: Referee) -> None:
    devices = [{"name": f"gpu-{index}"} for index in range(24)]
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    request = {"name": "r", "exactly": {"deviceClassName": "c", "allocationMode": "ExactCount", "count": 25}}
    question = {
        "op": "allocate",
        "node": {"metadata": {"name": "n"}},
        "classes": [{"metadata": {"name": "c"}, "spec": {}}],
        "slices": [
            {"metadata": {"name": "s"}, "spec": {"driver": "d", "pool": pool, "nodeName": "n", "devices": devices}}
        ],
        "claims": [{"metadata": {"name": "x", "namespace": "ns"}, "spec": {"devices": {"requests": [request]}}}],
        "timeoutMs": 200,
    }
    assert kubernetes.ask(question)["errorClass"] == "timeout"
