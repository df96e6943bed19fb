"""What claims ask for: each request as a list of alternatives, of which a plain request has one."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final

from controller.allocator.cell import Cell
from controller.allocator.constraint import Constraint
from controller.allocator.error import AllocationError, ErrorClass
from controller.allocator.feature import Features
from dra_driver.api.quantity import Quantity
from dra_driver.api.resource_v1 import (
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceSelector,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
)

_INT_MAX: Final = 2**63 - 1


@dataclass(slots=True, eq=False)
class Alternative:
    """A request, or one of its subrequests.

    `count` is how many devices it takes; with `is_all` those are `devices`, by index. `order` is that in which
    candidates are tried otherwise, `cells` holds what is known of each: of those `seen`, which includes those `unfit`
    (a bit for each). Alternatives of one `signature` see the same in every device. `results` are what allocations say
    of devices that nobody shares.
    """

    claim: int
    request: int
    position: int
    claim_name: str
    parent: str
    name: str
    device_class: DeviceClass
    selectors: tuple[DeviceSelector, ...]
    is_all: bool
    count: int
    is_admin: bool
    tolerations: tuple[DeviceToleration, ...]
    capacity: Mapping[str, Quantity]
    derived: Mapping[str, str]
    constraints: tuple[Constraint, ...] = ()
    devices: tuple[int, ...] = ()
    cells: list[Cell | None] = field(default_factory=list)
    order: Sequence[int] = ()
    signature: int = -1
    capacity_key: tuple[object, ...] = ()
    seen: int = 0
    unfit: int = 0
    results: dict[int, DeviceRequestAllocationResult] = field(default_factory=dict)

    @property
    def result_name(self) -> str:
        """The request as results name it: `main` or `main/sub`."""
        return f"{self.parent}/{self.name}" if self.parent else self.name

    @property
    def signed(self) -> tuple[object, ...]:
        """What decides how devices look to the request, whatever it is called."""
        return (self.device_class.spec.selectors, self.selectors, self.tolerations, self.capacity_key)

    @property
    def path(self) -> str:
        """The request under its claim: `namespace/claim/main/sub`."""
        return f"{self.claim_name}/{self.result_name}"

    @property
    def subject(self) -> str:
        """The request as texts name it."""
        return f"claim {self.claim_name}, request {self.name}"


@dataclass(slots=True, eq=False)
class Request:
    """Alternatives, the better ones first."""

    alternatives: tuple[Alternative, ...]
    has_subrequests: bool

    @property
    def least(self) -> int:
        """How many devices it takes at least."""
        return min(alternative.count for alternative in self.alternatives)


@dataclass(slots=True, eq=False)
class ClaimPlan:
    """A claim that is to be allocated."""

    claim: ResourceClaim
    name: str
    requests: list[Request] = field(default_factory=list)
    constraints: tuple[Constraint, ...] = ()
    is_configured: bool = False
    """Whether the claim or a class that it may use has configs."""

    def renew(self, claim: ResourceClaim) -> None:
        """Ask the same for another claim with an equal spec, after whatever the last one came to."""
        if claim is not self.claim:
            self.claim, self.name = claim, claim_name(claim)
            for request in self.requests:
                for alternative in request.alternatives:
                    alternative.claim_name = self.name
        for constraint in self.constraints:
            constraint.values.clear()


def claim_name(claim: ResourceClaim) -> str:
    """Give namespace/name."""
    meta = claim.metadata
    return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


@dataclass(frozen=True, slots=True)
class RequestParser:
    """Reads the requests of a claim and refuses what upstream refuses. All methods raise AllocationError."""

    claim: str
    classes: Mapping[str, DeviceClass]
    features: Features

    def validate(self, request: DeviceRequest) -> None:
        """Refuse what needs a gate that is off, and what is no request."""
        subject = f"claim {self.claim}, request {request.name}"
        if request.first_available and not self.features.prioritized_list:
            raise AllocationError(f"{subject}: has subrequests, but DRAPrioritizedList is off")
        if not request.first_available and request.exactly is None:
            raise AllocationError(f"{subject}: asks for nothing, want exactly or firstAvailable")
        parts = request.first_available or (request.exactly,)
        if not self.features.consumable_capacity and any(part and part.capacity is not None for part in parts):
            raise AllocationError(f"{subject}: asks for capacity, but DRAConsumableCapacity is off")

    def parse(self, request: DeviceRequest, position: tuple[int, int]) -> Iterator[Alternative]:
        """Yield the alternatives in order, checked one by one; `position` is that of claim and request."""
        if request.first_available:
            for index, subrequest in enumerate(request.first_available):
                yield self._parse_one(subrequest, (*position, index), (request.name, subrequest.name))
        elif request.exactly is not None:
            yield self._parse_one(request.exactly, (*position, 0), ("", request.name))

    def _parse_one(
        self, request: ExactDeviceRequest | DeviceSubRequest, position: tuple[int, int, int], names: tuple[str, str]
    ) -> Alternative:
        subject = f"claim {self.claim}, request {names[1]}"
        device_class = self._find_class(request, subject)
        mode = request.allocation_mode
        if mode not in ("ExactCount", "All"):
            raise AllocationError(f"{subject}: unknown allocation mode {mode!r}, want 'ExactCount' or 'All'")
        if mode == "ExactCount" and request.count > _INT_MAX:
            raise AllocationError(f"{subject}: count {request.count}, want at most {_INT_MAX}", ErrorClass.LIMIT)
        capacity = request.capacity.requests if request.capacity is not None else {}
        return Alternative(
            claim=position[0],
            request=position[1],
            position=position[2],
            claim_name=self.claim,
            parent=names[0],
            name=names[1],
            device_class=device_class,
            selectors=request.selectors,
            is_all=mode == "All",
            count=request.count if mode == "ExactCount" else 0,
            is_admin=isinstance(request, ExactDeviceRequest) and bool(request.admin_access),
            tolerations=request.tolerations,
            capacity=capacity,
            derived={entry.name: entry.expression for entry in request.derived_attributes},
            capacity_key=tuple((name, amount.nanos, amount.format) for name, amount in capacity.items()),
        )

    def _find_class(self, request: ExactDeviceRequest | DeviceSubRequest, subject: str) -> DeviceClass:
        if request.derived_attributes and not self.features.derived_attributes:
            raise AllocationError(f"{subject}: has derived attributes, but DRADerivedAttributes is off")
        for index, selector in enumerate(request.selectors):
            if selector.cel is None:
                raise AllocationError(f"{subject}, selector #{index}: has no CEL expression, want cel.expression")
        admin = request.admin_access if isinstance(request, ExactDeviceRequest) else None
        if admin is not None and not self.features.admin_access:
            raise AllocationError(f"{subject}: asks for admin access, but DRAAdminAccess is off")
        if not request.device_class_name:
            raise AllocationError(f"{subject}: has no device class name, want deviceClassName")
        device_class = self.classes.get(request.device_class_name)
        if device_class is None:
            close = get_close_matches(request.device_class_name, self.classes, 1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise AllocationError(f"{subject}: unknown device class {request.device_class_name!r}{hint}")
        return device_class


def parse_constraints(
    constraints: tuple[DeviceConstraint, ...], subject: str, features: Features
) -> tuple[Constraint, ...]:
    """Give the constraints of a claim, without devices yet. Raises AllocationError for one without attribute."""
    parsed = []
    for index, constraint in enumerate(constraints):
        attribute = constraint.match_attribute
        is_match = attribute is not None
        if attribute is None:
            attribute = constraint.distinct_attribute
        if attribute is None:
            raise AllocationError(
                f"claim {subject}, constraint #{index}: names no attribute, want matchAttribute or distinctAttribute"
            )
        requests = frozenset(constraint.requests)
        parsed.append(Constraint(index, attribute, is_match, requests, features.list_type_attributes))
    return tuple(parsed)
