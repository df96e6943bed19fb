"""Tables of measurements, and the figures that sum them up."""

import gc
import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

_WHOLE = 1000

Cell = str | float | None


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the garbage collector out of what is measured; what came before is not its business then."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()


def measure_us(call: Callable[[], object]) -> float:
    """Call once and return the microseconds."""
    started = time.perf_counter()
    call()
    return (time.perf_counter() - started) * 1e6


def geometric_mean(values: Sequence[float]) -> float:
    """Return the mean of ratios; not a number if there are none."""
    return math.exp(statistics.fmean(map(math.log, values))) if values else math.nan


def percentile(values: Sequence[float], percent: int) -> float:
    """Return the value that `percent` of them do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def render_table(titles: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """Render a table: texts to the left, numbers to the right, `-` where there is none."""
    texts = [[_render(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(titles, *texts, strict=True)]
    is_number = [any(isinstance(cell, float | int) for cell in column) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(text.rjust(width) if right else text.ljust(width) for text, width, right in line).rstrip()
        for line in (zip(row, widths, is_number, strict=True) for row in (titles, *texts))
    ]
    return "\n".join(lines) + "\n"


def _render(cell: Cell) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, str):
        return cell
    if isinstance(cell, int):
        return str(cell)
    return f"{cell:.0f}" if abs(cell) >= _WHOLE else f"{cell:.3g}"
