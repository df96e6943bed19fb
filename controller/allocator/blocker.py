"""What keeps claims from a node, as things that can be removed one by one.

A set of blockers is irreducible if the claims fit once all of them are removed, and do not as soon as one stays.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum


class BlockerCode(StrEnum):
    """Kinds of blockers, those first that a person would rather remove. The text says what removing means."""

    IN_USE = "InUse"
    """Others hold the device or shares of it: they let it go."""
    TAINT = "TaintNotTolerated"
    """The device has a taint: it is tolerated."""
    POOL_INCOMPLETE = "PoolIncomplete"
    """Slices of the pool are not there yet: what is there counts."""
    BINDING_CONDITIONS = "BindingConditionsOff"
    """The device has binding conditions and the gate is off: it is on."""
    NODE_OPERATIONS = "NodeOperationsNotSkippable"
    """The device skips node operations and the node does not know that: it does."""
    PARTITIONS_OFF = "PartitionableDevicesOff"
    """The device consumes counters and the gate is off: it is on."""
    OTHER_NODE = "DeviceOfOtherNode"
    """The device is for other nodes: it is for this one, too."""
    COUNTERS = "CountersShort"
    """The counters of the pool do not suffice, or its compatibility groups exclude each other: they do not matter."""
    ROOM = "CapacityTaken"
    """What is left of the device's capacity does not suffice for all of its shares: it does."""
    CAPACITY = "CapacityTooSmall"
    """The device is too small for the request: it is large enough."""
    CONSTRAINT = "ConstraintViolated"
    """Devices enough have not in common, or not apart, what a constraint wants: the constraint is gone."""
    REQUEST_SELECTOR = "RequestSelectorFalse"
    """A selector of the request is false for the device: it is true."""
    CLASS_SELECTOR = "ClassSelectorFalse"
    """A selector of the class is false for the device: it is true."""
    REQUEST = "TooFewDevices"
    """The node has not devices enough for the request and all others: the request is gone."""


@dataclass(frozen=True, slots=True, order=True)
class Blocker:
    """One thing in the way; what it is about is set.

    `request` is `claim/request` or `claim/request/subrequest`, of a constraint the claim alone; `device` is
    `driver/pool/device`, `pool` is `driver/pool`, `constraint` an index.
    """

    code: BlockerCode
    request: str = ""
    device: str = ""
    pool: str = ""
    constraint: int = -1


Fits = Callable[[frozenset[Blocker]], bool]


def reduce_blockers(blockers: Sequence[Blocker], fits: Fits) -> tuple[Blocker, ...]:
    """Give an irreducible subset of `blockers`, made of the first ones where there is a choice.

    `fits` tells whether the claims fit once some are removed; it must hold for all of them.
    Halves at a time (QuickXplain): what is left out early costs little.
    """
    return tuple(_reduce(frozenset(), is_changed=False, blockers=list(blockers), fits=fits))


def _reduce(removed: frozenset[Blocker], *, is_changed: bool, blockers: list[Blocker], fits: Fits) -> list[Blocker]:
    if not blockers or (is_changed and fits(removed)):
        return []
    if len(blockers) == 1:
        return blockers
    middle = len(blockers) // 2
    first, second = blockers[:middle], blockers[middle:]
    late = _reduce(removed | set(first), is_changed=True, blockers=second, fits=fits)
    early = _reduce(removed | set(late), is_changed=bool(late), blockers=first, fits=fits)
    return early + late
