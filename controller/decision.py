"""What can be decided about a Pod, as data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from dra_driver.api.resource_v1 import AllocationResult, ResourceClaim


class Code(StrEnum):
    """Why a Pod gets nothing now, as `MEANINGS` has it."""

    GATED = "OtherGates"
    NOT_OURS = "NoOwnClaim"
    CLAIM_MISSING = "ClaimMissing"
    CLASS_MISSING = "ClassMissing"
    MIXED = "ClaimMixesAllocators"
    CLAIM_FULL = "ClaimFull"
    INVALID = "ClaimInvalid"
    NO_NODE = "NoNode"
    NO_TAINT = "NoTaint"
    NODE = "NodeDoesNotFit"
    DEVICES = "DevicesDoNotFit"
    UNDECIDED = "Undecided"
    FAILED = "DecisionFailed"
    FOREIGN = "KubeSchedulerRefuses"


MEANINGS: Final[Mapping[Code, str]] = {
    Code.GATED: "the Pod has other scheduling gates, too",
    Code.NOT_OURS: "the Pod has the controller's gate, and no claim that the controller allocates",
    Code.CLAIM_MISSING: "a claim of the Pod is not there yet, or not made from its template yet",
    Code.CLASS_MISSING: "a claim names a DeviceClass that is not there",
    Code.MIXED: "a claim names classes of the controller and classes of kube-scheduler",
    Code.CLAIM_FULL: "a claim that is to be shared is used by as many Pods as can be",
    Code.INVALID: "a claim, class or slice is such that nothing can be decided",
    Code.NO_NODE: "no Node was given to the controller",
    Code.NO_TAINT: "the devices of the Nodes that were given to the controller lack its taint",
    Code.NODE: "no Node takes the Pod, whatever its devices",
    Code.DEVICES: "the devices of no Node serve all claims",
    Code.UNDECIDED: "the search was given up; it is tried again with a larger budget",
    Code.FAILED: "deciding ran into a fault of the controller's own, which is logged",
    Code.FOREIGN: "the Pod is kube-scheduler's, which found no node; why is told, and nothing else done",
}


@dataclass(frozen=True, slots=True)
class Place:
    """The Pod goes to `node`: write `allocations`, add it to `reservations`, then remove its gate.

    `promises` are what kube-scheduler would find for claims that it allocates itself.
    """

    node: str
    allocations: tuple[tuple[ResourceClaim, AllocationResult], ...] = ()
    reservations: tuple[ResourceClaim, ...] = ()
    promises: tuple[tuple[ResourceClaim, AllocationResult], ...] = ()


@dataclass(frozen=True, slots=True)
class TakeBack:
    """The rest of the Pod's claims does not fit where these are allocated."""

    claims: tuple[ResourceClaim, ...]
    because: "Refuse"


@dataclass(frozen=True, slots=True)
class Refuse:
    """The Pod has to wait, until something changes.

    `claims` are those that are not served. `misfits` says why nodes do not take the Pod, `short` are nodes on which the
    devices do not suffice, `undecided` those of them of which that is not certain.
    """

    code: Code
    text: str
    claims: tuple[ResourceClaim, ...] = ()
    misfits: Mapping[str, str] = field(default_factory=dict)
    short: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Leave:
    """There is nothing to do: the Pod is not the controller's, or needs nothing more of it."""


Decision = Place | TakeBack | Refuse | Leave
