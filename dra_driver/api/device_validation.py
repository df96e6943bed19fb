"""The API server's rules for a device of a slice."""

import re
from collections.abc import Callable, Iterator
from typing import Final

from dra_driver.api.capacity_validation import validate_capacity
from dra_driver.api.name import (
    DOMAIN_MAX,
    byte_length,
    quote,
    validate_dns_label,
    validate_dns_subdomain,
    validate_driver_name,
    validate_label_key,
    validate_label_value,
    validate_length,
    validate_qualified_name,
)
from dra_driver.api.node_selector_validation import validate_node_selector
from dra_driver.api.resource_v1 import (
    Counter,
    Device,
    DeviceAttribute,
    DeviceCounterConsumption,
    DeviceTaint,
    NodeAllocatableMapping,
    NodeAllocatableResource,
)
from dra_driver.api.semver import validate_semver
from dra_driver.errors import FieldError, FieldReason

ATTRIBUTES_AND_CAPACITIES_MAX: Final = 32
ATTRIBUTE_VALUES_MAX: Final = 48
STRING_MAX: Final = 64
TAINTS_MAX: Final = 16
CONSUMPTIONS_MAX: Final = 2
COUNTERS_MAX: Final = 32
COMPATIBILITY_GROUPS_MAX: Final = 2
BINDING_CONDITIONS_MAX: Final = 4

_SKIP_OPERATIONS: Final = ("NodePrepareResources", "NodeUnprepareResources", "*")
_TAINT_EFFECTS: Final = ("None", "NoSchedule", "NoExecute")
_NODE_RESOURCE: Final = re.compile(r"cpu|memory|hugepages-.*", re.DOTALL)


def validate_device(device: Device, path: str, *, per_device_nodes: bool) -> Iterator[FieldError]:
    """Yield what is wrong in `device`, which stands at `path` of a slice with or without perDeviceNodeSelection."""
    yield from field_errors(f"{path}.name", validate_dns_label(device.name))
    yield from _validate_counts(device, path)
    for key, attribute in device.attributes.items():
        where = f"{path}.attributes[{quote(key)}]"
        yield from field_errors(where, validate_qualified_name(key))
        yield from _validate_attribute(attribute, where)
    for key, capacity in device.capacity.items():
        where = f"{path}.capacity[{quote(key)}]"
        yield from field_errors(where, validate_qualified_name(key))
        yield from validate_capacity(capacity, where, shareable=bool(device.allow_multiple_allocations))
    yield from _validate_consumptions(device.consumes_counters, f"{path}.consumesCounters")
    yield from _validate_taints(device.taints, f"{path}.taints")
    yield from _validate_nodes(device, path, per_device_nodes=per_device_nodes)
    yield from validate_binding(device.binding_conditions, device.binding_failure_conditions, path)
    for key, resource in device.node_allocatable_resources.items():
        yield from _validate_node_resource(key, resource, device, f"{path}.nodeAllocatableResources[{quote(key)}]")


def validate_counters(counters: dict[str, Counter], path: str) -> Iterator[FieldError]:
    """Yield what is wrong in the counters of a set or of a device; any amount is fine."""
    if not counters:
        yield FieldError(path, "is empty, want at least one counter", FieldReason.REQUIRED)
    elif len(counters) > COUNTERS_MAX:
        yield FieldError(path, f"has {len(counters)} counters, want at most {COUNTERS_MAX}", FieldReason.TOO_MANY)
    else:
        for key in counters:
            yield from field_errors(f"{path}[{quote(key)}]", validate_dns_label(key))


def validate_unique(values: tuple[str, ...], path: str, child: str = "") -> Iterator[FieldError]:
    """Yield an error for each value that was there before."""
    seen: set[str] = set()
    for index, value in enumerate(values):
        if value in seen:
            problem = f"{quote(value)} is there twice, want each once"
            yield FieldError(f"{path}[{index}]{child}", problem, FieldReason.DUPLICATE)
        seen.add(value)


def field_errors(path: str, problems: tuple[str, ...]) -> Iterator[FieldError]:
    """Give `problems` their place."""
    for problem in problems:
        yield FieldError(path, problem)


def required_errors(path: str, name: str, validate: Callable[[str], tuple[str, ...]]) -> Iterator[FieldError]:
    """Yield what is wrong with a name of which a server says that it is required, if it is missing."""
    for problem in validate(name):
        yield FieldError(path, problem, FieldReason.INVALID if name else FieldReason.REQUIRED)


def driver_errors(path: str, name: str) -> Iterator[FieldError]:
    """Yield what is wrong with the name of a driver."""
    for error in required_errors(path, name, validate_driver_name):
        is_long = byte_length(name) > DOMAIN_MAX
        yield FieldError(path, error.problem, FieldReason.TOO_LONG) if is_long else error


