"""Upstream's test cases, as the program prints them."""

import json
from typing import Any

from tests.referee.replay import Case, find_difference, read_cases

NODE = {"metadata": {"name": "node"}}
SLICE = {
    "metadata": {"name": "slice"},
    "spec": {
        "driver": "driver",
        "pool": {"name": "pool", "generation": 1, "resourceSliceCount": 1},
        "nodeName": "node",
        "devices": [{"name": "dev", "allowMultipleAllocations": True, "capacity": {"memory": {"value": "4"}}}],
    },
}
EXACTLY = {
    "deviceClassName": "class",
    "allocationMode": "ExactCount",
    "count": 1,
    "capacity": {"requests": {"memory": "2"}},
}
CLAIM = {"metadata": {"name": "claim"}, "spec": {"devices": {"requests": [{"name": "r", "exactly": EXACTLY}]}}}
DEVICE = ["driver", "pool", "dev"]


def a_question(**state: Any) -> dict[str, Any]:
    return {
        "node": NODE,
        "classes": [{"metadata": {"name": "class"}, "spec": {}}],
        "slices": [SLICE],
        "claims": [CLAIM],
        "features": {"ConsumableCapacity": True},
        "state": {"whole": None, "shares": None, "consumed": None} | state,
    }


def an_output(question: dict[str, Any], answer: dict[str, Any]) -> str:
    record = json.dumps({"question": question, "answer": answer, "lossy": False})
    lines = ("=== RUN   TestReplay", "=== RUN   TestReplay/stable/some-case", "    log", "", f"@replay {record}")
    return "\n".join(lines)


def a_case(answer: dict[str, Any], **state: Any) -> Case:
    (case,) = read_cases(an_output(a_question(**state), answer))
    return case


def test_a_case_has_the_name_that_was_run_last() -> None:
    case = a_case({"fit": False, "result": None})
    assert (case.channel, case.name) == ("stable", "some-case")


def test_errors_are_told_apart_by_their_texts() -> None:
    assert a_case({"fit": False, "error": "claim: CEL runtime error: x"}).answer["errorClass"] == "runtime"
    assert a_case({"fit": False, "error": "something"}).answer["errorClass"] == "other"


def test_what_is_allocated_counts() -> None:
    refused = {"fit": False, "result": None}
    consumed = [{"device": DEVICE, "capacity": {"memory": "3"}}]
    assert find_difference(a_case(refused, whole=[DEVICE])) is None
    assert find_difference(a_case(refused, shares=[DEVICE], consumed=consumed)) is None
    difference = find_difference(a_case(refused, shares=[DEVICE]))
    assert difference is not None
    assert difference.kinds == ("fit",)


def test_a_field_that_every_object_has_is_filled_in() -> None:
    question = a_question()
    question["slices"] = json.loads(json.dumps([SLICE]))
    question["slices"][0]["spec"]["devices"][0]["consumesCounters"] = [{"counterSet": "set"}]
    (case,) = read_cases(an_output(question, {"fit": False, "result": None}))
    assert case.question["slices"][0]["spec"]["devices"][0]["consumesCounters"][0]["counters"] == {}
