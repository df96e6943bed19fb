"""How much of a device's capacities a request takes (KEP-5075).

Upstream rounds in int64, in whole units or in thousandths; what does not fit into that is an error, not a mismatch.
All comparisons are exact.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dra_driver.api.quantity import NANO, Quantity
from dra_driver.api.resource_v1 import CapacityRequestPolicy, CapacityRequestPolicyRange, DeviceCapacity

_INT64_MAX: Final = 2**63 - 1
_MILLI: Final = NANO // 1000


class AmountError(ValueError):
    """An amount that no device could ever give: negative, or beyond 64 bits after rounding."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What one allocation takes of a device: every capacity of it, by name."""

    quantities: Mapping[str, Quantity]
    nanos: tuple[tuple[str, int], ...]


def plan_demand(
    requests: Mapping[str, Quantity], capacity: Mapping[str, DeviceCapacity], *, fractional: bool
) -> Demand | str:
    """Give what a request takes, or in words why a device with `capacity` cannot serve it.

    Raises AmountError where upstream gives up altogether.
    """
    for name in requests:
        if name not in capacity:
            return f"has no capacity {name!r}"
    quantities = {
        name: _consume(name, requests.get(name), entry, fractional=fractional) for name, entry in capacity.items()
    }
    for name, entry in capacity.items():
        if entry.request_policy is not None and _violates(
            quantities[name], entry.request_policy, fractional=fractional
        ):
            return f"capacity {name!r}: {quantities[name]} is not among the amounts that may be consumed"
        if quantities[name] > entry.value:
            return f"capacity {name!r}: want {quantities[name]}, has {entry.value}"
    return Demand(quantities, tuple((name, quantity.nanos) for name, quantity in quantities.items()))


def _consume(name: str, requested: Quantity | None, capacity: DeviceCapacity, *, fractional: bool) -> Quantity:
    amount = _round(name, requested, capacity, fractional=fractional)
    if amount.sign() < 0:
        raise AmountError(f"capacity {name!r}: {amount} is negative, want 0 or more")
    return amount


def _round(name: str, requested: Quantity | None, capacity: DeviceCapacity, *, fractional: bool) -> Quantity:
    policy = capacity.request_policy
    if requested is None:
        return policy.default if policy is not None and policy.default is not None else capacity.value
    if policy is None:
        return requested
    if policy.valid_range is not None:
        return _round_range(name, requested, policy.valid_range, fractional=fractional)
    return next((value for value in policy.valid_values if requested <= value), requested)


def _round_range(name: str, requested: Quantity, range_: CapacityRequestPolicyRange, *, fractional: bool) -> Quantity:
    if requested < range_.min:
        return range_.min
    if range_.step is None:
        return requested
    unit = _MILLI if _counts_in_milli(range_, fractional=fractional) else NANO
    if unit == _MILLI and not _is_milli(requested):
        raise AmountError(f"capacity {name!r}: {requested} is no number of thousandths in 64 bits")
    if requested.nanos > _INT64_MAX * unit:
        raise AmountError(f"capacity {name!r}: {requested} is beyond 64 bits")
    step, low = _ceil(range_.step.nanos, unit), _ceil(range_.min.nanos, unit)
    if step <= 0:
        raise AmountError(f"capacity {name!r}: step {range_.step}, want more than 0")
    value = low + -(-(_ceil(requested.nanos, unit) - low) // step) * step
    if value > _INT64_MAX:
        raise AmountError(f"capacity {name!r}: {requested} rounded up to the next step is beyond 64 bits")
    return Quantity(value * unit, range_.step.format)


def _violates(amount: Quantity, policy: CapacityRequestPolicy, *, fractional: bool) -> bool:
    default = policy.default
    if default is not None and amount == default and amount.format is default.format:
        return False
    if policy.valid_range is not None:
        return _violates_range(amount, policy.valid_range, fractional=fractional)
    return bool(policy.valid_values) and amount not in policy.valid_values


def _violates_range(amount: Quantity, range_: CapacityRequestPolicyRange, *, fractional: bool) -> bool:
    if range_.max is not None and amount > range_.max:
        return True
    if range_.step is None:
        return False
    unit = _MILLI if _counts_in_milli(range_, fractional=fractional) else NANO
    if unit == _MILLI and not _is_milli(amount):
        return True
    step = _ceil(range_.step.nanos, unit)
    return step > 0 and (_ceil(amount.nanos, unit) - _ceil(range_.min.nanos, unit)) % step != 0


def _counts_in_milli(range_: CapacityRequestPolicyRange, *, fractional: bool) -> bool:
    """Tell whether thousandths are the unit: also for ranges of whole numbers, as upstream does it."""
    if not fractional or range_.step is None or range_.step.nanos < _MILLI:
        return False
    return all(_is_milli(bound) for bound in (range_.min, range_.max, range_.step) if bound is not None)


def _is_milli(quantity: Quantity) -> bool:
    return quantity.nanos % _MILLI == 0 and -_INT64_MAX - 1 <= quantity.nanos // _MILLI <= _INT64_MAX


def _ceil(nanos: int, unit: int) -> int:
    """Divide, rounded away from zero as Quantity.Value does it."""
    quotient = -(-abs(nanos) // unit)
    return quotient if nanos >= 0 else -quotient
