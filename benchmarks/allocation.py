"""How long an allocation on one node takes, against Kubernetes' own allocator in the same run.

*warm* is a running controller: pools, selector results and allocations are up to date, one more claim is allocated, and
what is allocated changes from call to call. *objects* starts from objects in memory with compiled selectors, as
upstream's best call does; *first* compiles them too, as upstream's first call does. Of each state the best call
counts, then the median over the states.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from math import inf
from typing import Any

from benchmarks.family import Claims, Family, Maker, salted
from benchmarks.report import geometric_mean, quiet, render_table
from controller.allocator import (
    Allocated,
    AllocationError,
    Answer,
    CelCompiler,
    Cluster,
    Problem,
    SelectorCache,
    allocate,
)
from dra_driver.api.codec import decode, encode
from dra_driver.api.resource_v1 import ResourceClaim
from tests.referee import upstream
from tests.referee.process import Referee

SIZES = (8, 32, 128)
GOAL_RATIO, GOAL_WORST, GOAL_INFEASIBLE_US = 2, 1 / 3, 5000
_salts = count(1)


@dataclass(frozen=True, slots=True)
class Ours:
    """Microseconds by kind of call, and the answer in each state."""

    warm: list[float]
    objects: list[float]
    first: list[float]
    answers: list[Answer | AllocationError]

    @property
    def outcome(self) -> str:
        """What came out, in a word or two."""
        kinds = {type(answer).__name__ for answer in self.answers}
        return ", ".join(sorted(kinds))


@dataclass(frozen=True, slots=True)
class Theirs:
    """Microseconds of upstream's first and best calls by state; `outcome` is Allocated, Refused or an error's class."""

    first: list[float]
    best: list[float]
    outcome: str
    answers: list[dict[str, Any]]


def measure_ours(family: Family, passes: int) -> Ours:
    """Go over the states again and again; never the same state, and never the same claim, twice in a row."""
    selectors = SelectorCache(CelCompiler())
    problems = [_problem(family, state) for state in family.states]
    answers = [_answer(lambda problem=problem: allocate(problem, selectors)) for problem in problems]  # type: ignore[misc]
    with quiet():
        warm = _measure_warm(family, passes, answers)
        objects, first = ([inf] * len(problems) for _ in range(2))
        for number in range(passes):
            for index, problem in enumerate(problems):
                objects[index] = min(objects[index], _timed(partial(allocate, problem, selectors))[1])
            # Each first call compiles anew, and so is made for one state a pass.
            index = number % len(problems)
            new = _problem(family, family.states[index], salt=next(_salts))
            first[index] = min(first[index], _timed(partial(allocate, new))[1])
    return Ours(warm, objects, [took for took in first if took < inf], answers)


def _measure_warm(family: Family, passes: int, answers: Sequence[Answer | AllocationError]) -> list[float]:
    """Give the microseconds of the best call in each state. Raises RuntimeError where the devices are others."""
    cluster = _build_cluster(family)
    node = family.node.metadata.name
    best = [inf] * len(family.states)
    for number in range(passes * len(best)):
        index = number % len(best)
        _hold(cluster, family.states[index - 1], family.states[index])
        claims = tuple(decode(encode(claim), ResourceClaim) for claim in family.claims)
        answer, took = _timed(partial(cluster.allocate, claims, node))
        best[index] = min(best[index], took)
        if not _is_same(answer, answers[index]):
            raise RuntimeError(f"{family.name}: {answer} with a cluster, {answers[index]} without")
    return best


def _build_cluster(family: Family) -> Cluster:
    cluster = Cluster(SelectorCache(CelCompiler()), _share_ids())
    cluster.set_node(family.node)
    for slice_ in family.slices:
        cluster.set_slice(slice_)
    for device_class in family.classes:
        cluster.set_class(device_class)
    return cluster


def _hold(cluster: Cluster, before: Claims, after: Claims) -> None:
    """Take away what was allocated before, and allocate what is now."""
    for claim in before:
        cluster.remove_claim(f"{claim.metadata.namespace}/{claim.metadata.name}")
    for claim in after:
        cluster.set_claim(claim)


def _is_same(left: Answer | AllocationError, right: Answer | AllocationError) -> bool:
    """Tell whether the answers have the same devices."""
    if isinstance(left, Allocated) and isinstance(right, Allocated):
        return _devices(left) == _devices(right)
    return type(left) is type(right)


def _devices(answer: Allocated) -> list[list[str]]:
    return [[entry.device for entry in claim.devices.results] for claim in answer.results]


def measure_theirs(family: Family, referee: Referee, *, repeat: int, timeout_ms: int, states: int | None) -> Theirs:
    """Ask upstream about each state; after a time-out no further."""
    answers: list[dict[str, Any]] = []
    for state in family.states[:states]:
        answers.append(referee.ask(family.question(state, repeat=repeat, timeoutMs=timeout_ms)))
        if "panic" in answers[-1] or answers[-1].get("errorClass"):
            break
    kinds = sorted({_outcome(answer) for answer in answers})
    timed = [answer for answer in answers if "bestUs" in answer]
    first = [answer["firstUs"] for answer in timed] or [timeout_ms * 1000.0]
    return Theirs(first, [answer["bestUs"] for answer in timed] or first, ", ".join(kinds), answers)


def _outcome(answer: dict[str, Any]) -> str:
    if "panic" in answer:
        return "panic"
    return answer.get("errorClass") or ("Allocated" if answer["fit"] else "Refused")


def _problem(family: Family, state: Claims, salt: int = 0) -> Problem:
    classes = {device_class.metadata.name: device_class for device_class in family.classes}
    return Problem(
        node=family.node,
        claims=salted(family.claims, salt) if salt else family.claims,
        slices=family.slices,
        classes=salted(classes, salt) if salt else classes,
        allocated=state,
        new_share_id=_share_ids(),
    )


def _share_ids() -> Callable[[], str]:
    numbers = count()
    return lambda: f"00000000-0000-4000-8000-{next(numbers):012x}"


def _answer(call: Callable[[], Answer]) -> Answer | AllocationError:
    try:
        return call()
    except AllocationError as error:
        return error


def _timed(call: Callable[[], Answer]) -> tuple[Answer | AllocationError, float]:
    started = time.perf_counter()
    answer = _answer(call)
    return answer, (time.perf_counter() - started) * 1e6


def check_agreement(family: Family, ours: Ours, theirs: Theirs) -> None:
    """Raise RuntimeError where the devices differ: then the times mean nothing."""
    for answer, other in zip(ours.answers, theirs.answers, strict=False):
        chosen = [[entry["device"] for entry in claim["devices"]["results"]] for claim in other.get("result") or ()]
        if chosen != (_devices(answer) if isinstance(answer, Allocated) else []):
            raise RuntimeError(f"{family.name}, {family.devices} devices: {answer}, upstream {other}")


def report_feasible(referee: Referee, maker: Maker, sizes: Sequence[int], passes: int) -> str:
    """Measure the families with a solution and render them."""
    rows = []
    warm_ratios: list[float] = []
    object_ratios: list[float] = []
    first_ratios: list[float] = []
    for size in sizes:
        for family in maker.feasible(size):
            theirs = measure_theirs(family, referee, repeat=passes, timeout_ms=5000, states=None)
            ours = measure_ours(family, passes)
            check_agreement(family, ours, theirs)
            warm, objects, first = map(statistics.median, (ours.warm, ours.objects, ours.first))
            best, their_first = statistics.median(theirs.best), statistics.median(theirs.first)
            warm_ratios.append(statistics.median(b / w for b, w in zip(theirs.best, ours.warm, strict=True)))
            object_ratios.append(best / objects)
            first_ratios.append(their_first / first)
            outcome = ours.outcome if ours.outcome == theirs.outcome else f"{ours.outcome} / {theirs.outcome}"
            row = (warm, best, warm_ratios[-1], objects, object_ratios[-1], first, their_first, first_ratios[-1])
            rows.append((family.name, size, *row, outcome))
    titles = ("family", "devices", "warm us", "upstream us", "x", "objects us", "x", "first us", "upstream us", "x")
    worst = min(warm_ratios)
    mean = geometric_mean(warm_ratios)
    return (
        render_table((*titles, "outcome"), rows)
        + f"warm: geometric mean {mean:.2f} times faster, goal {GOAL_RATIO}: {_met(mean >= GOAL_RATIO)}; "
        + f"worst case {worst:.2f}, goal {GOAL_WORST:.2f}: {_met(worst >= GOAL_WORST)}\n"
        + f"objects: geometric mean {geometric_mean(object_ratios):.2f}, worst {min(object_ratios):.2f}; "
        + f"first: geometric mean {geometric_mean(first_ratios):.2f}, worst {min(first_ratios):.2f}\n"
    )


def report_infeasible(referee: Referee, maker: Maker, passes: int, timeout_ms: int) -> str:
    """Measure the families without a solution and render them."""
    rows = []
    slowest = 0.0
    for family in maker.infeasible():
        ours = measure_ours(family, passes)
        theirs = measure_theirs(family, referee, repeat=1, timeout_ms=timeout_ms, states=1)
        warm, first = statistics.median(ours.warm), statistics.median(ours.first)
        slowest = max(slowest, *ours.warm)
        row = (warm, max(ours.warm), first, ours.outcome, theirs.best[0], theirs.outcome)
        rows.append((family.name, family.devices, *row))
    titles = ("family", "devices", "warm us", "worst us", "first us", "outcome", "upstream us", "outcome")
    is_refuted = all(row[5] == "Refused" for row in rows)
    return (
        render_table(titles, rows)
        + f"slowest {slowest / 1000:.2f} ms, goal {GOAL_INFEASIBLE_US / 1000:.0f} ms: "
        + f"{_met(slowest < GOAL_INFEASIBLE_US)}; all refused: {_met(is_refuted)}\n"
    )


def _met(is_met: bool) -> str:  # noqa: FBT001 - a goal is met or missed
    return "met" if is_met else "missed"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.allocation", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of devices (default: 8 32 128)")
    parser.add_argument("--states", type=int, default=12, help="states of what is allocated, each family (default: 12)")
    parser.add_argument("--passes", type=int, default=15, help="how often each state is met (default: 15)")
    parser.add_argument("--timeout-ms", type=int, default=1000, help="what upstream may take to refuse (default: 1000)")
    parser.add_argument("--plain", action="store_true", help="use a class without selectors")
    parser.add_argument("--only", choices=("feasible", "infeasible"), help="leave the other families out")
    parser.add_argument("--quick", action="store_true", help="three states, three passes")
    options = parser.parse_args()
    states, passes = (3, 3) if options.quick else (options.states, options.passes)
    maker = Maker(states, options.plain)
    with upstream.start() as referee:
        if options.only != "infeasible":
            sys.stdout.write(report_feasible(referee, maker, options.sizes, passes))
        if options.only != "feasible":
            sys.stdout.write(report_infeasible(referee, maker, passes, options.timeout_ms))


if __name__ == "__main__":
    main()
