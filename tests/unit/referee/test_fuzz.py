"""What becomes of questions on which upstream has no verdict."""

from typing import Any

import pytest

from tests.referee.allocation import allocate
from tests.referee.fuzz import Comparison
from tests.referee.process import Answer, Question, Referee

TIMEOUT = {"fit": False, "errorClass": "timeout"}
POOL = {"name": "pool", "generation": 1, "resourceSliceCount": 1}


class FixedReferee(Referee):
    """Gives the same answer to everything."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(("true",))
        self._answer = answer

    def begin(self, question: Question) -> None:
        """Nothing to begin."""

    def finish(self) -> Answer:
        return self._answer

    def ask(self, _: Question) -> Answer:
        return self._answer


def a_question(count: int) -> dict[str, Any]:
    """So many of two devices."""
    exactly = {"deviceClassName": "any", "allocationMode": "ExactCount", "count": count}
    devices = [{"name": "a"}, {"name": "b"}]
    spec = {"driver": "gpu.example.com", "pool": POOL, "nodeName": "node", "devices": devices}
    return {
        "op": "allocate",
        "node": {"metadata": {"name": "node"}},
        "classes": [{"metadata": {"name": "any"}, "spec": {}}],
        "slices": [{"metadata": {"name": "slice"}, "spec": spec}],
        "claims": [
            {"metadata": {"name": "claim"}, "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}}
        ],
    }


REFUSAL = {"fit": False, "result": None}


@pytest.mark.parametrize(
    ("count", "ours", "kinds", "check"),
    [
        pytest.param(3, REFUSAL, (), "refusals proven by trying all", id="true refusal"),
        pytest.param(2, REFUSAL, ("refused, there is an allocation",), "", id="false refusal"),
        pytest.param(2, None, (), "allocations that upstream could not check", id="allocation"),
    ],
)
def test_our_answer_is_checked(count: int, ours: Answer | None, kinds: tuple[str, ...], check: str) -> None:
    question = a_question(count)
    comparison = Comparison(FixedReferee(TIMEOUT), FixedReferee(ours or allocate(question)))
    assert comparison.compare(question)[0] == kinds
    assert dict(comparison.checks) == ({check: 1} if check else {})
