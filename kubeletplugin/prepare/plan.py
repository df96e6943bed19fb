"""Decides, from a claim and the node's devices, what preparing the claim comes to. Pure: the kubelet may ask again."""

from collections.abc import Mapping

from dra_driver.api.config_v1alpha1 import EffectiveConfig, Strategy
from dra_driver.api.quantity import Quantity
from dra_driver.api.resource_v1 import AllocationResult, DeviceRequestAllocationResult, ResourceClaim
from dra_driver.devices.model import FULL_CORES, UNLIMITED_CORES
from dra_driver.errors import ClaimError, InvalidError
from kubeletplugin.catalog import Catalog, Entry
from kubeletplugin.prepare.config import parse_configs, resolve_config
from kubeletplugin.prepare.record import ClaimRef, Consumed, PreparedDevice


def plan_claim(
    ref: ClaimRef, claim: ResourceClaim, *, driver: str, pool: str, catalog: Catalog
) -> tuple[PreparedDevice, ...]:
    """Return what is to be prepared, one entry for each allocation result of this driver, in their order.

    Results of other drivers are ignored; a claim without one of ours needs nothing and gives ().
    Raises ClaimError that names everything that is wrong: another UID under the same name, no allocation, a device of
    another node, a device that is gone, an amount that only admin access may have, an opaque config that is not valid.
    """
    allocation = _allocation(ref, claim)
    results = [result for result in allocation.devices.results if result.driver == driver]
    problems: list[str] = []
    planned: list[PreparedDevice] = []
    try:
        configs = parse_configs(allocation.devices.config, driver=driver)
    except InvalidError as error:
        configs = ()
        problems += map(str, error.errors)
    for result in results:
        config = resolve_config(configs, request=result.request)
        try:
            planned.append(_plan_result(result, config, pool=pool, catalog=catalog))
        except ClaimError as error:
            problems.append(str(error))
    if problems:
        raise ClaimError(f"claim {ref}: {'; '.join(problems)}")
    return tuple(planned)


def _allocation(ref: ClaimRef, claim: ResourceClaim) -> AllocationResult:
    if claim.metadata.uid != ref.uid:
        raise ClaimError(f"claim {ref}: replaced by another one of UID {claim.metadata.uid!r}, want {ref.uid!r}")
    if claim.status is None or claim.status.allocation is None:
        raise ClaimError(f"claim {ref}: not allocated")
    return claim.status.allocation


def _plan_result(
    result: DeviceRequestAllocationResult, config: EffectiveConfig, *, pool: str, catalog: Catalog
) -> PreparedDevice:
    label = f"device {result.pool}/{result.device}"
    if result.pool != pool:
        raise ClaimError(f"{label}: not on this node, want pool {pool!r}")
    entry = catalog.find(result.device)
    if entry is None:
        raise ClaimError(f"{label}: not on this node any more")
    admin = bool(result.admin_access)
    consumed = _consumed(result.consumed_capacity) if result.share_id is not None else None
    if consumed is not None and not admin and (empty := _empty_capacities(consumed, entry)):
        raise ClaimError(f"{label}: consumes no {' and no '.join(empty)}, which only admin access may")
    limited = consumed is not None and not admin and _is_share(consumed, entry)
    return PreparedDevice(
        request=result.request,
        pool=result.pool,
        device=result.device,
        parent=entry.device.name if entry.partition is not None else None,
        share_id=result.share_id,
        admin_access=admin,
        consumed=consumed,
        shim_policy=config.policy if limited and config.strategy is Strategy.SHIM else None,
    )


def _consumed(capacity: Mapping[str, Quantity]) -> Consumed:
    def amount(name: str) -> int:
        return capacity[name].value() if name in capacity else 0

    return Consumed(memory=amount("memory"), cores=amount("cores"), slots=amount("slots"))


def _empty_capacities(consumed: Consumed, entry: Entry) -> list[str]:
    named = {"memory": consumed.memory, "cores": consumed.cores, "slots": consumed.slots}
    return [name for name, amount in named.items() if amount == 0] if entry.partition is None else []


def _is_share(consumed: Consumed, entry: Entry) -> bool:
    whole = entry.device.share_memory
    return (whole is not None and consumed.memory < whole) or UNLIMITED_CORES < consumed.cores < FULL_CORES
