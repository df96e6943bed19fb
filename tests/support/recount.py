"""Counting what a summary says anew, one device and one request at a time."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import msgspec

from controller.allocator import Allocated, AllocationError, Answer, Problem, Refused, SelectorCache, allocate
from controller.allocator.candidate import Candidate
from dra_driver.api.resource_v1 import CELDeviceSelector, DeviceRequest, DeviceSelector, DeviceToleration, ResourceClaim
from tests.support.allocation import FakeCompiler
from tests.support.allocation_strategy import FUNCTIONS

TALLY = re.compile(
    r"(?:claim default/(?P<claim>claim-\d), )?request (?P<request>r\d): "
    r"(?P<matching>none|\d+) of (?P<total>\d+) devices? match(?:es)?(?P<rest>.*)"
)

CONSTRAINT = re.compile(
    r"would fit without (?P<kind>match|distinct)Attribute gpu\.example\.com/(?P<attribute>\w) "
    r"\(at most (?P<most>\d+) free devices .*?, want (?P<wanted>\d+)\)"
)


def answer_of(problem: Problem) -> Answer | type[AllocationError]:
    """Allocate with the selectors of `allocation_strategy`."""
    try:
        return allocate(problem, SelectorCache(FakeCompiler(FUNCTIONS)))
    except AllocationError:
        return AllocationError


def check_tally(problems: Sequence[Problem], found: re.Match[str]) -> None:
    """Hold what is said of a request on the nodes of `problems`, which are all that refuse, against a recount."""
    claim = next(claim for claim in problems[0].claims if claim.metadata.name == (found["claim"] or "claim-0"))
    request = next(request for request in claim.spec.devices.requests if request.name == found["request"])
    for problem in problems:
        assert answer_of(replace(problem, claims=[_asking(claim, request)])) in (Refused(), AllocationError)
    devices = _devices(problems)
    assert int(found["total"]) == len(devices)
    matching = _count(problems, claim, request, devices, is_idle=True)
    assert found["matching"] == ("none" if not matching else str(matching))
    said = re.search(r", (\d+) free", found["rest"])
    assert (int(said[1]) if said is not None else 0) == _count(problems, claim, request, devices, is_idle=False)


def check_constraint(problems: Sequence[Problem], found: re.Match[str]) -> None:
    """Hold what is said of how far devices are from a constraint against a recount, node by node."""
    attribute, kind = found["attribute"], found["kind"]
    claims = [claim for claim in problems[0].claims if len(claim.spec.devices.requests) == 1]
    wanted = [claim.spec.devices.requests[0].exactly for claim in claims]
    assert int(found["wanted"]) in [exactly.count for exactly in wanted if exactly is not None]
    counts = set()
    for problem in problems:
        for claim in claims:
            if claim.spec.devices.requests[0].exactly is not None:
                counts.add(_count_agreeing(problem, claim, attribute, is_match=kind == "match"))
    assert int(found["most"]) in counts


def _count_agreeing(problem: Problem, claim: ResourceClaim, attribute: str, *, is_match: bool) -> int:
    request = claim.spec.devices.requests[0]
    values = [
        device.attributes[attribute].int
        for slice_ in problem.slices
        for device in slice_.spec.devices
        if (slice_.spec.pool.name, device.name) in _devices([problem])
        and _count([problem], claim, request, [(slice_.spec.pool.name, device.name)], is_idle=False)
    ]
    return max(Counter(values).values(), default=0) if is_match else len(set(values))


def _devices(problems: Sequence[Problem]) -> list[tuple[str, str]]:
    """Give the devices of complete pools by pool and name."""
    slices = problems[0].slices
    nodes = {problem.node.metadata.name for problem in problems}
    complete = {slice_.spec.pool.name for slice_ in slices if slice_.metadata.name.endswith("-b")}
    return [
        (slice_.spec.pool.name, device.name)
        for slice_ in slices
        for device in slice_.spec.devices
        if slice_.spec.pool.name in complete & {"shared", *nodes}
    ]


def _count(
    problems: Sequence[Problem],
    claim: ResourceClaim,
    request: DeviceRequest,
    devices: Sequence[tuple[str, str]],
    *,
    is_idle: bool,
) -> int:
    """Count the devices that serve the request on one of the nodes; idle: nobody uses any, taints are tolerated."""
    exactly = request.exactly
    assert exactly is not None
    one = msgspec.structs.replace(
        exactly,
        allocation_mode="ExactCount",
        count=1,
        selectors=(DeviceSelector(cel=CELDeviceSelector(expression="chosen")), *exactly.selectors),
        tolerations=(DeviceToleration(operator="Exists"),) if is_idle else exactly.tolerations,
    )
    asked = _asking(claim, msgspec.structs.replace(request, exactly=one))
    questions = [
        replace(problem, claims=[asked], allocated=() if is_idle else problem.allocated) for problem in problems
    ]
    return sum(any(_serves(question, device) for question in questions) for device in devices)


def _serves(question: Problem, device: tuple[str, str]) -> bool:
    def is_chosen(candidate: Candidate) -> bool:
        return candidate.id[1:] == device

    try:
        answer = allocate(question, SelectorCache(FakeCompiler({**FUNCTIONS, "chosen": is_chosen})))
    except AllocationError:
        return False
    return isinstance(answer, Allocated)


def _asking(claim: ResourceClaim, request: DeviceRequest) -> ResourceClaim:
    """A claim for this request alone, without constraints."""
    devices = msgspec.structs.replace(claim.spec.devices, requests=(request,), constraints=())
    return msgspec.structs.replace(claim, spec=msgspec.structs.replace(claim.spec, devices=devices))
