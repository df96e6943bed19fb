"""The DeviceClasses that the chart installs, for a cluster that no chart is installed in. Pure."""

from collections.abc import Iterator, Mapping
from typing import Final

from dra_driver.api.meta_v1 import ObjectMeta
from dra_driver.api.resource_v1 import CELDeviceSelector, DeviceClass, DeviceClassSpec, DeviceSelector

_CONDITIONS: Final[Mapping[str, str]] = {
    "accelerator": "{attributes}.partition == false",
    "gpu": '{attributes}.type == "gpu" && {attributes}.partition == false',
    "npu": '{attributes}.type == "npu" && {attributes}.partition == false',
    "partition": "{attributes}.partition == true",
}


def build_device_classes(driver: str) -> Iterator[DeviceClass]:
    """Build `accelerator`, `gpu`, `npu` and `partition`, each with the suffix `.dra-driver.io`."""
    attributes = f'device.attributes["{driver}"]'
    for name, condition in _CONDITIONS.items():
        expression = f'device.driver == "{driver}" && {condition.format(attributes=attributes)}'
        yield DeviceClass(
            metadata=ObjectMeta(name=f"{name}.dra-driver.io"),
            spec=DeviceClassSpec(selectors=(DeviceSelector(cel=CELDeviceSelector(expression=expression)),)),
        )
