"""The API server's rules for the request policy of a capacity, while fractional ranges are off (as they are in 1.37).

Arithmetic then goes by whole units, rounded up.
"""

from collections.abc import Iterator
from typing import Final

from dra_driver.api.quantity import Quantity
from dra_driver.api.resource_v1 import CapacityRequestPolicy, CapacityRequestPolicyRange, DeviceCapacity
from dra_driver.errors import FieldError, FieldReason

VALID_VALUES_MAX: Final = 10
_INT64_MAX: Final = 2**63 - 1


def validate_capacity(capacity: DeviceCapacity, path: str, *, shareable: bool) -> Iterator[FieldError]:
    """Yield what is wrong in `capacity` of a device; only a `shareable` one may have a policy."""
    policy = capacity.request_policy
    if policy is None:
        return
    path = f"{path}.requestPolicy"
    if not shareable:
        yield FieldError(path, "is set, want it only with allowMultipleAllocations", FieldReason.FORBIDDEN)
    elif policy.valid_values and policy.valid_range is not None:
        yield FieldError(path, "has validValues and validRange, want one of them", FieldReason.FORBIDDEN)
    elif policy.valid_values:
        yield from _validate_values(capacity.value, policy, path)
    elif policy.valid_range is not None:
        yield from _validate_range(capacity.value, policy.default, policy.valid_range, path)


def _validate_values(limit: Quantity, policy: CapacityRequestPolicy, path: str) -> Iterator[FieldError]:
    if policy.default is None:
        yield FieldError(f"{path}.default", "is missing, want one of validValues", FieldReason.REQUIRED)
        return
    path = f"{path}.validValues"
    values = policy.valid_values
    if len(values) > VALID_VALUES_MAX:
        yield FieldError(path, f"has {len(values)} values, want at most {VALID_VALUES_MAX}", FieldReason.TOO_MANY)
        return
    if policy.default not in values:
        yield FieldError(path, f"does not have the default {policy.default}, want it among the values")
    seen: set[int] = set()
    for index, value in enumerate(values):
        where = f"{path}[{index}]"
        if index and value < values[index - 1]:
            yield FieldError(where, f"{value} comes after {values[index - 1]}, want ascending values")
        if value > limit:
            yield FieldError(where, f"{value} is more than the capacity, want at most {limit}")
        if value.value() in seen:
            yield FieldError(where, f"{value} is there twice, want each value once")
        seen.add(value.value())


def _validate_range(
    limit: Quantity, default: Quantity | None, range_: CapacityRequestPolicyRange, path: str
) -> Iterator[FieldError]:
    if default is None:
        yield FieldError(f"{path}.default", "is missing, want an amount of validRange", FieldReason.REQUIRED)
        return
    range_path = f"{path}.validRange"
    if range_.min > limit:
        yield FieldError(f"{range_path}.min", f"{range_.min} is more than the capacity, want at most {limit}")
    if default < range_.min:
        yield FieldError(f"{path}.default", f"{default} is less than min, want at least {range_.min}")
    if range_.max is not None:
        if range_.max < range_.min:
            yield FieldError(f"{range_path}.max", f"{range_.max} is less than min, want at least {range_.min}")
        if range_.max > limit:
            yield FieldError(f"{range_path}.max", f"{range_.max} is more than the capacity, want at most {limit}")
        if default > range_.max:
            yield FieldError(f"{path}.default", f"{default} is more than max, want at most {range_.max}")
    if range_.step is not None:
        yield from _validate_step(limit, default, range_, range_.step, path)


def _validate_step(
    limit: Quantity, default: Quantity, range_: CapacityRequestPolicyRange, step: Quantity, path: str
) -> Iterator[FieldError]:
    step_path = f"{path}.validRange.step"
    if step.sign() <= 0:
        yield FieldError(step_path, f"{step} is not positive, want more than 0")
        return
    if range_.min + step > limit:
        yield FieldError(step_path, f"min + step is {range_.min + step}, want at most the capacity {limit}")
    bounds = {f"{path}.default": default, f"{path}.validRange.min": range_.min, step_path: step}
    if range_.max is not None:
        bounds[f"{path}.validRange.max"] = range_.max
    unsafe = tuple(_validate_int64(bounds))
    yield from unsafe
    if unsafe:
        return
    for name, value in (("default", default), ("max", range_.max)):
        if value is not None and (value.value() - range_.min.value()) % step.value():
            yield FieldError(step_path, f"{name} {value} is not reached, want {range_.min} plus a multiple of {step}")


def _validate_int64(bounds: dict[str, Quantity]) -> Iterator[FieldError]:
    for path, value in bounds.items():
        if value.sign() < 0 or value.value() > _INT64_MAX:
            yield FieldError(path, f"{value} is outside of what a step can count, want 0 to {_INT64_MAX}")
