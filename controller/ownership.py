"""Who allocates what: kube-scheduler by default, the controller where an administrator gave it nodes and classes.

Devices of a Node with the label carry a taint that kube-scheduler never tolerates; the controller ignores exactly that
taint, and takes no device without it. Claims belong to the allocator of their classes.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final

import msgspec

from dra_driver.allocator import ALLOCATION_GATE, ALLOCATOR_KEY, ALLOCATOR_TAINT, Allocator, allocator_of
from dra_driver.api.core_v1 import Node, Pod
from dra_driver.api.resource_v1 import Device, DeviceClass, DeviceTaint, ResourceClaim, ResourceSlice

KEY: Final = ALLOCATOR_KEY
CONTROLLER: Final = Allocator.CONTROLLER.value
GATE: Final = ALLOCATION_GATE
TAINT_EFFECT: Final = ALLOCATOR_TAINT.effect
TAINT: Final = f"{KEY}={CONTROLLER}:{TAINT_EFFECT}"


class Owner(StrEnum):
    """Who allocates a claim."""

    CONTROLLER = "controller"
    SCHEDULER = "scheduler"
    MIXED = "mixed"
    """It names classes of both, and nobody can allocate it."""
    UNKNOWN = "unknown"
    """It names a class that is not there."""


def is_given(node: Node) -> bool:
    """Tell whether an administrator gave the node to the controller."""
    return allocator_of(node.metadata.labels) is Allocator.CONTROLLER


def is_own_class(device_class: DeviceClass) -> bool:
    """Tell whether claims for the class are allocated by the controller."""
    return allocator_of(device_class.metadata.labels) is Allocator.CONTROLLER


def class_names(claim: ResourceClaim) -> tuple[str, ...]:
    """Give the classes that a claim names in its requests and subrequests, each once, in order."""
    return tuple(dict.fromkeys(_class_names(claim)))


def owner_of(claim: ResourceClaim, classes: Mapping[str, DeviceClass]) -> Owner:
    """Give who allocates the claim. One without requests is kube-scheduler's."""
    found = [classes.get(name) for name in class_names(claim)]
    owners = {is_own_class(each) for each in found if each is not None}
    if len(owners) > 1:
        return Owner.MIXED
    if None in found:
        return Owner.UNKNOWN
    return Owner.CONTROLLER if owners == {True} else Owner.SCHEDULER


def is_gated(pod: Pod) -> bool:
    """Tell whether kube-scheduler waits for the controller."""
    return any(gate.name == GATE for gate in pod.spec.scheduling_gates)


def has_taint(device: Device) -> bool:
    """Tell whether the device is given to the controller."""
    return any(_is_ours(taint) for taint in device.taints)


def strip_taint(slice_: ResourceSlice) -> ResourceSlice:
    """Give the slice without the taint that the controller ignores."""
    devices = tuple(
        msgspec.structs.replace(device, taints=tuple(taint for taint in device.taints if not _is_ours(taint)))
        for device in slice_.spec.devices
    )
    return msgspec.structs.replace(slice_, spec=msgspec.structs.replace(slice_.spec, devices=devices))


def _is_ours(taint: DeviceTaint) -> bool:
    return (taint.key, taint.value, taint.effect) == (KEY, CONTROLLER, TAINT_EFFECT)


def _class_names(claim: ResourceClaim) -> Iterator[str]:
    for request in claim.spec.devices.requests:
        if request.exactly is not None:
            yield request.exactly.device_class_name
        for subrequest in request.first_available:
            yield subrequest.device_class_name
