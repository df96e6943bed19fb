"""Random histories: a cluster that is kept up to date answers as one that is looked at anew."""

from random import Random
from typing import Any

import pytest

from controller.allocator import Features
from tests.referee.generate_cluster import cluster_question
from tests.referee.history import BadEventError, History, play, read_events

NODE = {"do": "set", "kind": "node", "object": {"metadata": {"name": "node-a"}}}
CLASS = {"do": "set", "kind": "class", "object": {"metadata": {"name": "any"}, "spec": {}}}
SLICE = {
    "do": "set",
    "kind": "slice",
    "object": {
        "metadata": {"name": "slice"},
        "spec": {
            "driver": "gpu.example.com",
            "pool": {"name": "pool", "generation": 1, "resourceSliceCount": 1},
            "nodeName": "node-a",
            "devices": [{"name": "dev"}],
        },
    },
}
REQUEST = {"name": "r", "exactly": {"deviceClassName": "any", "allocationMode": "ExactCount", "count": 1}}
CLAIM = {"metadata": {"name": "claim", "namespace": "default"}, "spec": {"devices": {"requests": [REQUEST]}}}
ALLOCATE = {"do": "allocate", "node": "node-a", "claims": [CLAIM], "commit": True}


@pytest.mark.parametrize("seed", range(60))
def test_a_kept_cluster_answers_as_one_that_is_looked_at_anew(seed: int) -> None:
    question = cluster_question(Random(f"history {seed}"))
    assert [kind for finding in play(question) for kind in finding.kinds] == []


def test_what_is_allocated_is_kept() -> None:
    fits, refused = play({"events": [NODE, CLASS, SLICE, ALLOCATE, ALLOCATE]})
    assert fits.answer["result"][0]["devices"]["results"][0]["device"] == "dev"
    assert refused.answer == "refused"
    assert (fits.kinds, refused.kinds) == ((), ())


def test_a_cluster_that_does_not_hear_of_a_change_is_found_out() -> None:
    history = History(Features())
    assert not list(history.play(read_events([NODE, CLASS, SLICE])))
    history.objects["slice"].clear()
    (finding,) = history.play(read_events([ALLOCATE]))
    assert finding.kinds == ("allocate: Allocated, anew Refused",)


@pytest.mark.parametrize(
    "event", [{"do": "hide"}, {"do": "set", "kind": "pod", "object": {}}, {"do": "set", "object": {}}, {"do": "remove"}]
)
def test_an_event_that_is_none_is_told_from_a_defect(event: dict[str, Any]) -> None:
    with pytest.raises(BadEventError):
        list(play({"events": [event]}))
