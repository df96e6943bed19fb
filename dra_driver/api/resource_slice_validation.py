"""The rules for ResourceSlices: what the API server checks in one slice, and what must hold in a whole pool.

The server refuses a slice as a whole; so the driver checks first, to name every field and to leave out as little
as possible. Sources: pkg/apis/resource/validation of Kubernetes 1.37, and KEP-4381 and KEP-4815 for pools.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from dra_driver.api.device_validation import (
    driver_errors,
    field_errors,
    required_errors,
    validate_counters,
    validate_device,
    validate_node_name,
    validate_only_true,
    validate_skip_operations,
    validate_unique,
)
from dra_driver.api.name import (
    quote,
    validate_dns_label,
    validate_dns_subdomain,
    validate_fully_qualified_name,
    validate_label_key,
    validate_label_value,
    validate_pool_name,
)
from dra_driver.api.node_selector_validation import validate_node_selector
from dra_driver.api.resource_v1 import CounterSet, Device, ResourcePool, ResourceSlice, ResourceSliceSpec
from dra_driver.errors import FieldError, FieldReason

DEVICES_MAX: Final = 128
DEVICES_WITH_FEATURES_MAX: Final = 64
COUNTER_SETS_MAX: Final = 8


def validate_resource_slice(resource_slice: ResourceSlice) -> tuple[FieldError, ...]:
    """Give everything for which the API server would refuse the slice."""
    return (*_validate_metadata(resource_slice), *validate_resource_slice_spec(resource_slice.spec))


def validate_resource_slice_spec(spec: ResourceSliceSpec) -> tuple[FieldError, ...]:
    """Give everything that is wrong in the spec of a slice."""
    return tuple(_validate_spec(spec))


def validate_pool(slices: Sequence[ResourceSlice]) -> tuple[FieldError, ...]:
    """Give what is wrong between the slices of one pool: paths begin with the index in `slices`.

    The server looks at one slice at a time; an allocator refuses the pool for any of these.
    """
    return (
        *_validate_agreement(slices),
        *_validate_device_names(slices),
        *_validate_counter_references(slices),
    )


def _validate_metadata(resource_slice: ResourceSlice) -> Iterator[FieldError]:
    metadata = resource_slice.metadata
    if metadata.namespace:
        yield FieldError("metadata.namespace", "is set, want none: slices have no namespace")
    if metadata.generate_name:
        # The server appends to it, so that it may end in a dash.
        name = re.sub(r"(?<=.)-\Z", "a", metadata.generate_name)
        yield from field_errors("metadata.generateName", validate_dns_subdomain(name))
    if metadata.name:
        yield from field_errors("metadata.name", validate_dns_subdomain(metadata.name))
    elif not metadata.generate_name:
        yield FieldError("metadata.name", "is missing, want name or generateName")
    for key, value in metadata.labels.items():
        yield from field_errors(f"metadata.labels[{quote(key)}]", validate_label_key(key) + validate_label_value(value))


def _validate_spec(spec: ResourceSliceSpec) -> Iterator[FieldError]:
    yield from driver_errors("spec.driver", spec.driver)
    yield from _validate_pool(spec.pool)
    yield from _validate_nodes(spec)
    if spec.shared_counters and spec.devices:
        yield FieldError("spec", "has sharedCounters and devices, want them in slices of their own")
    yield from _validate_devices(spec)
    yield from _validate_counter_sets(spec.shared_counters)
    if spec.partition_type_attribute is not None:
        yield from _validate_partition_type(spec, spec.partition_type_attribute)
    yield from validate_skip_operations(spec.skip_node_operations, "spec.skipNodeOperations")


def _validate_pool(pool: ResourcePool) -> Iterator[FieldError]:
    yield from required_errors("spec.pool.name", pool.name, validate_pool_name)
    if pool.generation < 0:
        yield FieldError("spec.pool.generation", f"{pool.generation} is negative, want 0 or more")
    if pool.resource_slice_count <= 0:
        yield FieldError("spec.pool.resourceSliceCount", f"{pool.resource_slice_count} is too small, want 1 or more")


def _validate_nodes(spec: ResourceSliceSpec) -> Iterator[FieldError]:
    fields = {
        "nodeName": spec.node_name,
        "nodeSelector": spec.node_selector,
        "allNodes": spec.all_nodes,
        "perDeviceNodeSelection": spec.per_device_node_selection,
    }
    given = [name for name, value in fields.items() if value is not None and value not in ("", False)]
    if len(given) != 1:
        want = "want exactly one of nodeName, nodeSelector, allNodes and perDeviceNodeSelection"
        reason = FieldReason.INVALID if given else FieldReason.REQUIRED
        yield FieldError("spec", f"has {' and '.join(given) or 'no nodes'}, {want}", reason)
    yield from validate_node_name(spec.node_name, "spec.nodeName")
    yield from validate_only_true(spec.all_nodes, "spec.allNodes")
    yield from validate_only_true(spec.per_device_node_selection, "spec.perDeviceNodeSelection")
    if spec.node_selector is not None:
        yield from validate_node_selector(spec.node_selector, "spec.nodeSelector")
        if (count := len(spec.node_selector.node_selector_terms)) != 1:
            yield FieldError("spec.nodeSelector.nodeSelectorTerms", f"has {count} terms, want exactly one")


def _validate_devices(spec: ResourceSliceSpec) -> Iterator[FieldError]:
    count = len(spec.devices)
    if any(map(_has_features, spec.devices)):
        limit, what = DEVICES_WITH_FEATURES_MAX, "devices, some with taints, counters or list attributes"
    else:
        limit, what = DEVICES_MAX, "devices"
    if count > limit:
        yield FieldError("spec.devices", f"has {count} {what}, want at most {limit}", FieldReason.TOO_MANY)
        return
    for index, device in enumerate(spec.devices):
        per_device_nodes = bool(spec.per_device_node_selection)
        yield from validate_device(device, f"spec.devices[{index}]", per_device_nodes=per_device_nodes)
    yield from validate_unique(tuple(device.name for device in spec.devices), "spec.devices", ".name")


def _has_features(device: Device) -> bool:
    return bool(device.taints or device.consumes_counters) or any(
        attribute.ints or attribute.bools or attribute.strings or attribute.versions
        for attribute in device.attributes.values()
    )


def _validate_counter_sets(sets: tuple[CounterSet, ...]) -> Iterator[FieldError]:
    path = "spec.sharedCounters"
    if len(sets) > COUNTER_SETS_MAX:
        yield FieldError(path, f"has {len(sets)} counter sets, want at most {COUNTER_SETS_MAX}", FieldReason.TOO_MANY)
        return
    for index, counter_set in enumerate(sets):
        yield from field_errors(f"{path}[{index}].name", validate_dns_label(counter_set.name))
        yield from validate_counters(counter_set.counters, f"{path}[{index}].counters")
    yield from validate_unique(tuple(counter_set.name for counter_set in sets), path, ".name")


def _validate_partition_type(spec: ResourceSliceSpec, name: str) -> Iterator[FieldError]:
    path = "spec.partitionTypeAttribute"
    problems = validate_fully_qualified_name(name)
    yield from field_errors(path, problems)
    if not any(device.consumes_counters for device in spec.devices):
        yield FieldError(path, "is set, want it only where devices consume counters")
    elif not problems:
        bare = name.removeprefix(f"{spec.driver}/")
        for index, device in enumerate(spec.devices):
            attribute = device.attributes.get(name, device.attributes.get(bare))
            if device.consumes_counters and (attribute is None or attribute.string is None):
                where = f"spec.devices[{index}].attributes[{quote(name)}]"
                yield FieldError(where, "is not a string, want one since it is the partitionTypeAttribute")


def _validate_agreement(slices: Sequence[ResourceSlice]) -> Iterator[FieldError]:
    """All slices of a pool name the same driver, pool and generation, and count themselves."""
    for index, resource_slice in enumerate(slices):
        spec, first = resource_slice.spec, slices[0].spec
        path = f"[{index}].spec"
        if spec.driver != first.driver:
            yield FieldError(
                f"{path}.driver", f"{quote(spec.driver)}, want {quote(first.driver)} as in the first slice"
            )
        if spec.pool.name != first.pool.name:
            problem = f"{quote(spec.pool.name)}, want {quote(first.pool.name)} as in the first slice"
            yield FieldError(f"{path}.pool.name", problem)
        if spec.pool.generation != first.pool.generation:
            problem = f"{spec.pool.generation}, want {first.pool.generation} as in the first slice"
            yield FieldError(f"{path}.pool.generation", problem)
        if spec.pool.resource_slice_count != len(slices):
            problem = f"{spec.pool.resource_slice_count}, want {len(slices)}, the number of slices"
            yield FieldError(f"{path}.pool.resourceSliceCount", problem)


def _validate_device_names(slices: Sequence[ResourceSlice]) -> Iterator[FieldError]:
    seen: dict[str, int] = {}
    for index, resource_slice in enumerate(slices):
        for position, device in enumerate(resource_slice.spec.devices):
            other = seen.setdefault(device.name, index)
            # Duplicates within one slice are found where that slice is checked.
            if other != index:
                path = f"[{index}].spec.devices[{position}].name"
                yield FieldError(path, f"{quote(device.name)} is also in slice {other}, want each name once in a pool")


def _validate_counter_references(slices: Sequence[ResourceSlice]) -> Iterator[FieldError]:
    sets: dict[str, CounterSet] = {}
    owners: dict[str, int] = {}
    for index, resource_slice in enumerate(slices):
        for position, counter_set in enumerate(resource_slice.spec.shared_counters):
            if (owner := owners.setdefault(counter_set.name, index)) != index:
                path = f"[{index}].spec.sharedCounters[{position}].name"
                yield FieldError(
                    path, f"{quote(counter_set.name)} is also in slice {owner}, want each set once in a pool"
                )
            sets.setdefault(counter_set.name, counter_set)
    for index, resource_slice in enumerate(slices):
        for position, device in enumerate(resource_slice.spec.devices):
            yield from _validate_references(device, sets, f"[{index}].spec.devices[{position}]")


def _validate_references(device: Device, sets: dict[str, CounterSet], path: str) -> Iterator[FieldError]:
    for index, consumption in enumerate(device.consumes_counters):
        where = f"{path}.consumesCounters[{index}]"
        counter_set = sets.get(consumption.counter_set)
        if counter_set is None:
            problem = f"unknown counter set {quote(consumption.counter_set)}, want one of the pool's sharedCounters"
            yield FieldError(f"{where}.counterSet", problem)
            continue
        for name in consumption.counters:
            if name not in counter_set.counters:
                problem = f"unknown counter, want one of counter set {quote(counter_set.name)}"
                yield FieldError(f"{where}.counters[{quote(name)}]", problem)
