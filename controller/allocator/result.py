"""Allocation results of what a search found: devices, configs in upstream's order, and where they can be used."""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

from controller.allocator.candidate import Candidate
from controller.allocator.cell import Cell
from controller.allocator.error import AllocationError
from controller.allocator.request import Alternative, ClaimPlan
from controller.allocator.table import Table
from dra_driver.api.core_v1 import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from dra_driver.api.resource_v1 import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
)

_NODES_MAX: Final = 1024


Given: TypeAlias = tuple[Alternative, int, Cell | None]
"""A device by index for a request; with what is known of the two if it is a share."""

Choices: TypeAlias = dict[tuple[int, int], int]
"""Which subrequest was chosen, by claim and request; the first where none is named."""


def build_results(
    table: Table, given: Sequence[Sequence[Given]], choices: Choices, new_share_id: Callable[[], str]
) -> tuple[AllocationResult, ...]:
    """Give one result a claim, in order. Raises AllocationError for a node selector with several terms."""
    results = []
    for index, own in enumerate(given):
        plan = table.claims[index]
        config: tuple[DeviceAllocationConfiguration, ...] = ()
        if plan.is_configured:
            positions = (choices.get((index, position), 0) for position in range(len(plan.requests)))
            chosen = [
                request.alternatives[position] for request, position in zip(plan.requests, positions, strict=True)
            ]
            config = tuple(_build_config(plan, chosen))
        devices = []
        for alternative, place, share in own:
            device = alternative.results.get(place) if share is None else None
            devices.append(device or _build_device(table, alternative, place, share, new_share_id))
        selector = _build_node_selector(table, own, plan.name)
        devices_result = DeviceAllocationResult(results=tuple(devices), config=config)
        results.append(AllocationResult(devices=devices_result, node_selector=selector))
    return tuple(results)


def _build_device(
    table: Table, alternative: Alternative, index: int, share: Cell | None, new_share_id: Callable[[], str]
) -> DeviceRequestAllocationResult:
    """Say who gets what; what is no share is remembered, since it is the same each time."""
    candidate = table.candidates[index]
    driver, pool, name = candidate.id
    has_conditions = table.features.device_binding_and_status
    result = DeviceRequestAllocationResult(
        request=alternative.result_name,
        driver=driver,
        pool=pool,
        device=name,
        admin_access=alternative.is_admin or None,
        tolerations=alternative.tolerations,
        binding_conditions=candidate.device.binding_conditions if has_conditions else (),
        binding_failure_conditions=candidate.device.binding_failure_conditions if has_conditions else (),
        share_id=new_share_id() if share is not None else None,
        consumed_capacity=(share.quantities or {}) if share is not None else {},
        skip_node_operations=(
            candidate.slice.spec.skip_node_operations if table.features.optional_node_operations else ()
        ),
    )
    if share is None:
        alternative.results[index] = result
    return result


def _build_config(plan: ClaimPlan, chosen: list[Alternative]) -> Iterator[DeviceAllocationConfiguration]:
    """Yield class configs first, once a class, then those of the claim that concern what was chosen."""
    for name, requests in _group_by_class(chosen).items():
        device_class = next(entry.device_class for entry in chosen if entry.device_class.metadata.name == name)
        for config in device_class.spec.config:
            yield DeviceAllocationConfiguration(
                source="FromClass", requests=_cleared(requests, chosen), opaque=config.opaque
            )
    names = {name for alternative in chosen for name in _names(alternative)}
    for claim_config in plan.claim.spec.devices.config:
        if not claim_config.requests or names.intersection(claim_config.requests):
            yield DeviceAllocationConfiguration(
                source="FromClaim", requests=_cleared(claim_config.requests, chosen), opaque=claim_config.opaque
            )


def _group_by_class(chosen: list[Alternative]) -> dict[str, tuple[str, ...]]:
    groups: dict[str, tuple[str, ...]] = {}
    for alternative in chosen:
        name = alternative.device_class.metadata.name
        groups[name] = (*groups.get(name, ()), alternative.result_name)
    return groups


def _names(alternative: Alternative) -> tuple[str, ...]:
    """Give the names under which a list of requests may mean the alternative."""
    return (alternative.parent, alternative.result_name) if alternative.parent else (alternative.name,)


def _cleared(requests: tuple[str, ...], chosen: list[Alternative]) -> tuple[str, ...]:
    """Empty a list that names every request: empty means all."""
    if all(any(name in requests for name in _names(alternative)) for alternative in chosen):
        return ()
    return requests


def _build_node_selector(table: Table, given: Sequence[Given], claim: str) -> NodeSelector | None:
    fields: list[NodeSelectorRequirement] = []
    expressions: list[NodeSelectorRequirement] = []
    for _, index, _ in given:
        candidate = table.candidates[index]
        node_name, selector = _where(candidate)
        if node_name is not None or candidate.device.binds_to_node:
            return _this_node(table.node.metadata.name)
        terms = selector.node_selector_terms if selector is not None else ()
        if len(terms) > 1:
            raise AllocationError(f"claim {claim}: node selector of {candidate.subject} has {len(terms)} terms, want 1")
        for term in terms:
            _merge(fields, term.match_fields)
            _merge(expressions, term.match_expressions)
    if not fields and not expressions:
        return None
    term = NodeSelectorTerm(match_fields=tuple(fields), match_expressions=tuple(expressions))
    return NodeSelector(node_selector_terms=(term,))


def _where(candidate: Candidate) -> tuple[str | None, NodeSelector | None]:
    spec = candidate.slice.spec
    if spec.per_device_node_selection:
        return candidate.device.node_name, candidate.device.node_selector
    return spec.node_name, spec.node_selector


@lru_cache(_NODES_MAX)
def _this_node(name: str) -> NodeSelector:
    requirement = NodeSelectorRequirement(key="metadata.name", operator="In", values=(name,))
    return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(requirement,)),))


def _merge(into: list[NodeSelectorRequirement], requirements: tuple[NodeSelectorRequirement, ...]) -> None:
    for requirement in requirements:
        if not any(_is_same(requirement, held) for held in into):
            into.append(requirement)


def _is_same(left: NodeSelectorRequirement, right: NodeSelectorRequirement) -> bool:
    return (left.key, left.operator, set(left.values)) == (right.key, right.operator, set(right.values))
