"""What can be decided about a Pod, as data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from dra_driver.api.resource_v1 import AllocationResult, ResourceClaim


class Code(StrEnum):
    """Why a Pod gets nothing now."""

    GATED = "OtherGates"
    """It has other scheduling gates, too."""
    NOT_OURS = "NoOwnClaim"
    """It has the controller's gate, and no claim that the controller allocates."""
    CLAIM_MISSING = "ClaimMissing"
    CLASS_MISSING = "ClassMissing"
    MIXED = "ClaimMixesAllocators"
    """A claim names classes of the controller and classes of kube-scheduler."""
    CLAIM_FULL = "ClaimFull"
    """A claim that is to be shared is used by as many Pods as can be."""
    INVALID = "ClaimInvalid"
    """A claim, class or slice is such that nothing can be decided."""
    NO_NODE = "NoNode"
    """No node was given to the controller."""
    NO_TAINT = "NoTaint"
    """Devices of the nodes that were given to the controller lack its taint."""
    NODE = "NodeDoesNotFit"
    """No node takes the Pod, whatever its devices."""
    DEVICES = "DevicesDoNotFit"
    UNDECIDED = "Undecided"
    """The search was given up; it is tried again with a larger budget."""
    FAILED = "DecisionFailed"
    """Deciding ran into a fault of the controller's own, which is logged."""
    FOREIGN = "KubeSchedulerRefuses"
    """The Pod is kube-scheduler's, which found no node; why is told, and nothing else done."""


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