def _validate_counts(device: Device, path: str) -> Iterator[FieldError]:
    entries = len(device.attributes) + len(device.capacity)
    if entries > ATTRIBUTES_AND_CAPACITIES_MAX:
        want = f"want at most {ATTRIBUTES_AND_CAPACITIES_MAX}"
        yield FieldError(path, f"has {entries} attributes and capacities, {want}")
    values = sum(max(1, len(_items(attribute))) for attribute in device.attributes.values())
    if values > ATTRIBUTE_VALUES_MAX:
        yield FieldError(
            path, f"has {values} attribute values, want at most {ATTRIBUTE_VALUES_MAX}", FieldReason.TOO_MANY
        )


def _items(attribute: DeviceAttribute) -> tuple[object, ...]:
    return (*attribute.ints, *attribute.bools, *attribute.strings, *attribute.versions)


def _validate_attribute(attribute: DeviceAttribute, path: str) -> Iterator[FieldError]:
    scalars = (attribute.int, attribute.bool, attribute.string, attribute.version)
    lists = (attribute.ints, attribute.bools, attribute.strings, attribute.versions)
    count = sum(value is not None for value in scalars) + sum(map(bool, lists))
    if count != 1:
        yield FieldError(path, f"has {count} values, want exactly one of int, bool, string, version or a list of them")
    if attribute.string is not None:
        yield from _validate_text(attribute.string, f"{path}.string")
    if attribute.version is not None:
        yield from field_errors(f"{path}.version", validate_semver(attribute.version))
    for index, text in enumerate(attribute.strings):
        yield from _validate_text(text, f"{path}.strings[{index}]")
    for index, text in enumerate(attribute.versions):
        yield from field_errors(f"{path}.versions[{index}]", validate_semver(text))
    if attribute.int is not None:
        yield from _validate_int64(attribute.int, f"{path}.int")
    for index, number in enumerate(attribute.ints):
        yield from _validate_int64(number, f"{path}.ints[{index}]")


def _validate_text(text: str, path: str) -> Iterator[FieldError]:
    for problem in validate_length(text, STRING_MAX):
        yield FieldError(path, problem, FieldReason.TOO_LONG)


def _validate_int64(number: int, path: str) -> Iterator[FieldError]:
    if not -(2**63) <= number < 2**63:
        yield FieldError(path, f"{number} does not fit, want a 64-bit integer")


def _validate_consumptions(consumptions: tuple[DeviceCounterConsumption, ...], path: str) -> Iterator[FieldError]:
    if len(consumptions) > CONSUMPTIONS_MAX:
        yield FieldError(
            path, f"has {len(consumptions)} entries, want at most {CONSUMPTIONS_MAX}", FieldReason.TOO_MANY
        )
        return
    for index, consumption in enumerate(consumptions):
        where = f"{path}[{index}]"
        yield from field_errors(f"{where}.counterSet", validate_dns_label(consumption.counter_set))
        yield from validate_counters(consumption.counters, f"{where}.counters")
        groups = consumption.compatibility_groups
        yield from _validate_list(groups, f"{where}.compatibilityGroups", COMPATIBILITY_GROUPS_MAX, validate_dns_label)
    yield from validate_unique(tuple(entry.counter_set for entry in consumptions), path, ".counterSet")


def _validate_list(
    values: tuple[str, ...], path: str, limit: int, validate: Callable[[str], tuple[str, ...]]
) -> Iterator[FieldError]:
    if len(values) > limit:
        yield FieldError(path, f"has {len(values)} entries, want at most {limit}", FieldReason.TOO_MANY)
        return
    for index, value in enumerate(values):
        yield from field_errors(f"{path}[{index}]", validate(value))
    yield from validate_unique(values, path)


def _validate_taints(taints: tuple[DeviceTaint, ...], path: str) -> Iterator[FieldError]:
    if len(taints) > TAINTS_MAX:
        yield FieldError(path, f"has {len(taints)} taints, want at most {TAINTS_MAX}", FieldReason.TOO_MANY)
        return
    for index, taint in enumerate(taints):
        yield from validate_taint(taint, f"{path}[{index}]")


def validate_taint(taint: DeviceTaint, path: str, *, checks_effect: bool = True) -> Iterator[FieldError]:
    """Yield what is wrong in a taint. An effect that is stored already is not checked again."""
    yield from field_errors(f"{path}.key", validate_label_key(taint.key))
    yield from field_errors(f"{path}.value", validate_label_value(taint.value))
    if checks_effect and taint.effect not in _TAINT_EFFECTS:
        want = "want 'None', 'NoSchedule' or 'NoExecute'"
        reason = FieldReason.NOT_SUPPORTED if taint.effect else FieldReason.REQUIRED
        yield FieldError(f"{path}.effect", f"unknown effect {quote(taint.effect)}, {want}", reason)


