"""What upstream is asked about an allocation that it did not find in time."""

from typing import Any

from tests.referee.certificate import certifying_question


def result(device: str) -> dict[str, Any]:
    return {"devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": device}]}}


def test_only_chosen_and_allocated_devices_are_left() -> None:
    spec = {"driver": "d", "pool": {"name": "p"}, "devices": [{"name": name} for name in "abcd"]}
    question = {
        "op": "allocate",
        "slices": [{"metadata": {"name": "s"}, "spec": spec}],
        "allocated": [{"status": {"allocation": result("b")}}, {"status": {}}],
    }
    asked = certifying_question(question, {"fit": True, "result": [result("c")]})
    assert [device["name"] for device in asked["slices"][0]["spec"]["devices"]] == ["b", "c"]
    assert question["slices"] == [{"metadata": {"name": "s"}, "spec": spec}]
