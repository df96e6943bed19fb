"""Our answers about allocation."""

import json
import time
import uuid
from collections.abc import Callable

from controller.allocator.allocation import Allocated, Problem, Undecided
from controller.allocator.allocation import Answer as Outcome
from controller.allocator.allocation import allocate as find_allocation
from controller.allocator.error import AllocationError
from controller.allocator.expression import CelCompiler
from controller.allocator.feature import Features, features_of_names
from controller.allocator.selector import SelectorCache
from dra_driver.api.codec import decode, encode
from dra_driver.api.core_v1 import Node
from dra_driver.api.resource_v1 import DeviceClass, ResourceClaim, ResourceSlice
from tests.referee.process import Answer, Question


def allocate(question: Question) -> Answer:
    """Answer `allocate`. The first call compiles, the others find what is compiled."""
    problem = read_problem(question)
    selectors = SelectorCache(CelCompiler())
    answer, first = time_answer(lambda: find_allocation(problem, selectors))
    repeats = range(int(question.get("repeat") or 1) - 1)
    best = min((time_answer(lambda: find_allocation(problem, selectors))[1] for _ in repeats), default=first)
    return {**answer, "firstUs": first, "bestUs": min(first, best)}


def read_problem(question: Question) -> Problem:
    """Give the problem that a question poses."""
    features = question.get("features")
    classes = decode(encode(question.get("classes") or []), tuple[DeviceClass, ...])
    return Problem(
        node=decode(encode(question.get("node") or {}), Node),
        claims=decode(encode(question.get("claims") or []), tuple[ResourceClaim, ...]),
        slices=decode(encode(question.get("slices") or []), tuple[ResourceSlice, ...]),
        classes={device_class.metadata.name: device_class for device_class in classes},
        allocated=decode(encode(question.get("allocated") or []), tuple[ResourceClaim, ...]),
        features=Features() if features is None else features_of_names(features),
        refuses_stale_shares=False,
        new_share_id=lambda: str(uuid.uuid4()),
    )


def time_answer(allocate_: Callable[[], Outcome]) -> tuple[Answer, float]:
    """Give what an allocation comes to, and how many microseconds it takes."""
    started = time.perf_counter()
    answer: Answer = {"fit": False, "result": None}
    try:
        outcome = allocate_()
    except AllocationError as error:
        took = time.perf_counter() - started
        answer |= {"error": str(error), "errorClass": str(error.error_class), "nodeOnly": error.node_only}
        return answer, took * 1e6
    took = time.perf_counter() - started
    if isinstance(outcome, Allocated):
        answer = {"fit": True, "result": json.loads(encode(outcome.results))}
    elif isinstance(outcome, Undecided):
        answer["undecided"] = True
    return answer, took * 1e6
