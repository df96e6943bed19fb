"""The extended resources behind which DeviceClasses stand (KEP-5004): Pods ask for devices by them, without a claim."""

from collections.abc import Iterable
from typing import Final

from dra_driver.api.resource_v1 import DeviceClass

_IMPLICIT: Final = "deviceclass.resource.kubernetes.io/"


def name_class_resources(classes: Iterable[DeviceClass]) -> frozenset[str]:
    """Give the names by which Pods may ask for a device of a class: its own name for it, and the one that all have."""
    return frozenset(name for each in classes for name in _names(each) if name)


def _names(device_class: DeviceClass) -> tuple[str, str]:
    return f"{_IMPLICIT}{device_class.metadata.name}", device_class.spec.extended_resource_name or ""
