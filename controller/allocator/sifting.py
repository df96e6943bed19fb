"""What each request finds on a node: device by device, whether the request could have it, and else why not."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from controller.allocator.cell import UNLISTED
from controller.allocator.constraint import UNCOMPARABLE, Constraint
from controller.allocator.error import AllocationError
from controller.allocator.ledger import Ledger
from controller.allocator.pool import Pool
from controller.allocator.reason import Reason, ReasonCode, explain_misfit, format_nanos
from controller.allocator.relaxation import request_path
from controller.allocator.request import Alternative, ClaimPlan, Request
from controller.allocator.table import Table
from dra_driver.api.quantity import Quantity

UNSUITED: Final = frozenset({ReasonCode.ERROR, *(ReasonCode(misfit.value) for misfit in UNLISTED)})
"""Why a device is not among those that a request means, whoever uses it."""


@dataclass(frozen=True, slots=True)
class Sifted:
    """A device as one request sees it; `reason` is None where the request could have it, were it alone.

    `is_local`: its slice is of one node, so that no other node has the device.
    """

    device: str
    is_local: bool
    reason: Reason | None


@dataclass(frozen=True, slots=True)
class Sifting:
    """All devices of a node as one request sees them; `request` is its path, `wanted` how many it wants."""

    request: str
    wanted: int
    is_all: bool
    is_admin: bool
    devices: tuple[Sifted, ...]
    pools: tuple[Reason, ...]

    @property
    def usable(self) -> int:
        """How many devices the request could have, were it alone."""
        return sum(device.reason is None for device in self.devices)

    @property
    def is_lacking(self) -> bool:
        """Whether they are certainly too few."""
        return self.usable < max(self.wanted, 1 if self.is_all else 0)


def sift_request(table: Table, request: Request) -> tuple[Sifting, ...]:
    """Sift a node's devices for each alternative of a request."""
    ledger = Ledger(table, counts=[0] * len(table.claims))
    pools = tuple(_explain_pool(pool) for pool in table.pools if not pool.is_usable)
    return tuple(_sift(ledger, alternative, pools) for alternative in request.alternatives)


def count_agreeing(
    table: Table, plan: ClaimPlan, constraint: Constraint, siftings: Sequence[Sequence[Sifting]]
) -> tuple[int, int]:
    """Give how many devices that a request could have alone agree as the constraint wants, and how many it wants.

    Both are 0 where the devices suffice, or where it is about several requests, or about lists.
    """
    covered = [
        (request, own[0])
        for request, own in zip(plan.requests, siftings, strict=True)
        if any(constraint in alternative.constraints for alternative in request.alternatives)
    ]
    if len(covered) != 1 or covered[0][0].has_subrequests or constraint.lists:
        return 0, 0
    (alternative,), sifting = covered[0][0].alternatives, covered[0][1]
    indexes = [index for index, device in enumerate(sifting.devices) if device.reason is None]
    try:
        values = Counter(table.value(alternative, constraint, index) for index in indexes)
    except AllocationError:
        return 0, 0
    del values[None]
    most = max(values.values(), default=0) if constraint.is_match else len(values)
    return (most, alternative.count) if most < alternative.count and UNCOMPARABLE not in values else (0, 0)


def explain_request(request: Request, siftings: Sequence[Sifting]) -> Reason:
    """Make the tree of a request out of what it found."""
    children = tuple(_explain_sifting(sifting) for sifting in siftings)
    if not request.has_subrequests:
        return children[0]
    return Reason(ReasonCode.NO_ALTERNATIVE, request_path(request), children=children)


def _explain_sifting(sifting: Sifting) -> Reason:
    code = ReasonCode.TOO_FEW_DEVICES if sifting.usable < max(sifting.wanted, 1) else ReasonCode.COMPETES
    misfits = tuple(device.reason for device in sifting.devices if device.reason is not None)
    children = (*sifting.pools, *misfits)
    return Reason(code, sifting.request, seen=str(sifting.usable), wanted=str(sifting.wanted), children=children)


def _sift(ledger: Ledger, alternative: Alternative, pools: tuple[Reason, ...]) -> Sifting:
    table = ledger.table
    devices = tuple(
        Sifted(candidate.subject, bool(candidate.slice.spec.node_name), _explain_device(ledger, alternative, index))
        for index, candidate in enumerate(table.candidates)
    )
    wanted = len(alternative.devices) if alternative.is_all else alternative.count
    return Sifting(alternative.path, wanted, alternative.is_all, alternative.is_admin, devices, pools)


def _explain_pool(pool: Pool) -> Reason:
    code = ReasonCode.POOL_INCOMPLETE if pool.is_incomplete else ReasonCode.POOL_INVALID
    return Reason(code, "/".join(pool.id), pool.invalid)


def _explain_device(ledger: Ledger, alternative: Alternative, index: int) -> Reason | None:
    """Say what keeps a device from a request; first what does so whoever uses it."""
    table = ledger.table
    candidate = table.candidates[index]
    is_free = ledger.is_free(alternative, index)
    in_use = Reason(ReasonCode.IN_USE, candidate.subject)
    try:
        misfit = next(table.misfits(alternative, candidate), None)
        if misfit is not None:
            reason = explain_misfit(table, misfit, alternative, candidate)
            return in_use if not is_free and reason.code not in UNSUITED else reason
        cell = table.cell(alternative, index)
    except AllocationError as error:
        return Reason(ReasonCode.ERROR, candidate.subject, seen=str(error))
    if not is_free:
        return in_use
    if not ledger.has_room(cell, index):
        return _explain_room(ledger, alternative, index)
    if candidate.consumption:
        return _explain_counters(ledger, index)
    return None


def _explain_room(ledger: Ledger, alternative: Alternative, index: int) -> Reason:
    candidate = ledger.table.candidates[index]
    held = ledger.table.state.consumed[candidate.id]
    quantities = ledger.table.cell(alternative, index).quantities or {}
    short = [
        (name, quantity)
        for name, quantity in quantities.items()
        if held[name] + quantity.nanos > candidate.capacity[name]
    ]
    left = ((name, Quantity(candidate.capacity[name] - held[name], quantity.format)) for name, quantity in short)
    seen = ", ".join(f"{name} {quantity}" for name, quantity in left)
    wanted = ", ".join(f"{name} {quantity}" for name, quantity in short)
    return Reason(ReasonCode.ROOM, candidate.subject, seen, wanted)


def _explain_counters(ledger: Ledger, index: int) -> Reason | None:
    """Say which counters are short; those of a shared device that somebody has are charged already.

    A pool of which more is held than there is gives away no counter at all, until that is put right.
    """
    table = ledger.table
    candidate = table.candidates[index]
    if _is_charged(ledger, index):
        return None
    pool = table.pool_of[index]
    available = ledger.available_counters(pool)
    asked = available if pool in table.stock.overcommitted else candidate.consumption
    wanted = {key: candidate.consumption.get(key, 0) for key in asked}
    short = [key for key, amount in wanted.items() if available[key] < amount]
    if not short:
        return None
    return Reason(
        ReasonCode.COUNTERS,
        candidate.subject,
        ", ".join(f"{'/'.join(key)} {format_nanos(available[key])}" for key in short),
        ", ".join(f"{'/'.join(key)} {format_nanos(wanted[key])}" for key in short),
    )


def _is_charged(ledger: Ledger, index: int) -> bool:
    table = ledger.table
    candidate = table.candidates[index]
    if table.pool_of[index] in table.uncounted:
        return True
    is_share = candidate.is_shareable and table.features.consumable_capacity
    return is_share and candidate.id in table.state.shares
