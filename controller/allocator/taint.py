"""Taints of devices, and who tolerates them (KEP-5055)."""

from collections.abc import Iterable, Sequence

import msgspec

from dra_driver.api.resource_v1 import (
    Device,
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintSelector,
    DeviceToleration,
    ResourceSlice,
)

_PREVENTING = ("NoSchedule", "NoExecute")


def preventing_taints(device: Device) -> tuple[DeviceTaint, ...]:
    """Give the taints that keep claims away; other effects, unknown ones too, do nothing."""
    return tuple(taint for taint in device.taints if taint.effect in _PREVENTING)


def untolerated_taint(taints: Sequence[DeviceTaint], tolerations: Iterable[DeviceToleration]) -> DeviceTaint | None:
    """Give the first of `taints` that no toleration covers."""
    tolerations = tuple(tolerations)
    for taint in taints:
        if not any(tolerates(toleration, taint) for toleration in tolerations):
            return taint
    return None


def tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    """Tell whether `toleration` covers `taint`: an empty key or effect covers all, an empty operator is `Equal`."""
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def apply_taint_rules(slices: Iterable[ResourceSlice], rules: Sequence[DeviceTaintRule]) -> tuple[ResourceSlice, ...]:
    """Give the slices with the taints of `rules` appended to the devices that they select; pure, in order of rules."""
    return tuple(_taint_slice(slice_, rules) for slice_ in slices)


def _taint_slice(slice_: ResourceSlice, rules: Sequence[DeviceTaintRule]) -> ResourceSlice:
    applying = [rule for rule in rules if _selects_pool(rule.spec.device_selector, slice_)]
    if not applying or not slice_.spec.devices:
        return slice_
    devices = tuple(_taint_device(device, applying) for device in slice_.spec.devices)
    if all(new is old for new, old in zip(devices, slice_.spec.devices, strict=True)):
        return slice_
    return msgspec.structs.replace(slice_, spec=msgspec.structs.replace(slice_.spec, devices=devices))


def _taint_device(device: Device, rules: Sequence[DeviceTaintRule]) -> Device:
    taints = tuple(rule.spec.taint for rule in rules if _selects_device(rule.spec.device_selector, device))
    return msgspec.structs.replace(device, taints=device.taints + taints) if taints else device


def _selects_pool(selector: DeviceTaintSelector | None, slice_: ResourceSlice) -> bool:
    """Tell whether devices of the slice may be selected; no selector selects nothing."""
    if selector is None:
        return False
    return selector.driver in (None, slice_.spec.driver) and selector.pool in (None, slice_.spec.pool.name)


def _selects_device(selector: DeviceTaintSelector | None, device: Device) -> bool:
    return selector is not None and selector.device in (None, device.name)
