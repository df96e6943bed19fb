"""How the shares of devices get along: a strategy for the node, and another one for single devices.

Pure. What a device cannot do is not published: it falls back to the shim, or to what its backend says of it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, assert_never

from dra_driver.api.config_v1alpha1 import Strategy
from dra_driver.devices.model import Device, Inventory, ShareEnforcement
from dra_driver.devices.override import explain_overrides, find_override, parse_overrides

DEFAULT_STRATEGY: Final = Strategy.SHIM

_FLAG: Final = "--sharing-strategy"
_FLAG_OF: Final = "--sharing-strategy-of"

_MPS_CAPABILITY_MIN: Final = 7
"""Volta: since then clients have address spaces and limits of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharingPolicy:
    """The strategy of a node's devices, and of those that differ, by device name, UUID or serial number."""

    default: Strategy = DEFAULT_STRATEGY
    devices: Mapping[str, Strategy] = field(default_factory=dict)

    def find_strategy(self, device: Device) -> Strategy:
        """Return the strategy of a device: Shim instead of one that the device does not know."""
        wanted = find_override(device, self.devices) or self.default
        return wanted if explain_unsupported(wanted, device) is None else Strategy.SHIM


def parse_sharing_policy(default: Strategy, overrides: Iterable[str]) -> SharingPolicy:
    """Read overrides of the form `<device name, UUID or serial>=<strategy>`.

    Raises SettingError, see `parse_overrides`.
    """
    devices = parse_overrides(overrides, Strategy, flag=_FLAG_OF, kind="strategy")
    return SharingPolicy(default=default, devices=devices)


def apply_policy(inventory: Inventory, policy: SharingPolicy) -> Inventory:
    """Return the inventory with the strategy of every device, and who holds a share to its limits under it."""
    return replace(inventory, devices=tuple(_with_strategy(device, policy) for device in inventory.devices))


def explain_policy(policy: SharingPolicy, devices: Sequence[Device], *, unenforced: bool) -> Iterator[str]:
    """Say what of a policy comes to nothing with these devices. `unenforced` is `--share-unenforced`."""
    yield from explain_overrides(policy.devices, devices, flag=_FLAG_OF)
    own = [(device, find_override(device, policy.devices)) for device in devices]
    for device, strategy in own:
        if strategy is not None and (problem := explain_unsupported(strategy, device)) is not None:
            yield f"{_FLAG_OF}: device {device.name}: {problem}; its strategy stays {Strategy.SHIM}"
    problems = [explain_unsupported(policy.default, device) for device, strategy in own if strategy is None]
    if problems and None not in problems:
        why = f"no device of this node knows {policy.default}: {problems[0]}"
        yield f"{_FLAG}: {why}; their strategy stays {Strategy.SHIM}"
    if not unenforced:
        used = {policy.find_strategy(device) for device in devices}
        for strategy in sorted(used & {Strategy.TIME_SLICING, Strategy.NONE}):
            yield (
                f"{_FLAG}: {strategy} limits no shares, so devices that have it are given to one claim at a time, "
                "want --share-unenforced to have them shared"
            )


def explain_unsupported(strategy: Strategy, device: Device) -> str | None:
    """Why a device cannot have its shares under a strategy; None if it can."""
    match strategy:
        case Strategy.SHIM | Strategy.NONE:
            return None
        case Strategy.TIME_SLICING | Strategy.MPS if device.vendor != "nvidia":
            return f"vendor {device.vendor!r} knows no {strategy}"
        case Strategy.TIME_SLICING:
            return None
        case Strategy.MPS:
            major = (device.compute_capability or "").partition(".")[0]
            old = major.isdecimal() and int(major) < _MPS_CAPABILITY_MIN
            return f"compute capability {device.compute_capability} is too old for MPS, want 7.0" if old else None
        case _:
            assert_never(strategy)


def explain_enforcement(strategy: Strategy, device: Device) -> ShareEnforcement:
    """Who holds a share of the device to its limits under a strategy."""
    match strategy:
        case Strategy.SHIM:
            return device.share_enforcement
        case Strategy.MPS:
            return ShareEnforcement.HARDWARE
        case Strategy.TIME_SLICING | Strategy.NONE:
            return ShareEnforcement.NONE
        case _:
            assert_never(strategy)


def _with_strategy(device: Device, policy: SharingPolicy) -> Device:
    strategy = policy.find_strategy(device)
    return replace(device, sharing_strategy=strategy, share_enforcement=explain_enforcement(strategy, device))
