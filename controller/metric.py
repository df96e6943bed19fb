"""The metrics of the controller. All series exist from the start, failures are counted as successes are."""

from enum import StrEnum
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from controller.decision import Code

_DECISION_BUCKETS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_WAIT_BUCKETS: Final = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600)


class PodState(StrEnum):
    """What a Pod of the controller waits for."""

    QUEUED = "queued"
    WRITING = "writing"
    REFUSED = "refused"


class Result(StrEnum):
    """What came of a decision."""

    PLACED = "placed"
    REFUSED = "refused"
    UNDECIDED = "undecided"
    TAKEN_BACK = "taken_back"
    LEFT = "left"


class Metrics:
    """Counts and times what is decided and written."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.pods = Gauge(
            "dra_controller_pods", "Pods that wait for devices, by what for.", ["state"], registry=registry
        )
        self.decisions = Counter("dra_controller_decisions", "Decisions about Pods.", ["result"], registry=registry)
        self.decision_seconds = Histogram(
            "dra_controller_decision_duration_seconds",
            "How long a decision took, pauses included.",
            ["result"],
            buckets=_DECISION_BUCKETS,
            registry=registry,
        )
        self.refusals = Counter(
            "dra_controller_refusals", "Decisions that a Pod has to wait, by reason.", ["reason"], registry=registry
        )
        self.allocation_seconds = Histogram(
            "dra_controller_allocation_duration_seconds",
            "From a Pod's creation until its claims were allocated and its gate was removed.",
            buckets=_WAIT_BUCKETS,
            registry=registry,
        )
        self.writes = Counter(
            "dra_controller_writes", "Pods for which an allocation was written, or not.", ["result"], registry=registry
        )
        self.conflicts = Counter(
            "dra_controller_conflicts", "Writes that somebody else was faster than.", registry=registry
        )
        self.taken_back = Counter("dra_controller_taken_back", "Allocations that were taken back.", registry=registry)
        self.leader = Gauge("dra_controller_leader", "1 while this process leads.", registry=registry)
        for state in PodState:
            self.pods.labels(state)
        for result in Result:
            self.decisions.labels(result)
            self.decision_seconds.labels(result)
        for code in Code:
            self.refusals.labels(code)
        for name in ("success", "error"):
            self.writes.labels(name)
