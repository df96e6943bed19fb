"""Feature gates of Kubernetes that change what the API keeps, with the defaults of 1.37."""

import difflib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from dra_driver.errors import SettingError

DEFAULTS: Final[Mapping[str, bool]] = MappingProxyType(
    {
        "DRAConsumableCapacity": True,
        "DRADerivedAttributes": False,
        "DRADeviceBindingConditions": True,
        "DRADeviceCompatibilityGroups": False,
        "DRADeviceTaintRules": True,
        "DRADeviceTaints": True,
        "DRAFractionalCapacityRange": False,
        "DRAListTypeAttributes": False,
        "DRANodeAllocatableResources": False,
        "DRAOptionalNodeOperations": False,
        "DRAPartitionableDevices": True,
        "DRAPartitionableDevicesType": False,
    }
)


def resolve_gates(wanted: Mapping[str, bool]) -> Mapping[str, bool]:
    """Give all gates, with those that are `wanted` otherwise. Raises SettingError for one that does not exist."""
    for name in wanted:
        if name not in DEFAULTS:
            near = difflib.get_close_matches(name, DEFAULTS, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise SettingError(f"feature gate {name!r}: unknown, want one of {', '.join(DEFAULTS)}{hint}")
    return MappingProxyType({**DEFAULTS, **wanted})
