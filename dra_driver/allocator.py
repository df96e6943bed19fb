"""Who allocates: kube-scheduler, or this project's controller. Devices, classes and Pods say whom they belong to.

- A Node with the label belongs to the controller: its plugin publishes every device with the taint, which keeps
  kube-scheduler away, and which the controller alone ignores.
- A DeviceClass with the label is for claims that the controller allocates.
- A Pod with the gate waits for the controller before kube-scheduler looks at it.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from dra_driver.api.resource_v1 import DeviceTaint

ALLOCATOR_KEY: Final = "dra-driver.io/allocator"
"""The key of the label of Nodes and DeviceClasses, and of the taint of devices."""

ALLOCATION_GATE: Final = "dra-driver.io/allocation"
"""The scheduling gate of Pods."""


class Allocator(StrEnum):
    """Whoever may give devices away. The value is that of the label and of the taint."""

    SCHEDULER = "kube-scheduler"
    """It needs no label: what says nothing, or anything that is not understood, belongs to kube-scheduler."""
    CONTROLLER = "controller"


ALLOCATOR_TAINT: Final = DeviceTaint(key=ALLOCATOR_KEY, value=Allocator.CONTROLLER.value, effect="NoSchedule")
"""The taint of the devices that belong to the controller."""


def allocator_of(labels: Mapping[str, str]) -> Allocator:
    """Say whom the Node or DeviceClass with these labels belongs to."""
    return Allocator.CONTROLLER if labels.get(ALLOCATOR_KEY) == Allocator.CONTROLLER else Allocator.SCHEDULER
