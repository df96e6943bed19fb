"""Which strategy writes which kind."""

from collections.abc import Mapping

from sandbox.api_server import kind as kinds
from sandbox.api_server.kind import Kind
from sandbox.api_server.pod_strategy import PodStrategy
from sandbox.api_server.resource_strategy import (
    ClaimStrategy,
    ClassStrategy,
    SliceStrategy,
    TaintRuleStrategy,
    TemplateStrategy,
)
from sandbox.api_server.strategy import (
    ConfigMapStrategy,
    EventStrategy,
    LeaseStrategy,
    NamespaceStrategy,
    NodeStrategy,
    Strategy,
)


def build_strategies(gates: Mapping[str, bool]) -> dict[Kind, Strategy]:
    """Give the strategies of all kinds that are served with these feature gates."""
    strategies: list[Strategy] = [
        NamespaceStrategy(kinds.NAMESPACES),
        NodeStrategy(kinds.NODES),
        PodStrategy(kinds.PODS),
        EventStrategy(kinds.EVENTS),
        ConfigMapStrategy(kinds.CONFIG_MAPS),
        Strategy(kinds.SERVICE_ACCOUNTS),
        LeaseStrategy(kinds.LEASES),
        SliceStrategy(kinds.RESOURCE_SLICES, gates),
        ClassStrategy(kinds.DEVICE_CLASSES, gates),
        ClaimStrategy(kinds.RESOURCE_CLAIMS, gates),
        TemplateStrategy(kinds.RESOURCE_CLAIM_TEMPLATES, gates),
    ]
    if gates["DRADeviceTaintRules"]:
        strategies.append(TaintRuleStrategy(kinds.DEVICE_TAINT_RULES, gates))
    return {strategy.kind: strategy for strategy in strategies}
