"""Which sharing strategy a claim's device is prepared under, and with which limits. Pure.

The strategy is the device's: what shares that are prepared have already, else what the claim demands, else the
operator's word. A demand never changes it under somebody: `room` refuses that, naming the holder.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from dra_driver.api.config_v1alpha1 import FULL_PERCENTAGE, EffectiveConfig, Interval, Policy, Strategy
from dra_driver.devices.model import UNLIMITED_CORES, Device, ShareEnforcement
from dra_driver.devices.sharing import DEFAULT_STRATEGY, explain_enforcement, explain_unsupported
from kubeletplugin.prepare.record import ClaimRecord, Consumed, MpsLimits, PreparedDevice


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """How a device is shared now."""

    strategy: Strategy
    interval: Interval | None = None


NOTHING_PRESENT: Mapping[str, Present] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class SharePlan:
    """How one allocation result takes part in the sharing of its device; the fields are those of `PreparedDevice`."""

    strategy: Strategy | None = None
    shim_policy: Policy | None = None
    interval: Interval | None = None
    mps: MpsLimits | None = None


def read_present(records: Iterable[ClaimRecord], *, besides: str) -> dict[str, Present]:
    """Return how the devices are shared that claims other than `besides` have shares of."""
    return {
        device.device: Present(strategy=strategy, interval=device.interval)
        for record in records
        if record.uid != besides
        for device in record.devices
        if (strategy := device.sharing) is not None
    }


def plan_sharing(
    device: Device, consumed: Consumed | None, config: EffectiveConfig, present: Present | None, *, is_share: bool
) -> SharePlan:
    """Return how a whole device, or a share of it, is shared. A whole one is only if that is demanded."""
    if not is_share and config.strategy not in (Strategy.TIME_SLICING, Strategy.MPS):
        return SharePlan()
    own = present.strategy if present is not None else device.sharing_strategy or DEFAULT_STRATEGY
    strategy = config.strategy or own
    kept = present.interval if present is not None else None
    return SharePlan(
        strategy=strategy,
        shim_policy=config.policy if strategy is Strategy.SHIM else None,
        interval=config.interval or kept or Interval.DEFAULT if strategy is Strategy.TIME_SLICING else None,
        mps=_mps_limits(device, consumed, config) if strategy is Strategy.MPS else None,
    )


def explain_refused_demand(
    device: Device, demanded: Strategy | None, *, is_partition: bool, may_loosen: bool
) -> str | None:
    """Why a config may not demand a strategy of a device; None if it may.

    `may_loosen` is whether it may demand one that limits nobody where shares are limited: the class of a share may, its
    claim must not shake off what the operator set. Every partition is one claim's alone.
    """
    if demanded is None:
        return None
    if is_partition:
        shared = demanded in (Strategy.TIME_SLICING, Strategy.MPS)
        return f"is a partition, which has no {demanded}, want a config for whole devices or shares" if shared else None
    if problem := explain_unsupported(demanded, device):
        return problem
    held = device.share_enforcement is not ShareEnforcement.NONE
    loose = explain_enforcement(demanded, device) is ShareEnforcement.NONE
    if held and loose and not may_loosen:
        return f"the claim demands strategy {demanded.value!r}, which limits nobody, want a DeviceClass that does"
    return None


def explain_daemons(planned: Iterable[PreparedDevice]) -> Iterator[str]:
    """Yield why the devices of a claim do not go together: a process talks to one MPS daemon, which has one device."""
    devices = sorted({str(each) for each in planned if each.strategy is Strategy.MPS})
    if len(devices) > 1:
        yield f"devices {', '.join(devices)}: each is shared by an MPS daemon of its own, want one such device a claim"


def explain_conflict(device: PreparedDevice, other: PreparedDevice) -> str | None:
    """What stands between two results of one device: another strategy, or another length of turns."""
    if device.strategy is None or other.sharing is None:
        return None
    if device.strategy is not other.sharing:
        return f"is shared by {other.sharing}, want no other strategy ({device.strategy}) before that ends"
    if device.interval is not other.interval:
        return f"has turns of length {other.interval}, want no other ({device.interval}) before that ends"
    return None


def _mps_limits(device: Device, consumed: Consumed | None, config: EffectiveConfig) -> MpsLimits:
    """The lesser of what was allocated and what the config leaves: a config may tighten, never widen."""
    cores = consumed.cores if consumed is not None and consumed.cores > UNLIMITED_CORES else FULL_PERCENTAGE
    threads = min(cores, config.thread_percentage or FULL_PERCENTAGE)
    memory = _least(_part(device, consumed), config.memory_limit)
    return MpsLimits(memory=memory, thread_percentage=threads if threads < FULL_PERCENTAGE else None)


def _part(device: Device, consumed: Consumed | None) -> int | None:
    whole = device.share_memory
    return consumed.memory if consumed is not None and whole is not None and consumed.memory < whole else None


def _least(first: int | None, second: int | None) -> int | None:
    limits = [limit for limit in (first, second) if limit is not None]
    return min(limits) if limits else None
