"""Whom devices and classes belong to."""

import pytest

from dra_driver.allocator import ALLOCATOR_TAINT, Allocator, allocator_of


@pytest.mark.parametrize(
    ("labels", "allocator"),
    [
        pytest.param({}, Allocator.SCHEDULER, id="no label"),
        pytest.param({"dra-driver.io/allocator": "controller"}, Allocator.CONTROLLER, id="controller"),
        pytest.param({"dra-driver.io/allocator": "Controller"}, Allocator.SCHEDULER, id="misspelt"),
        pytest.param({"dra-driver.io/allocator": ""}, Allocator.SCHEDULER, id="empty"),
        pytest.param({"dra-driver.io/allocator": "kube-scheduler"}, Allocator.SCHEDULER, id="kube-scheduler"),
    ],
)
def test_only_the_exact_label_gives_something_to_the_controller(labels: dict[str, str], allocator: Allocator) -> None:
    assert allocator_of(labels) is allocator


def test_the_taint_keeps_claims_away_and_evicts_nobody() -> None:
    taint = ALLOCATOR_TAINT
    assert (taint.key, taint.value, taint.effect) == ("dra-driver.io/allocator", "controller", "NoSchedule")