def _validate_nodes(device: Device, path: str, *, per_device_nodes: bool) -> Iterator[FieldError]:
    fields = {
        "nodeName": device.node_name,
        "nodeSelector": device.node_selector,
        "allNodes": device.all_nodes,
    }
    given = [name for name, value in fields.items() if value is not None]
    if not per_device_nodes:
        for name in given:
            yield FieldError(f"{path}.{name}", "is set, want it only with perDeviceNodeSelection of the slice")
        return
    if len(given) != 1:
        found = " and ".join(given) or "no nodes"
        reason = FieldReason.INVALID if given else FieldReason.REQUIRED
        yield FieldError(path, f"has {found}, want exactly one of nodeName, nodeSelector and allNodes", reason)
    yield from validate_node_name(device.node_name, f"{path}.nodeName")
    yield from validate_only_true(device.all_nodes, f"{path}.allNodes")
    if device.node_selector is not None:
        yield from validate_node_selector(device.node_selector, f"{path}.nodeSelector")


def validate_node_name(name: str | None, path: str) -> Iterator[FieldError]:
    """Yield what is wrong in the name of a node, if it is there."""
    if name is not None:
        yield from field_errors(path, validate_dns_subdomain(name))


def validate_only_true(value: bool | None, path: str) -> Iterator[FieldError]:  # noqa: FBT001 - a field's value
    """Yield an error for a false where only true may be written."""
    if value is False:
        yield FieldError(path, "is false, want true or nothing")


def validate_binding(conditions: tuple[str, ...], failures: tuple[str, ...], path: str) -> Iterator[FieldError]:
    """Yield what is wrong in the binding conditions of a device or of an allocation result."""
    for name, values in (("bindingConditions", conditions), ("bindingFailureConditions", failures)):
        yield from _validate_list(values, f"{path}.{name}", BINDING_CONDITIONS_MAX, validate_label_key)
        if len(values) > BINDING_CONDITIONS_MAX:
            yield from validate_unique(values, f"{path}.{name}")
    for index, value in enumerate(failures):
        if value in conditions:
            where = f"{path}.bindingFailureConditions[{index}]"
            yield FieldError(where, f"{quote(value)} is also in bindingConditions, want it in one of them")
    if conditions and not failures:
        yield FieldError(f"{path}.bindingFailureConditions", "is empty, want it together with bindingConditions")
    if failures and not conditions:
        yield FieldError(f"{path}.bindingConditions", "is empty, want it together with bindingFailureConditions")


def validate_skip_operations(operations: tuple[str, ...], path: str) -> Iterator[FieldError]:
    """Yield what is wrong in the node operations that a slice or an allocation result skips."""
    for index, operation in enumerate(operations):
        if operation not in _SKIP_OPERATIONS:
            want = "want 'NodePrepareResources', 'NodeUnprepareResources' or '*'"
            yield FieldError(
                f"{path}[{index}]", f"unknown operation {quote(operation)}, {want}", FieldReason.NOT_SUPPORTED
            )
    yield from validate_unique(operations, path)
    if "NodePrepareResources" in operations and not {"NodeUnprepareResources", "*"}.intersection(operations):
        yield FieldError(path, "has NodePrepareResources alone, want NodeUnprepareResources too")


def _validate_node_resource(
    key: str, resource: NodeAllocatableResource, device: Device, path: str
) -> Iterator[FieldError]:
    if not _NODE_RESOURCE.fullmatch(key):
        yield FieldError(path, f"unknown resource {quote(key)}, want 'cpu', 'memory' or 'hugepages-<size>'")
    if resource.mapping is None and resource.overhead is None:
        yield FieldError(path, "is empty, want mapping or overhead")
    if resource.mapping is not None:
        yield from _validate_mapping(resource.mapping, device, f"{path}.mapping")
    if resource.overhead is not None:
        amounts = {"perPod": resource.overhead.per_pod, "perContainer": resource.overhead.per_container}
        if all(amount is None for amount in amounts.values()):
            yield FieldError(f"{path}.overhead", "is empty, want perPod or perContainer")
        for name, amount in amounts.items():
            if amount is not None and amount.sign() < 0:
                yield FieldError(f"{path}.overhead.{name}", f"{amount} is negative, want 0 or more")


def _validate_mapping(mapping: NodeAllocatableMapping, device: Device, path: str) -> Iterator[FieldError]:
    if (mapping.capacity_key is None) == (mapping.device_multiplier is None):
        yield FieldError(path, "want exactly one of capacityKey and deviceMultiplier")
    if mapping.capacity_key is not None and mapping.capacity_key not in device.capacity:
        problem = f"{quote(mapping.capacity_key)} is not a capacity of the device, want one that is"
        yield FieldError(f"{path}.capacityKey", problem)
    if (mapping.capacity_key is None) != (mapping.capacity_multiplier is None):
        missing = "capacityKey" if mapping.capacity_key is None else "capacityMultiplier"
        yield FieldError(f"{path}.{missing}", "is missing, want capacityKey and capacityMultiplier together")
    multipliers = {
        "capacityMultiplier": mapping.capacity_multiplier,
        "deviceMultiplier": mapping.device_multiplier,
    }
    for name, multiplier in multipliers.items():
        if multiplier is not None and multiplier.sign() <= 0:
            yield FieldError(f"{path}.{name}", f"{multiplier} is not positive, want more than 0")
