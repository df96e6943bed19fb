"""Container Device Interface (CDI): how a container runtime is told to put devices into a container."""

from cdi.errors import CdiError, InvalidNameError, InvalidSpecError, Problem, StoreError, UnresolvableError
from cdi.spec import (
    NO_EDITS,
    ContainerEdits,
    Device,
    DeviceNode,
    Hook,
    IntelRdt,
    LinuxNetDevice,
    Mount,
    Spec,
    merge_edits,
)

__all__ = [
    "NO_EDITS",
    "CdiError",
    "ContainerEdits",
    "Device",
    "DeviceNode",
    "Hook",
    "IntelRdt",
    "InvalidNameError",
    "InvalidSpecError",
    "LinuxNetDevice",
    "Mount",
    "Problem",
    "Spec",
    "StoreError",
    "UnresolvableError",
    "merge_edits",
]
