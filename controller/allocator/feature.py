"""The feature gates that change what the allocator decides, by name and as a Kubernetes version has them."""

from dataclasses import dataclass, fields
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """Gates of kube-scheduler, as its allocator groups them. The defaults are those of Kubernetes 1.37."""

    admin_access: bool = True
    compatibility_groups: bool = False
    consumable_capacity: bool = True
    derived_attributes: bool = False
    device_binding_and_status: bool = True
    device_taints: bool = True
    fractional_capacity_range: bool = False
    list_type_attributes: bool = False
    optional_node_operations: bool = False
    partitionable_devices: bool = True
    prioritized_list: bool = True

    @property
    def knows_node_operations(self) -> bool:
        """Whether skipNodeOperations means anything.

        Only upstream's experimental allocator looks at it, which runs as soon as one of these alpha gates is on.
        """
        return (
            self.compatibility_groups
            or self.derived_attributes
            or self.list_type_attributes
            or self.optional_node_operations
        )


_GATES: Final = {
    "DRAAdminAccess": ("admin_access",),
    "DRADeviceCompatibilityGroups": ("compatibility_groups",),
    "DRAConsumableCapacity": ("consumable_capacity",),
    "DRADerivedAttributes": ("derived_attributes",),
    "DRADeviceTaints": ("device_taints",),
    "DRAFractionalCapacityRange": ("fractional_capacity_range",),
    "DRAListTypeAttributes": ("list_type_attributes",),
    "DRAOptionalNodeOperations": ("optional_node_operations",),
    "DRAPartitionableDevices": ("partitionable_devices",),
    "DRAPrioritizedList": ("prioritized_list",),
}
_BINDING_GATES: Final = ("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus")

GATES: Final = (*_GATES, *_BINDING_GATES)
"""The names of all feature gates that matter here."""

# What is on by default, by minor version of Kubernetes 1.
_DEFAULT_GATES: Final[dict[int, frozenset[str]]] = {
    34: frozenset({"DRAAdminAccess", "DRAPrioritizedList", "DRAResourceClaimDeviceStatus"}),
    35: frozenset({"DRAAdminAccess", "DRAPrioritizedList", "DRAResourceClaimDeviceStatus"}),
    36: frozenset(
        {
            "DRAAdminAccess",
            "DRAPrioritizedList",
            "DRADeviceTaints",
            "DRAConsumableCapacity",
            "DRAPartitionableDevices",
            *_BINDING_GATES,
        }
    ),
}
_OLDEST: Final = min(_DEFAULT_GATES)
_NEWEST: Final = 37


def features_of_gates(gates: frozenset[str] | set[str]) -> Features:
    """Give the features of a cluster whose enabled gates are `gates`; other gates are ignored."""
    enabled = {name for gate, names in _GATES.items() if gate in gates for name in names}
    if gates.issuperset(_BINDING_GATES):
        enabled.add("device_binding_and_status")
    return Features(**{field.name: field.name in enabled for field in fields(Features)})


def features_of_version(version: str, gates: dict[str, bool] | None = None) -> Features:
    """Give the features of Kubernetes `version` ("1.34" … "1.37") with `gates` set as said.

    Raises ValueError for a version before 1.34; one after 1.37 counts as 1.37.
    """
    major, _, rest = version.removeprefix("v").partition(".")
    minor = int(rest.partition(".")[0]) if rest.partition(".")[0].isdigit() else -1
    if major != "1" or minor < _OLDEST:
        raise ValueError(f"version {version!r}: not supported, want 1.{_OLDEST} to 1.{_NEWEST}")
    enabled = set(_DEFAULT_GATES[min(minor, max(_DEFAULT_GATES))])
    for gate, is_on in (gates or {}).items():
        (enabled.add if is_on else enabled.discard)(gate)
    return features_of_gates(enabled)


def features_of_names(names: dict[str, bool]) -> Features:
    """Give the features by upstream's own names (`AdminAccess`, …).

    A missing name is off, an unknown one is ignored.
    """
    by_name = {field.name.replace("_", ""): field.name for field in fields(Features)}
    values = {by_name[name.lower()]: is_on for name, is_on in names.items() if name.lower() in by_name}
    return Features(**({field.name: False for field in fields(Features)} | values))
