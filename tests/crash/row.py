"""What came of a part of the matrix, and how its points are named to people."""

import signal
from dataclasses import dataclass, field

from tests.crash.effect import Point


@dataclass(slots=True)
class Row:
    """What was tried of one operation."""

    operation: str
    subject: str
    points: int = 0
    states: int = 0
    trials: int = 0
    problems: list[str] = field(default_factory=list)


def describe(effects: list[str], point: Point) -> str:
    """Return where a point is, in words."""
    effect = effects[point.number] if point.number < len(effects) else "the answer"
    end = "killed" if point.signal == signal.SIGKILL else "stopped"
    return f"{end} {point.moment} {effect} (#{point.number})"
