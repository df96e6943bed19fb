"""In which order devices are tried, where upstream's first fit is not what is wanted.

A policy only orders: whatever it is, claims fit or do not fit as before.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import replace
from enum import StrEnum
from fractions import Fraction
from itertools import groupby
from typing import Final

from controller.allocator.candidate import find_link_domain
from controller.allocator.error import AllocationError
from controller.allocator.ledger import Ledger
from controller.allocator.request import Alternative
from controller.allocator.table import Table
from dra_driver.api.name import quote
from dra_driver.api.resource_v1 import DeviceClass, ResourceClaim

ANNOTATION: Final = "dra-driver.io/policy"


class Policy(StrEnum):
    """What is tried first."""

    FIRST_FIT = "first-fit"
    """Pools by name, devices in slice order: what upstream does."""
    BINPACK = "binpack"
    """Devices that are used most, then those of the link domain or counter set that is used most."""
    SPREAD = "spread"
    """Devices that are used least, then those of the link domain or counter set that is used least."""
    BEST_FIT = "best-fit"
    """What leaves least over: the smallest device or partition, of the counter set that has least left."""
    TOPOLOGY = "topology"
    """Devices of the smallest link domain that has enough; a single one from outside of any domain first."""


def parse_policy(text: str) -> Policy:
    """Read a policy. Raises ValueError."""
    try:
        return Policy(text)
    except ValueError:
        known = ", ".join(repr(str(policy)) for policy in Policy)
        raise ValueError(f"policy: unknown policy {quote(text)}, want one of {known}") from None


def policy_of(claim: ResourceClaim, device_class: DeviceClass) -> Policy:
    """Give the policy that the claim asks for, else its class, else first-fit. Raises AllocationError."""
    for subject, meta in (("claim", claim.metadata), ("class", device_class.metadata)):
        text = meta.annotations.get(ANNOTATION)
        if text is not None:
            try:
                return parse_policy(text)
            except ValueError as error:
                raise AllocationError(f"{subject} {meta.name}: annotation {ANNOTATION}: {error}") from error
    return Policy.FIRST_FIT


def order_candidates(table: Table, alternative: Alternative, policy: Policy) -> Sequence[int]:
    """Give the candidates in the order in which the request is to try them; `All` has no choice."""
    places = range(len(table.candidates))
    if policy is Policy.FIRST_FIT or alternative.is_all:
        return places
    usage = _Usage(table, alternative)
    key = {
        Policy.BINPACK: usage.fullest,
        Policy.SPREAD: usage.emptiest,
        Policy.BEST_FIT: usage.tightest,
        Policy.TOPOLOGY: usage.nearest,
    }[policy]
    return sorted(places, key=lambda index: (*key(index), index))


def arrange(table: Table, alternative: Alternative, policy: Policy) -> tuple[Alternative, ...]:
    """Give the alternative with the order of a policy; first with each link domain that suffices, if that matters.

    So a mixture of domains is tried once no domain alone does, whatever comes after the request.
    """
    alternative.order = order_candidates(table, alternative, policy)
    if policy is not Policy.TOPOLOGY or alternative.is_all or alternative.count <= 1:
        return (alternative,)
    usage = _Usage(table, alternative)
    domains = groupby((index for index in alternative.order if usage.is_of_one(index)), usage.nearest)
    return (*(replace(alternative, order=tuple(places)) for _, places in domains), alternative)


class _Usage:
    """How far devices, and what they belong to, are used; keys sort what comes first to the front."""

    def __init__(self, table: Table, alternative: Alternative) -> None:
        self._table = table
        self._alternative = alternative
        self._ledger = Ledger(table)
        indexes = range(len(table.candidates))
        self._groups = [self._group(index) for index in indexes]
        self._domains = [self._domain(index) for index in indexes]
        self._sizes = Counter(self._groups)
        self._used = Counter(self._groups[index] for index in indexes if self._is_used(index))
        self._free = Counter(self._domains[index] for index in indexes if self._is_eligible(index))

    def fullest(self, index: int) -> tuple[object, ...]:
        return (-self._share(index), -self._group_share(index))

    def emptiest(self, index: int) -> tuple[object, ...]:
        return (self._share(index), self._group_share(index))

    def tightest(self, index: int) -> tuple[object, ...]:
        """Sort by what the device takes of its counter sets, what they have left, and what the device has left."""
        candidate = self._table.candidates[index]
        taken = sum(candidate.consumption.values())
        pool = self._table.pool_of[index]
        sets = {key[0] for key in candidate.consumption} if self._table.features.partitionable_devices else set()
        available = self._ledger.available_counters(pool) if sets else {}
        left = sum(amount for key, amount in available.items() if key[0] in sets)
        return (taken, left, self._left(index))

    def nearest(self, index: int) -> tuple[object, ...]:
        """Sort by how well the device's link domain suits the number of devices that are asked for."""
        count, domain = self._alternative.count, self._domains[index]
        free = self._free[domain]
        if domain is None:
            return (0, 0, "") if count == 1 else (2, 0, "")
        if free >= count:
            return (1, free, str(domain))
        return (2, -free, str(domain))

    def is_of_one(self, index: int) -> bool:
        """Tell whether the device's link domain alone suffices."""
        domain = self._domains[index]
        return domain is not None and self._free[domain] >= self._alternative.count

    def _left(self, index: int) -> int:
        """Give what is left of the capacities, in nano-units. They are of the same kinds on like devices."""
        candidate = self._table.candidates[index]
        held = self._table.state.consumed.get(candidate.id)
        return sum(amount - (held[name] if held else 0) for name, amount in candidate.capacity.items())

    def _share(self, index: int) -> Fraction:
        """Give how far the device is used, between 0 and 1: by the capacity of which most is taken."""
        candidate = self._table.candidates[index]
        state = self._table.state
        if candidate.id in state.whole or not candidate.capacity:
            return Fraction(int(self._is_used(index)))
        held = state.consumed.get(candidate.id, Counter())
        parts = [Fraction(held[name], amount) for name, amount in candidate.capacity.items() if amount > 0]
        return max(parts, default=Fraction(0))

    def _group_share(self, index: int) -> Fraction:
        group = self._groups[index]
        return Fraction(self._used[group], self._sizes[group])

    def _is_used(self, index: int) -> bool:
        return self._table.state.is_allocated(self._table.candidates[index].id)

    def _is_eligible(self, index: int) -> bool:
        """Tell whether the request could have the device; one on which a selector fails comes last of all."""
        if not self._ledger.is_free(self._alternative, index):
            return False
        try:
            cell = self._table.cell(self._alternative, index)
        except AllocationError:
            return False
        return cell.misfit is None and self._ledger.has_room(cell, index)

    def _domain(self, index: int) -> Hashable:
        return find_link_domain(self._table.candidates[index])

    def _group(self, index: int) -> Hashable:
        """Give what the device belongs to: its counter set, else its link domain, else its pool."""
        candidate = self._table.candidates[index]
        pool = self._table.pool_of[index].id
        if candidate.consumption:
            return ("counter set", pool, next(iter(candidate.consumption))[0])
        return self._domain(index) or ("pool", pool)
