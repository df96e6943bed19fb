"""Which strategy writes which kind."""

from collections.abc import Mapping

from dra_driver.api.resource_v1 import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from sandbox.api_server import kind as kinds
from sandbox.api_server.kind import Kind
from sandbox.api_server.resource_strategy import ClaimStrategy, ResourceStrategy
from sandbox.api_server.strategy import EventStrategy, LeaseStrategy, NamespaceStrategy, NodeStrategy, Strategy


def build_strategies(gates: Mapping[str, bool]) -> dict[Kind, Strategy]:
    """Give the strategies of all kinds that are served with these feature gates."""
    rules = [DeviceTaintRule] if gates["DRADeviceTaintRules"] else []
    strategies: list[Strategy] = [
        NamespaceStrategy(kinds.NAMESPACES),
        NodeStrategy(kinds.NODES),
        Strategy(kinds.PODS),
        EventStrategy(kinds.EVENTS),
        Strategy(kinds.CONFIG_MAPS),
        Strategy(kinds.SERVICE_ACCOUNTS),
        LeaseStrategy(kinds.LEASES),
        ResourceStrategy(kinds.RESOURCE_SLICES, ResourceSlice),
        ResourceStrategy(kinds.DEVICE_CLASSES, DeviceClass),
        ClaimStrategy(kinds.RESOURCE_CLAIMS, ResourceClaim),
        ClaimStrategy(kinds.RESOURCE_CLAIM_TEMPLATES, ResourceClaimTemplate),
        *(ResourceStrategy(kinds.DEVICE_TAINT_RULES, struct) for struct in rules),
    ]
    return {strategy.kind: strategy for strategy in strategies}
