"""Decides, from a claim and the node's devices, what preparing the claim comes to. Pure: the kubelet may ask again."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from dra_driver.api import name
from dra_driver.api.config_v1alpha1 import DeviceConfig
from dra_driver.api.quantity import Quantity
from dra_driver.api.resource_v1 import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from dra_driver.devices.model import FULL_CORES, UNLIMITED_CORES
from dra_driver.errors import ClaimError, InvalidError
from kubeletplugin.catalog import Catalog, Entry
from kubeletplugin.prepare.config import is_demanded_by_class, parse_configs, resolve_config
from kubeletplugin.prepare.record import ClaimRef, Consumed, PreparedDevice
from kubeletplugin.prepare.strategy import (
    NOTHING_PRESENT,
    Present,
    SharePlan,
    explain_daemons,
    explain_refused_demand,
    plan_sharing,
)

_SHARE_ID: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_AMOUNT_MAX: Final = 2**63 - 1


_Configs = tuple[tuple[DeviceAllocationConfiguration, DeviceConfig], ...]


def plan_claim(  # noqa: PLR0913 - what a plan depends on, by keyword
    ref: ClaimRef,
    claim: ResourceClaim,
    *,
    driver: str,
    pool: str,
    catalog: Catalog,
    present: Mapping[str, Present] = NOTHING_PRESENT,
    unenforced: bool = False,
) -> tuple[PreparedDevice, ...]:
    """Return what is to be prepared, one entry for each allocation result of this driver, in their order.

    Results of other drivers are ignored; a claim without one of ours needs nothing and gives ().
    `present` is how devices are shared by other claims now, which a share follows; `unenforced` allows claims to demand
    strategies that limit nobody.
    Raises ClaimError that names everything that is wrong: another UID under the same name, no allocation, a device of
    another node, a device that is gone, a share that no allocator makes, an amount that only admin access may have, an
    opaque config that is not valid, or demands what the device cannot do or the claim may not have.
    """
    allocation = _allocation(ref, claim)
    results = [result for result in allocation.devices.results if result.driver == driver]
    problems: list[str] = []
    planned: list[PreparedDevice] = []
    configs: _Configs
    try:
        configs = parse_configs(allocation.devices.config, driver=driver)
    except InvalidError as error:
        configs = ()
        problems += map(str, error.errors)
    for result in results:
        try:
            entry = _find_entry(result, pool=pool, catalog=catalog)
            planned.append(_plan_result(result, entry, configs, present.get(result.device), unenforced=unenforced))
        except ClaimError as error:
            problems.append(str(error))
    problems += _repeated_shares(planned)
    problems += explain_daemons(planned)
    if problems:
        raise ClaimError(f"claim {ref}: {'; '.join(problems)}")
    return tuple(planned)


def _allocation(ref: ClaimRef, claim: ResourceClaim) -> AllocationResult:
    if claim.metadata.uid != ref.uid:
        raise ClaimError(f"claim {ref}: replaced by another one of UID {claim.metadata.uid!r}, want {ref.uid!r}")
    if claim.status is None or claim.status.allocation is None:
        raise ClaimError(f"claim {ref}: not allocated")
    return claim.status.allocation


def _find_entry(result: DeviceRequestAllocationResult, *, pool: str, catalog: Catalog) -> Entry:
    if result.pool != pool:
        raise ClaimError(f"{_label(result)}: not on this node, want pool {pool!r}")
    entry = catalog.find(result.device)
    if entry is None:
        raise ClaimError(f"{_label(result)}: not on this node any more")
    return entry


def _plan_result(
    result: DeviceRequestAllocationResult,
    entry: Entry,
    configs: _Configs,
    present: Present | None,
    *,
    unenforced: bool,
) -> PreparedDevice:
    problems = list(_share_problems(result, entry))
    admin = bool(result.admin_access)
    config = resolve_config(configs, request=result.request)
    consumed = _consumed(result.consumed_capacity) if result.share_id is not None else None
    is_share = entry.partition is None and consumed is not None and _is_share(consumed, entry)
    by_class = is_demanded_by_class(configs, config.strategy, request=result.request)
    refused = explain_refused_demand(
        entry.device,
        config.strategy,
        is_partition=entry.partition is not None,
        may_loosen=by_class or unenforced or not is_share,
    )
    if refused is not None and not admin:
        problems.append(refused)
    if problems:
        raise ClaimError(f"{_label(result)}: {', '.join(problems)}")
    sharing = SharePlan()
    if not admin and entry.partition is None:
        sharing = plan_sharing(entry.device, consumed, config, present, is_share=is_share)
    return PreparedDevice(
        request=result.request,
        pool=result.pool,
        device=result.device,
        parent=entry.device.name if entry.partition is not None else None,
        share_id=result.share_id,
        admin_access=admin,
        consumed=consumed,
        shim_policy=sharing.shim_policy,
        strategy=sharing.strategy,
        interval=sharing.interval,
        mps=sharing.mps,
    )


def _label(result: DeviceRequestAllocationResult) -> str:
    """The device as `pool/device`, quoted if that is nothing that the API server lets through."""
    text = f"{result.pool}/{result.device}"
    plain = not name.validate_pool_name(result.pool) and not name.validate_dns_label(result.device)
    return f"device {text if plain else name.quote(text)}"


def _share_problems(result: DeviceRequestAllocationResult, entry: Entry) -> Iterator[str]:
    """Yield what is wrong with a share; its ID becomes a part of file names."""
    if result.share_id is None:
        return
    if not _SHARE_ID.fullmatch(result.share_id):
        yield f"share ID {name.quote(result.share_id)} is not one, want at most 63 letters, digits and '-'"
    if entry.partition is not None:
        yield "is a partition, which nobody can have a share of"
        return
    consumed = {key: result.consumed_capacity.get(key) for key in ("memory", "cores", "slots")}
    for key, quantity in consumed.items():
        if quantity is not None and not 0 <= quantity.value() <= _AMOUNT_MAX:
            yield f"consumes {name.quote(str(quantity))} of {key}, want 0 to {_AMOUNT_MAX}"
    empty = [key for key, quantity in consumed.items() if not quantity]
    if empty and not result.admin_access:
        yield f"consumes no {' and no '.join(empty)}, which only admin access may"


def _repeated_shares(planned: Iterable[PreparedDevice]) -> Iterator[str]:
    """Yield what would be one CDI device with two different limits."""
    shares = Counter((str(device), device.share_id) for device in planned if device.share_id is not None)
    for (device, share_id), times in shares.items():
        if times > 1:
            yield f"device {device}: share {share_id!r} stands {times} times, want each once"


def _consumed(capacity: Mapping[str, Quantity]) -> Consumed:
    def amount(key: str) -> int:
        return capacity[key].value() if key in capacity else 0

    return Consumed(memory=amount("memory"), cores=amount("cores"), slots=amount("slots"))


def _is_share(consumed: Consumed, entry: Entry) -> bool:
    whole = entry.device.share_memory
    return (whole is not None and consumed.memory < whole) or UNLIMITED_CORES < consumed.cores < FULL_CORES
