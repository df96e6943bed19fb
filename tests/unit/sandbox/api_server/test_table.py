from datetime import UTC, datetime
from typing import Any

import pytest

from sandbox.api_server.duration import render_age, render_duration
from sandbox.api_server.kind import KINDS, NODES, PODS, RESOURCE_CLAIMS
from sandbox.api_server.table import columns, row

NOW = datetime(2026, 1, 2, tzinfo=UTC)
METADATA = {"name": "x", "creationTimestamp": "2026-01-01T23:55:00Z"}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600 + 60, "3h1m"),
        (8 * 3600 + 60, "8h"),
        (48 * 3600, "2d"),
        (49 * 3600, "2d1h"),
        (8 * 86400 + 3600, "8d"),
        (2 * 365 * 86400 + 86400, "2y1d"),
        (9 * 365 * 86400 + 86400, "9y"),
    ],
)
def test_an_age_has_the_digits_that_matter(seconds: int, text: str) -> None:
    assert render_duration(seconds) == text


@pytest.mark.parametrize(("time", "text"), [(None, "<unknown>"), ("soon", "<invalid>"), ("2026-01-01", "24h")])
def test_the_age_of_no_time_is_not_known(time: Any, text: str) -> None:
    assert render_age(time, NOW) == text


def test_every_kind_has_as_many_cells_as_columns() -> None:
    value = {"metadata": METADATA, "spec": {"driver": "d", "pool": {"name": "p"}, "taint": {}}}
    for kind in KINDS:
        assert len(row(kind, value, NOW)["cells"]) == len(columns(kind)), kind


@pytest.mark.parametrize(
    ("status", "deleted", "state"),
    [
        ({}, False, "pending"),
        ({"allocation": {}}, False, "allocated"),
        ({"allocation": {}, "reservedFor": [{}]}, False, "allocated,reserved"),
        ({"allocation": {}}, True, "deleted,allocated"),
        ({}, True, "deleted"),
    ],
)
def test_a_claim_shows_its_state(status: dict[str, Any], deleted: bool, state: str) -> None:
    metadata = METADATA | ({"deletionTimestamp": "2026-01-02T00:00:00Z"} if deleted else {})
    assert row(RESOURCE_CLAIMS, {"metadata": metadata, "status": status}, NOW)["cells"] == ["x", state, "5m"]


def pod_word(status: dict[str, Any], *, deleted: bool = False, **spec: Any) -> tuple[str, str]:
    metadata = METADATA | ({"deletionTimestamp": "2026-01-02T00:00:00Z"} if deleted else {})
    value = {"metadata": metadata, "spec": {"containers": [{"name": "main"}], **spec}, "status": status}
    cells = row(PODS, value, NOW)["cells"]
    return cells[1], cells[2]


def of_container(*, ready: bool = False, **state: Any) -> dict[str, Any]:
    return {"phase": "Running", "containerStatuses": [{"name": "main", "ready": ready, "state": state}]}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"phase": "Pending"}, ("0/1", "Pending")),
        ({"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]},
         ("0/1", "SchedulingGated")),
        (of_container(waiting={"reason": "ContainerCreating"}), ("0/1", "ContainerCreating")),
        (of_container(ready=True, running={}), ("1/1", "Running")),
        (of_container(terminated={"exitCode": 0, "reason": "Completed"}), ("0/1", "Completed")),
        (of_container(terminated={"exitCode": 3}), ("0/1", "ExitCode:3")),
        (of_container(terminated={"exitCode": 3, "signal": 9}), ("0/1", "Signal:9")),
        ({"phase": "Failed", "reason": "Evicted"}, ("0/1", "Evicted")),
        ({"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"running": {}}}]}, ("0/1", "Init:0/0")),
        ({"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"terminated": {"exitCode": 1}}}]},
         ("0/1", "Init:ExitCode:1")),
    ],
)  # fmt: skip
def test_a_pod_shows_what_it_does_in_a_word(status: dict[str, Any], expected: tuple[str, str]) -> None:
    assert pod_word(status) == expected


def test_a_pod_that_is_deleted_is_terminating() -> None:
    assert pod_word(of_container(ready=True, running={}), deleted=True) == ("1/1", "Terminating")


def test_a_node_that_is_cordoned_says_so() -> None:
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    value = {"metadata": METADATA, "spec": {"unschedulable": True}, "status": ready}
    assert row(NODES, value, NOW)["cells"][1] == "Ready,SchedulingDisabled"
