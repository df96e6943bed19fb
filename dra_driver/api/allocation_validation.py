"""The API server's rules for the status of a claim: what it got, who uses it, and how its devices are.

Source: pkg/apis/resource/validation of Kubernetes 1.37.
"""

import ipaddress
import re
from collections.abc import Iterator
from typing import Final, TypeAlias

from dra_driver.api import codec
from dra_driver.api.device_request_validation import (
    Requests,
    not_supported,
    too_many,
    validate_references,
    validate_toleration,
)
from dra_driver.api.device_validation import (
    driver_errors,
    field_errors,
    required_errors,
    validate_binding,
    validate_skip_operations,
    validate_unique,
)
from dra_driver.api.meta_v1 import Condition
from dra_driver.api.name import (
    byte_length,
    quote,
    validate_dns_label,
    validate_label_key,
    validate_pool_name,
)
from dra_driver.api.node_selector_validation import validate_node_selector
from dra_driver.api.resource_claim_validation import validate_opaque
from dra_driver.api.resource_v1 import (
    AllocatedDeviceStatus,
    AllocationResult,
    DeviceRequestAllocationResult,
    NetworkDeviceData,
    ResourceClaimConsumerReference,
    ResourceClaimSpec,
    ResourceClaimStatus,
)
from dra_driver.errors import FieldError, FieldReason

RESULTS_MAX: Final = 32
CONFIGS_MAX: Final = 64
RESERVED_FOR_MAX: Final = 256
CONDITIONS_MAX: Final = 8
DATA_MAX_BYTES: Final = 10 * 1024
ADDRESSES_MAX: Final = 16
INTERFACE_NAME_MAX: Final = 256
HARDWARE_ADDRESS_MAX: Final = 128

