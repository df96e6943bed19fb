"""The API server's rules for the specs of claims, templates and classes.

All errors at once, with paths as users write them. Metadata is not looked at. Source: pkg/apis/resource/validation of
Kubernetes 1.37. An `options` of None stands for what is stored already: its expressions are not compiled again.
"""

from collections.abc import Iterator
from typing import Final

from dra_driver.api import codec
from dra_driver.api.device_request_validation import (
    NEW,
    REQUESTS_MAX,
    Requests,
    RequestValidator,
    too_many,
    validate_references,
    validate_selectors,
)
from dra_driver.api.device_validation import driver_errors, field_errors, validate_unique
from dra_driver.api.name import (
    validate_extended_resource_name,
    validate_fully_qualified_name,
)
from dra_driver.api.resource_v1 import (
    DeviceClassSpec,
    DeviceConstraint,
    OpaqueDeviceConfiguration,
    ResourceClaimSpec,
)
from dra_driver.cel import MAX_COST, Options
from dra_driver.errors import FieldError, FieldReason

CONSTRAINTS_MAX: Final = 32
CONFIGS_MAX: Final = 32
PARAMETERS_MAX_BYTES: Final = 10 * 1024


def validate_claim_spec(spec: ResourceClaimSpec, path: str = "spec", options: Options = NEW) -> tuple[FieldError, ...]:
    """Give everything for which the API server would refuse a new claim, or a template with `path` "spec.spec"."""
    return tuple(_validate_claim(spec, f"{path}.devices", options))


def validate_claim_update(new: ResourceClaimSpec, old: ResourceClaimSpec, path: str = "spec") -> tuple[FieldError, ...]:
    """Give what an update of a claim or template may not do: the spec never changes."""
    return () if new == old else (FieldError(path, "field is immutable"),)


def validate_class_spec(
    spec: DeviceClassSpec, old: DeviceClassSpec | None = None, options: Options = NEW
) -> tuple[FieldError, ...]:
    """Give everything for which the API server would refuse a class, new or changed from `old`.

    Selectors or configurations that are all as before are not looked at again.
    """
    return tuple(_validate_class(spec, old, options))


def validate_opaque(
    config: OpaqueDeviceConfiguration | None, path: str, *, is_stored: bool = False
) -> Iterator[FieldError]:
    """Yield what is wrong in a configuration; `path` is that of the entry which holds it."""
    path = f"{path}.opaque"
    if config is None:
        yield FieldError(path, "is missing, want driver and parameters", FieldReason.REQUIRED)
        return
    yield from driver_errors(f"{path}.driver", config.driver)
    if not is_stored and len(codec.encode(config.parameters)) > PARAMETERS_MAX_BYTES:
        problem = f"may not be more than {PARAMETERS_MAX_BYTES} bytes"
        yield FieldError(f"{path}.parameters", problem, FieldReason.TOO_LONG)


def _validate_claim(spec: ResourceClaimSpec, path: str, options: Options) -> Iterator[FieldError]:
    devices = spec.devices
    requests = Requests.of(devices.requests)
    if len(devices.requests) > REQUESTS_MAX:
        yield too_many(f"{path}.requests", len(devices.requests), REQUESTS_MAX)
    else:
        validator = RequestValidator(devices.constraints, options)
        for index, request in enumerate(devices.requests):
            yield from validator.validate(request, f"{path}.requests[{index}]")
        yield from validate_unique(tuple(request.name for request in devices.requests), f"{path}.requests")
        if validator.cost > MAX_COST:
            problem = "too complex, total cost of derived attribute expressions in the claim exceeds cost limit"
            yield FieldError(path, problem, FieldReason.FORBIDDEN)
    if len(devices.constraints) > CONSTRAINTS_MAX:
        yield too_many(f"{path}.constraints", len(devices.constraints), CONSTRAINTS_MAX)
    else:
        for index, constraint in enumerate(devices.constraints):
            yield from _validate_constraint(constraint, requests, f"{path}.constraints[{index}]", options)
    if len(devices.config) > CONFIGS_MAX:
        yield too_many(f"{path}.config", len(devices.config), CONFIGS_MAX)
        return
    for index, config in enumerate(devices.config):
        yield from validate_references(config.requests, requests, f"{path}.config[{index}].requests")
        yield from validate_opaque(config.opaque, f"{path}.config[{index}]")


def _validate_constraint(
    constraint: DeviceConstraint, requests: Requests, path: str, options: Options
) -> Iterator[FieldError]:
    yield from validate_references(constraint.requests, requests, f"{path}.requests")
    attributes = {"matchAttribute": constraint.match_attribute, "distinctAttribute": constraint.distinct_attribute}
    for name, attribute in attributes.items():
        if attribute is not None:
            yield from field_errors(f"{path}.{name}", validate_fully_qualified_name(attribute))
    if any(attribute is not None for attribute in attributes.values()):
        return
    if options.consumable_capacity:
        problem = "exactly one of `matchAttribute` or `distinctAttribute` is required"
        yield FieldError(path, problem, FieldReason.REQUIRED)
    else:
        yield FieldError(f"{path}.matchAttribute", "is missing, want 'domain/name'", FieldReason.REQUIRED)


def _validate_class(spec: DeviceClassSpec, old: DeviceClassSpec | None, options: Options) -> Iterator[FieldError]:
    is_same = old is not None and spec.selectors == old.selectors
    yield from validate_selectors(spec.selectors, "spec.selectors", None if is_same else options)
    if len(spec.config) > CONFIGS_MAX:
        yield too_many("spec.config", len(spec.config), CONFIGS_MAX)
    else:
        is_same = old is not None and spec.config == old.config
        for index, config in enumerate(spec.config):
            yield from validate_opaque(config.opaque, f"spec.config[{index}]", is_stored=is_same)
    if spec.extended_resource_name is not None:
        problems = validate_extended_resource_name(spec.extended_resource_name)
        yield from field_errors("spec.extendedResourceName", problems[:1])
