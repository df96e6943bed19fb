"""Ranges of sizes and costs, of 64 bits without overflow."""

import math
from dataclasses import dataclass
from typing import Final

MAX: Final = 2**64 - 1


def add(left: int, right: int) -> int:
    """Add, up to the maximum."""
    return min(left + right, MAX)


def multiply(left: int, right: int) -> int:
    """Multiply, up to the maximum."""
    return min(left * right, MAX)


def scale(value: int, factor: float) -> int:
    """Multiply by a factor and round up, as doubles do."""
    product = float(value) * factor
    if product >= 2.0**64:
        return MAX
    return min(math.ceil(product), MAX)


@dataclass(frozen=True, slots=True)
class Range:
    """From `low` to `high`: a size, or a cost."""

    low: int
    high: int

    def __add__(self, other: "Range") -> "Range":
        return Range(add(self.low, other.low), add(self.high, other.high))

    def __mul__(self, other: "Range") -> "Range":
        return Range(multiply(self.low, other.low), multiply(self.high, other.high))

    def scaled(self, factor: float) -> "Range":
        """Multiply by a factor and round up."""
        return Range(scale(self.low, factor), scale(self.high, factor))

    def union(self, other: "Range") -> "Range":
        """Give what holds both."""
        return Range(min(self.low, other.low), max(self.high, other.high))


def fixed(value: int) -> Range:
    """Make a range of one value."""
    return Range(value, value)


UNKNOWN: Final = Range(0, MAX)
NOTHING: Final = fixed(0)
ONE: Final = fixed(1)
EMPTY: Final = Range(MAX, 0)