_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_REASON: Final = re.compile(r"[A-Za-z](?:[A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_REASON_MAX: Final = 1024
_MESSAGE_MAX: Final = 32 * 1024
_STATUSES: Final = ("False", "True", "Unknown")
_SOURCES: Final = ("FromClaim", "FromClass")

DeviceKey: TypeAlias = tuple[str, str, str, str | None]


def validate_claim_status(
    new: ResourceClaimStatus, old: ResourceClaimStatus, spec: ResourceClaimSpec, *, is_deleted: bool = False
) -> tuple[FieldError, ...]:
    """Give everything for which the API server would refuse a status of a claim that had the status `old`.

    `is_deleted` says that the claim has a deletionTimestamp: nobody may begin to use it then.
    """
    return tuple(_validate_status(new, old, Requests.of(spec.devices.requests), is_deleted=is_deleted))


def validate_conditions(conditions: tuple[Condition, ...], path: str) -> Iterator[FieldError]:
    """Yield what is wrong in conditions."""
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        where = f"{path}[{index}]"
        yield from required_errors(f"{where}.type", condition.type, validate_label_key)
        if condition.type in seen:
            yield FieldError(f"{where}.type", f"{quote(condition.type)} is there twice", FieldReason.DUPLICATE)
        seen.add(condition.type)
        if condition.status not in _STATUSES:
            yield not_supported(f"{where}.status", condition.status, _STATUSES)
        if condition.observed_generation < 0:
            yield FieldError(f"{where}.observedGeneration", f"{condition.observed_generation}, want 0 or more")
        if not condition.last_transition_time:
            yield FieldError(f"{where}.lastTransitionTime", "must be set", FieldReason.REQUIRED)
        if not condition.reason:
            yield FieldError(f"{where}.reason", "is missing, want one word", FieldReason.REQUIRED)
        elif byte_length(condition.reason) > _REASON_MAX:
            yield FieldError(f"{where}.reason", f"may not be more than {_REASON_MAX} bytes", FieldReason.TOO_LONG)
        elif not _REASON.fullmatch(condition.reason):
            yield FieldError(f"{where}.reason", f"{quote(condition.reason)} is no word in CamelCase")
        if byte_length(condition.message) > _MESSAGE_MAX:
            yield FieldError(f"{where}.message", f"may not be more than {_MESSAGE_MAX} bytes", FieldReason.TOO_LONG)


def _validate_status(
    new: ResourceClaimStatus, old: ResourceClaimStatus, requests: Requests, *, is_deleted: bool
) -> Iterator[FieldError]:
    yield from _validate_reserved_for(new.reserved_for, "status.reservedFor")
    allocated = {_key(result) for result in new.allocation.devices.results} if new.allocation else set()
    yield from _validate_devices(new.devices, allocated, "status.devices")
    if new.reserved_for and new.allocation is None:
        problem = "may not be specified when `allocated` is not set"
        yield FieldError("status.reservedFor", problem, FieldReason.FORBIDDEN)
    elif is_deleted and not set(new.reserved_for) <= set(old.reserved_for):
        problem = "new entries may not be added while `deletionTimestamp` is set"
        yield FieldError("status.reservedFor", problem, FieldReason.FORBIDDEN)
    if new.allocation is None:
        return
    if old.allocation is None:
        yield from _validate_allocation(new.allocation, requests, "status.allocation")
    elif codec.encode(new.allocation) != codec.encode(old.allocation):
        yield FieldError("status.allocation", "field is immutable once set")


def _validate_reserved_for(users: tuple[ResourceClaimConsumerReference, ...], path: str) -> Iterator[FieldError]:
    if len(users) > RESERVED_FOR_MAX:
        yield too_many(path, len(users), RESERVED_FOR_MAX)
        return
    for index, user in enumerate(users):
        for name in ("resource", "name", "uid"):
            if not getattr(user, name):
                yield FieldError(f"{path}[{index}].{name}", "is missing, want one", FieldReason.REQUIRED)
    yield from validate_unique(tuple(user.uid for user in users), path)


def _validate_allocation(allocation: AllocationResult, requests: Requests, path: str) -> Iterator[FieldError]:
    results, configs = allocation.devices.results, allocation.devices.config
    if len(results) > RESULTS_MAX:
        yield too_many(f"{path}.devices.results", len(results), RESULTS_MAX)
    else:
        for index, result in enumerate(results):
            yield from _validate_result(result, requests, f"{path}.devices.results[{index}]")
    if len(configs) > CONFIGS_MAX:
        yield too_many(f"{path}.devices.config", len(configs), CONFIGS_MAX)
    else:
        for index, config in enumerate(configs):
            where = f"{path}.devices.config[{index}]"
            if not config.source:
                yield FieldError(f"{where}.source", "is missing, want one", FieldReason.REQUIRED)
            elif config.source not in _SOURCES:
                yield not_supported(f"{where}.source", config.source, _SOURCES)
            yield from validate_references(config.requests, requests, f"{where}.requests")
            yield from validate_opaque(config.opaque, where)
    if allocation.node_selector is not None:
        yield from validate_node_selector(allocation.node_selector, f"{path}.nodeSelector")


def _validate_result(result: DeviceRequestAllocationResult, requests: Requests, path: str) -> Iterator[FieldError]:
    yield from requests.validate_reference(result.request, f"{path}.request")
    yield from _validate_device_names(result.driver, result.pool, result.device, path)
    yield from validate_binding(result.binding_conditions, result.binding_failure_conditions, path)
    for index, toleration in enumerate(result.tolerations):
        yield from validate_toleration(toleration, f"{path}.tolerations[{index}]")
    yield from _validate_share_id(result.share_id, f"{path}.shareID")
    yield from validate_skip_operations(result.skip_node_operations, f"{path}.skipNodeOperations")


def _validate_devices(
    devices: tuple[AllocatedDeviceStatus, ...], allocated: set[DeviceKey], path: str
) -> Iterator[FieldError]:
    seen: set[DeviceKey] = set()
    for index, device in enumerate(devices):
        where = f"{path}[{index}]"
        yield from _validate_device_names(device.driver, device.pool, device.device, where)
        yield from _validate_share_id(device.share_id, f"{where}.shareID")
        key = _key(device)
        if key not in allocated:
            yield FieldError(where, f"{quote('/'.join(key[:3]))} must be an allocated device in the claim")
        if key in seen:
            yield FieldError(where, f"{quote('/'.join(key[:3]))} is there twice", FieldReason.DUPLICATE)
        seen.add(key)
        if len(device.conditions) > CONDITIONS_MAX:
            yield too_many(f"{where}.conditions", len(device.conditions), CONDITIONS_MAX)
        yield from validate_conditions(device.conditions, f"{where}.conditions")
        if device.data is not None and len(codec.encode(device.data)) > DATA_MAX_BYTES:
            problem = f"may not be more than {DATA_MAX_BYTES} bytes"
            yield FieldError(f"{where}.data", problem, FieldReason.TOO_LONG)
        if device.network_data is not None:
            yield from _validate_network(device.network_data, f"{where}.networkData")


def _validate_network(network: NetworkDeviceData, path: str) -> Iterator[FieldError]:
    limits = (
        ("interfaceName", network.interface_name, INTERFACE_NAME_MAX),
        ("hardwareAddress", network.hardware_address, HARDWARE_ADDRESS_MAX),
    )
    for name, value, limit in limits:
        if byte_length(value) > limit:
            yield FieldError(f"{path}.{name}", f"may not be more than {limit} bytes", FieldReason.TOO_LONG)
    if len(network.ips) > ADDRESSES_MAX:
        yield too_many(f"{path}.ips", len(network.ips), ADDRESSES_MAX)
        return
    for index, address in enumerate(network.ips):
        if not _is_interface_address(address):
            yield FieldError(f"{path}.ips[{index}]", f"{quote(address)} is no address, want one such as '10.9.8.7/24'")
    yield from validate_unique(network.ips, f"{path}.ips")


def _is_interface_address(text: str) -> bool:
    """Tell whether it is an address with a prefix length, in its canonical form."""
    if "/" not in text:
        return False
    try:
        interface = ipaddress.ip_interface(text)
    except ValueError:
        return False
    mapped = interface.version == 6 and interface.ip.ipv4_mapped is not None  # noqa: PLR2004 - the version
    return not mapped and interface.with_prefixlen == text


def _validate_device_names(driver: str, pool: str, device: str, path: str) -> Iterator[FieldError]:
    yield from driver_errors(f"{path}.driver", driver)
    yield from required_errors(f"{path}.pool", pool, validate_pool_name)
    yield from field_errors(f"{path}.device", validate_dns_label(device))


def _validate_share_id(share_id: str | None, path: str) -> Iterator[FieldError]:
    if share_id is not None and not _UUID.fullmatch(share_id):
        yield FieldError(path, f"{quote(share_id)} is no UUID in lower case")


def _key(device: DeviceRequestAllocationResult | AllocatedDeviceStatus) -> DeviceKey:
    return device.driver, device.pool, device.device, device.share_id
