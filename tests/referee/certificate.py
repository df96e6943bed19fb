"""Checking an allocation where upstream gives up: with the chosen devices alone, it must find that they fit."""

from typing import Any

from tests.referee.process import Answer, Question

# Upstream's search over the chosen devices alone is short, unless they are many and alike.
_TIMEOUT_MS = 20_000


def certifying_question(question: Question, answer: Answer) -> Question:
    """Give the same problem without the devices that neither the answer nor earlier allocations use.

    Upstream's answer must be that it fits. `answer` must be an allocation.
    """
    used = _devices(answer["result"])
    for claim in question.get("allocated") or ():
        used |= _devices([claim.get("status", {}).get("allocation") or {}])
    slices = [_with_devices(slice_, used) for slice_ in question.get("slices") or ()]
    return {**question, "slices": slices, "timeoutMs": _TIMEOUT_MS}


def _devices(allocations: list[dict[str, Any]]) -> set[tuple[str, str, str]]:
    return {
        (result["driver"], result["pool"], result["device"])
        for allocation in allocations
        for result in allocation.get("devices", {}).get("results", ())
    }


def _with_devices(slice_: dict[str, Any], used: set[tuple[str, str, str]]) -> dict[str, Any]:
    spec = slice_["spec"]
    place = (spec["driver"], spec["pool"]["name"])
    devices = [device for device in spec.get("devices") or () if (*place, device["name"]) in used]
    return {**slice_, "spec": {**spec, "devices": devices}}
