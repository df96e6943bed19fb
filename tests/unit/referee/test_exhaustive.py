"""Trying everything, as a check on refusals."""

from random import Random
from typing import Any

import pytest

from tests.referee.allocation import allocate
from tests.referee.exhaustive import Verdict, try_everything
from tests.referee.generate_allocation import allocate_question

POOL = {"name": "pool", "generation": 1, "resourceSliceCount": 1}


def a_question(*counts: int, devices: int, domains: int = 1, **claim: Any) -> dict[str, Any]:
    """Requests for so many devices, which are of so many domains in turn."""
    entries = [
        {"name": f"dev-{index}", "attributes": {"index": {"int": index}, "domain": {"int": index % domains}}}
        for index in range(devices)
    ]
    spec = {"driver": "gpu.example.com", "pool": POOL, "nodeName": "node", "devices": entries}
    requests = [
        {
            "name": f"r{index}",
            "exactly": {"deviceClassName": "any", "allocationMode": "ExactCount", "count": count},
        }
        for index, count in enumerate(counts)
    ]
    return {
        "op": "allocate",
        "node": {"metadata": {"name": "node"}},
        "classes": [{"metadata": {"name": "any"}, "spec": {}}],
        "slices": [{"metadata": {"name": "slice"}, "spec": spec}],
        "claims": [{"metadata": {"name": "claim"}, "spec": {"devices": {"requests": requests} | claim}}],
    }


SAME: Any = {"constraints": [{"matchAttribute": "gpu.example.com/domain"}]}


@pytest.mark.parametrize(
    ("question", "verdict"),
    [
        pytest.param(a_question(25, devices=24), Verdict.DOES_NOT_FIT, id="25 of 24"),
        pytest.param(a_question(24, devices=24), Verdict.FITS, id="24 of 24"),
        pytest.param(a_question(8, 9, devices=16), Verdict.DOES_NOT_FIT, id="8 and 9 of 16"),
        pytest.param(a_question(1, 1, 1, 1, 1, 1, 11, devices=16), Verdict.DOES_NOT_FIT, id="six and 11 of 16"),
        pytest.param(a_question(9, devices=16, domains=2, **SAME), Verdict.DOES_NOT_FIT, id="9 of one of two domains"),
        pytest.param(a_question(8, devices=16, domains=2, **SAME), Verdict.FITS, id="8 of one of two domains"),
    ],
)
def test_what_explodes_without_memory_is_decided(question: Any, verdict: Verdict) -> None:
    assert try_everything(question) is verdict


def test_too_much_is_no_verdict() -> None:
    distinct: Any = {"constraints": [{"distinctAttribute": "gpu.example.com/index"}]}
    assert try_everything(a_question(9, devices=20, **distinct), steps=100) is Verdict.FITS
    assert try_everything(a_question(21, devices=20, **distinct), steps=100) is Verdict.UNKNOWN


@pytest.mark.parametrize("seed", range(4))
def test_it_agrees_with_the_allocator_on_random_problems(seed: int) -> None:
    random = Random(f"exhaustive {seed}")
    for _ in range(50):
        question = allocate_question(random)
        answer = allocate(question)
        if "error" not in answer and not answer.get("undecided"):
            wanted = Verdict.FITS if answer["fit"] else Verdict.DOES_NOT_FIT
            assert try_everything(question, steps=20_000) in (wanted, Verdict.UNKNOWN)
