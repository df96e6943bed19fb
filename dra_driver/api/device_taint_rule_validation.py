"""The API server's rules for DeviceTaintRules. Source: pkg/apis/resource/validation of Kubernetes 1.37."""

from collections.abc import Iterator
from typing import Final

from dra_driver.api.allocation_validation import validate_conditions
from dra_driver.api.device_request_validation import too_many
from dra_driver.api.device_validation import driver_errors, field_errors, required_errors, validate_taint
from dra_driver.api.name import validate_dns_label, validate_pool_name
from dra_driver.api.resource_v1 import DeviceTaintRuleSpec, DeviceTaintRuleStatus
from dra_driver.errors import FieldError

CONDITIONS_MAX: Final = 8


def validate_taint_rule_spec(
    spec: DeviceTaintRuleSpec, old: DeviceTaintRuleSpec | None = None
) -> tuple[FieldError, ...]:
    """Give everything for which the API server would refuse a rule, new or changed from `old`."""
    return tuple(_validate_spec(spec, old))


def validate_taint_rule_status(status: DeviceTaintRuleStatus) -> tuple[FieldError, ...]:
    """Give everything for which the API server would refuse the status of a rule."""
    path = "status.conditions"
    errors = [*validate_conditions(status.conditions, path)]
    if len(status.conditions) > CONDITIONS_MAX:
        errors.append(too_many(path, len(status.conditions), CONDITIONS_MAX))
    return tuple(errors)


def _validate_spec(spec: DeviceTaintRuleSpec, old: DeviceTaintRuleSpec | None) -> Iterator[FieldError]:
    selector, path = spec.device_selector, "spec.deviceSelector"
    if selector is not None and selector.driver is not None:
        yield from driver_errors(f"{path}.driver", selector.driver)
    if selector is not None and selector.pool is not None:
        yield from required_errors(f"{path}.pool", selector.pool, validate_pool_name)
    if selector is not None and selector.device is not None:
        yield from field_errors(f"{path}.device", validate_dns_label(selector.device))
    is_effect_same = old is not None and old.taint.effect == spec.taint.effect
    yield from validate_taint(spec.taint, "spec.taint", checks_effect=not is_effect_same)
