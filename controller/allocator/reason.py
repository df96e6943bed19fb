"""Reasons of a refusal: machine-readable codes with the value seen and the value wanted, as a tree."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from controller.allocator.candidate import Candidate
from controller.allocator.capacity import plan_demand
from controller.allocator.cell import Misfit
from controller.allocator.request import Alternative
from controller.allocator.table import Table
from controller.allocator.taint import untolerated_taint
from dra_driver.api.quantity import Quantity
from dra_driver.api.resource_v1 import DeviceSelector


class ReasonCode(StrEnum):
    """What a reason says, as `MEANINGS` has it. The codes of devices are those of blockers."""

    CLAIM = "ClaimDoesNotFit"
    NO_ALTERNATIVE = "NoAlternativeFits"
    TOO_FEW_DEVICES = "TooFewDevices"
    COMPETES = "DevicesCompeted"
    NODE = "NodeDoesNotFit"
    MORE = "AndMore"
    POOL_INCOMPLETE = "PoolIncomplete"
    POOL_INVALID = "PoolInvalid"
    IN_USE = "InUse"
    ROOM = "CapacityTaken"
    COUNTERS = "CountersShort"
    ERROR = "SelectorFails"
    COMPILE = "SelectorDoesNotCompile"
    LIMIT = "TooManyDevices"
    MALFORMED = "Malformed"
    REQUEST_ERROR = "RequestUndecidable"
    BINDING_CONDITIONS = "BindingConditionsOff"
    CLASS_SELECTOR = "ClassSelectorFalse"
    REQUEST_SELECTOR = "RequestSelectorFalse"
    OTHER_NODE = "DeviceOfOtherNode"
    CAPACITY = "CapacityTooSmall"
    NODE_OPERATIONS = "NodeOperationsNotSkippable"
    PARTITIONS_OFF = "PartitionableDevicesOff"
    TAINT = "TaintNotTolerated"


MEANINGS: Final[Mapping[ReasonCode, str]] = {
    ReasonCode.CLAIM: "a claim that does not fit; its requests are below it",
    ReasonCode.NO_ALTERNATIVE: "a request of which no subrequest can be served",
    ReasonCode.TOO_FEW_DEVICES: "a request for which there are not devices enough, even if it were alone",
    ReasonCode.COMPETES: "a request with devices enough for itself, but not with its constraints and all others",
    ReasonCode.NODE: "of a request over several nodes: what it finds on one of them, and on nodes that are alike",
    ReasonCode.MORE: "there are `count` more of these, left out for brevity",
    ReasonCode.POOL_INCOMPLETE: "slices of the pool are not published yet",
    ReasonCode.POOL_INVALID: "the pool's slices contradict each other",
    ReasonCode.IN_USE: "another claim holds the device, or shares of it",
    ReasonCode.ROOM: "what is left of the device's capacity is less than is asked for",
    ReasonCode.COUNTERS: "what is left of the counters that the device draws from is less than it takes",
    ReasonCode.ERROR: "a selector ends with an error for the device",
    ReasonCode.COMPILE: "a selector does not compile",
    ReasonCode.LIMIT: "the claim asks for more devices than a claim may have",
    ReasonCode.MALFORMED: "a claim, class or slice is such that nothing can be decided",
    ReasonCode.REQUEST_ERROR: "a request with an error below it, and therefore no allocation at all",
    ReasonCode.BINDING_CONDITIONS: "the device has binding conditions, and the feature gate is off",
    ReasonCode.CLASS_SELECTOR: "a selector of the DeviceClass is false for the device",
    ReasonCode.REQUEST_SELECTOR: "a selector of the request is false for the device",
    ReasonCode.OTHER_NODE: "the device is for other nodes",
    ReasonCode.CAPACITY: "the device is too small for the request, or cannot be shared in such amounts",
    ReasonCode.NODE_OPERATIONS: "the device skips operations of a kubelet that does not know how",
    ReasonCode.PARTITIONS_OFF: "the device draws from counters, and the feature gate is off",
    ReasonCode.TAINT: "the device has a taint that the request does not tolerate",
}


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason; `subject` is the claim, request, node, pool or device that it is about.

    `count` tells of how many nodes or devices it is true; the subject is the first of them.
    """

    code: ReasonCode
    subject: str
    seen: str = ""
    wanted: str = ""
    children: tuple["Reason", ...] = ()
    count: int = 1

    def walk(self) -> Iterator["Reason"]:
        """Yield the reason and all below it."""
        yield self
        for child in self.children:
            yield from child.walk()


def explain_misfit(table: Table, misfit: Misfit, alternative: Alternative, candidate: Candidate) -> Reason:
    """Say why a device can never serve a request."""
    seen, wanted = _values(table, misfit, alternative, candidate)
    return Reason(ReasonCode(misfit.value), candidate.subject, seen, wanted)


def _values(table: Table, misfit: Misfit, alternative: Alternative, candidate: Candidate) -> tuple[str, str]:
    match misfit:
        case Misfit.CLASS_SELECTOR:
            seen, _ = _false_selector(table, candidate, alternative.device_class.spec.selectors)
            return seen, f"class {alternative.device_class.metadata.name}"
        case Misfit.REQUEST_SELECTOR:
            return _false_selector(table, candidate, alternative.selectors)
        case Misfit.CAPACITY:
            fractional = table.features.fractional_capacity_range
            problem = plan_demand(alternative.capacity, candidate.device.capacity, fractional=fractional)
            wanted = ", ".join(f"{name} {amount}" for name, amount in alternative.capacity.items())
            return str(problem), wanted
        case Misfit.TAINT:
            taint = untolerated_taint(candidate.taints, alternative.tolerations)
            return f"{taint.key}={taint.value}:{taint.effect}" if taint is not None else "", "a toleration"
        case _:
            return "", ""


def _false_selector(table: Table, candidate: Candidate, selectors: tuple[DeviceSelector, ...]) -> tuple[str, str]:
    """Give what the first selector that is false sees of the device, and the selector."""
    index = table.selectors.first_mismatch(candidate, selectors, candidate.subject)
    cel = selectors[index].cel if index is not None else None
    if cel is None:
        return "false", ""
    return table.selectors.describe(candidate, cel.expression) or "false", cel.expression


def format_nanos(nanos: int) -> str:
    """Write an amount of nano-units as a quantity."""
    return str(Quantity(nanos))
