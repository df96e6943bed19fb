"""What a cluster lets the driver publish: the three feature gates that decide how a pool is laid out."""

from dataclasses import dataclass, replace
from enum import StrEnum


class Gate(StrEnum):
    """Feature gates of Kubernetes without which the API server drops fields of a ResourceSlice."""

    CONSUMABLE_CAPACITY = "DRAConsumableCapacity"
    PARTITIONABLE_DEVICES = "DRAPartitionableDevices"
    DEVICE_TAINTS = "DRADeviceTaints"
    BINDING_CONDITIONS = "DRADeviceBindingConditions"
    NODE_ALLOCATABLE_RESOURCES = "DRANodeAllocatableResources"
    PARTITIONABLE_DEVICES_TYPE = "DRAPartitionableDevicesType"
    OPTIONAL_NODE_OPERATIONS = "DRAOptionalNodeOperations"
    COMPATIBILITY_GROUPS = "DRADeviceCompatibilityGroups"
    LIST_TYPE_ATTRIBUTES = "DRAListTypeAttributes"


GATE_OF_FIELD = {
    "allowMultipleAllocations": Gate.CONSUMABLE_CAPACITY,
    "requestPolicy": Gate.CONSUMABLE_CAPACITY,
    "sharedCounters": Gate.PARTITIONABLE_DEVICES,
    "consumesCounters": Gate.PARTITIONABLE_DEVICES,
    "perDeviceNodeSelection": Gate.PARTITIONABLE_DEVICES,
    "taints": Gate.DEVICE_TAINTS,
    "bindsToNode": Gate.BINDING_CONDITIONS,
    "bindingConditions": Gate.BINDING_CONDITIONS,
    "bindingFailureConditions": Gate.BINDING_CONDITIONS,
    "nodeAllocatableResources": Gate.NODE_ALLOCATABLE_RESOURCES,
    "partitionTypeAttribute": Gate.PARTITIONABLE_DEVICES_TYPE,
    "skipNodeOperations": Gate.OPTIONAL_NODE_OPERATIONS,
    "compatibilityGroups": Gate.COMPATIBILITY_GROUPS,
    "ints": Gate.LIST_TYPE_ATTRIBUTES,
    "bools": Gate.LIST_TYPE_ATTRIBUTES,
    "strings": Gate.LIST_TYPE_ATTRIBUTES,
    "versions": Gate.LIST_TYPE_ATTRIBUTES,
}
"""The gate behind a field of a ResourceSlice, by the field's JSON name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """What may be published. Without one of them a pool falls back to what is safe without it (`layout`)."""

    sharing: bool = True
    partitions: bool = True
    taints: bool = True

    def without(self, gate: Gate) -> "Features":
        """Return what is left where a gate is off. Gates that a pool does without change nothing."""
        match gate:
            case Gate.CONSUMABLE_CAPACITY:
                return replace(self, sharing=False)
            case Gate.PARTITIONABLE_DEVICES:
                return replace(self, partitions=False)
            case Gate.DEVICE_TAINTS:
                return replace(self, taints=False)
            case _:
                return self


ALL_FEATURES = Features()
