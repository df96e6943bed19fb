"""That the count of what is used finds what it should. Needs no cluster."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.claim_history import read_events
from tests.cluster.usage import explain_overuse

Manifest = dict[str, Any]

PARTS = [{"counterSet": "gpu", "counters": {"slots": {"value": "4"}}}]
SLICES: list[Manifest] = [
    {
        "spec": {
            "driver": "d",
            "pool": {"name": "node-a"},
            "devices": [
                {"name": "whole"},
                {"name": "shared", "capacity": {"memory": {"value": "80Gi"}}},
                {"name": "half-0", "consumesCounters": PARTS},
                {"name": "half-1", "consumesCounters": PARTS},
            ],
        }
    },
    {
        "spec": {
            "driver": "d",
            "pool": {"name": "node-a"},
            "sharedCounters": [{"name": "gpu", "counters": {"slots": {"value": "7"}}}],
        }
    },
]


def a_holder(name: str, device: str, **result: Any) -> Manifest:
    results = [{"driver": "d", "pool": "node-a", "device": device, **result}]
    return {
        "metadata": {"namespace": "default", "name": name},
        "status": {"allocation": {"devices": {"results": results}}},
    }


def a_share(name: str, memory: str) -> Manifest:
    return a_holder(name, "shared", shareID=name, consumedCapacity={"memory": memory})


@pytest.mark.parametrize(
    ("claims", "problems"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([{"metadata": {"namespace": "default", "name": "a"}}], [], id="not allocated"),
        pytest.param([a_holder("a", "whole"), a_holder("b", "half-0")], [], id="different devices"),
        pytest.param(
            [a_holder("a", "whole"), a_holder("b", "whole")],
            ["device node-a/whole: held whole and by others: ['default/a', 'default/b']"],
            id="one device twice",
        ),
        pytest.param([a_holder("a", "whole"), a_holder("b", "whole", adminAccess=True)], [], id="admin access"),
        pytest.param([a_share("a", "60Gi"), a_share("b", "20Gi")], [], id="shares that fit"),
        pytest.param(
            [a_share("a", "60Gi"), a_share("b", "20481Mi")],
            ["device node-a/shared: 85900394496 of 85899345920 memory held by ['default/a', 'default/b']"],
            id="shares beyond the sum",
        ),
        pytest.param(
            [a_share("a", "1Gi"), a_holder("b", "shared")],
            ["device node-a/shared: held whole and by others: ['default/a', 'default/b']"],
            id="a share beside the whole",
        ),
        pytest.param(
            [a_share("a", "1Gi"), {**a_share("a", "1Gi"), "metadata": {"namespace": "x", "name": "a"}}],
            ["device node-a/shared: one share ID held twice: ['default/a', 'x/a']"],
            id="a share twice",
        ),
        pytest.param(
            [a_holder("a", "half-0"), a_holder("b", "half-1")],
            ["counter set node-a/gpu: 8 of 7 slots used"],
            id="partitions beyond the counter",
        ),
        pytest.param(
            [a_holder("a", "gone")],
            ["device node-a/gone: held by ['default/a'], and not published"],
            id="a device that is not there",
        ),
    ],
)
def test_what_is_used_beyond_what_there_is_is_found(claims: list[Manifest], problems: list[str]) -> None:
    assert explain_overuse(SLICES, claims) == problems


def test_an_event_that_is_half_written_is_left_for_later(tmp_path: Path) -> None:
    events = [{"type": kind, "object": {"metadata": {"name": "{a}"}}} for kind in ("ADDED", "MODIFIED", "DELETED")]
    text = "\n".join(json.dumps(event, indent=4) for event in events)
    log = tmp_path / "log"
    log.write_text(text[:-3])
    assert list(read_events(log)) == [(event["type"], event["object"]) for event in events[:2]]
