"""How a node looks to claims: nodes that look the same fit alike, so that one of them is tried for all."""

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from controller.allocator.candidate import Candidate, find_attribute
from controller.allocator.pool import Pool, matches_device_node
from controller.allocator.selector import SelectorCache
from controller.allocator.state import AllocatedState
from dra_driver.api.core_v1 import Node
from dra_driver.api.resource_v1 import DeviceClass, DeviceSubRequest, ExactDeviceRequest, ResourceClaim

Numbers: TypeAlias = dict[Hashable, int]
"""Numbers for what is seen: they compare faster, and take less room."""

Sight: TypeAlias = tuple[tuple[int, ...], ...]
"""A number for each device, by pool. Devices with equal numbers look alike but for who uses them."""


@dataclass(frozen=True, slots=True)
class Glance:
    """What claims and their classes look at in a device: selectors, derived attributes, constrained attributes."""

    selectors: tuple[str, ...]
    derived: tuple[str, ...]
    attributes: tuple[str, ...]


def find_glance(claims: Sequence[ResourceClaim], classes: Mapping[str, DeviceClass]) -> Glance:
    """Give what `claims` look at."""
    selectors: dict[str, None] = {}
    derived: dict[str, None] = {}
    attributes: dict[str, None] = {}
    for claim in claims:
        for part in _parts(claim):
            device_class = classes.get(part.device_class_name)
            found = (*(device_class.spec.selectors if device_class is not None else ()), *part.selectors)
            selectors.update(dict.fromkeys(entry.cel.expression for entry in found if entry.cel is not None))
            derived.update(dict.fromkeys(entry.expression for entry in part.derived_attributes))
        for constraint in claim.spec.devices.constraints:
            attributes[constraint.match_attribute or constraint.distinct_attribute or ""] = None
    return Glance(tuple(selectors), tuple(derived), tuple(attributes))


def see_devices(node: Node, pools: Sequence[Pool], glance: Glance, selectors: SelectorCache, numbers: Numbers) -> Sight:
    """Give what the claims see of the devices of a node while its slices stand; `numbers` is added to."""
    known: list[Numbers] = [{} for _ in glance.attributes]
    return tuple(
        tuple(
            numbers.setdefault(
                (
                    _look_at_device(node, candidate, glance, selectors),
                    _number_attributes(candidate, glance, known),
                ),
                len(numbers),
            )
            for candidate in pool.candidates
        )
        for pool in pools
    )


def look_at_node(node: Node, pools: Sequence[Pool], sight: Sight, state: AllocatedState) -> Hashable:
    """Give what the claims see of a node. Names of devices and pools, and the order of devices, do not count."""
    seen = []
    for pool, numbers in zip(pools, sight, strict=True):
        devices = Counter(zip(numbers, _look_at_uses(pool, state), strict=True))
        counted = frozenset(devices.items())
        seen.append((pool.id[0], pool.is_incomplete, bool(pool.invalid), counted, _look_at_counters(pool, state)))
    return (node.status.declared_features, tuple(seen))


def _parts(claim: ResourceClaim) -> Iterator[ExactDeviceRequest | DeviceSubRequest]:
    for request in claim.spec.devices.requests:
        if request.exactly is not None:
            yield request.exactly
        yield from request.first_available


def _look_at_device(node: Node, candidate: Candidate, glance: Glance, selectors: SelectorCache) -> Hashable:
    device, spec = candidate.device, candidate.slice.spec
    return (
        tuple(selectors.key(candidate, expression) for expression in glance.selectors),
        tuple(selectors.derived_key(candidate, expression) for expression in glance.derived),
        tuple(device.capacity.items()),
        tuple(candidate.consumption.items()),
        tuple(candidate.groups.items()),
        candidate.taints,
        candidate.is_shareable,
        bool(device.binding_conditions),
        bool(spec.skip_node_operations),
        not spec.per_device_node_selection or matches_device_node(node, device, candidate.slice),
    )


def _number_attributes(candidate: Candidate, glance: Glance, numbers: list[Numbers]) -> tuple[Hashable, ...]:
    """Give constrained attributes as numbers, since all that counts is which of them are equal; lists stay."""
    seen: list[Hashable] = []
    for name, known in zip(glance.attributes, numbers, strict=True):
        attribute = find_attribute(candidate.device.attributes, name, candidate.id[0])
        if attribute is None or attribute.ints or attribute.bools or attribute.strings or attribute.versions:
            seen.append(attribute)
        else:
            seen.append(known.setdefault(attribute, len(known)))
    return tuple(seen)


def _look_at_uses(pool: Pool, state: AllocatedState) -> Iterator[Hashable]:
    """Yield how each device is used; most are not, or as a whole."""
    whole, shares = state.whole, state.shares
    for candidate in pool.candidates:
        id_ = candidate.id
        if id_ in shares:
            consumed = state.consumed.get(id_)
            yield (id_ in whole, frozenset(consumed.items()) if consumed else None)
        else:
            yield id_ in whole


def _look_at_counters(pool: Pool, state: AllocatedState) -> Hashable:
    """Give the counters with what devices elsewhere have taken of them."""
    if not pool.counters:
        return None
    taken = tuple(
        (tuple(other.consumption.items()), tuple(other.groups.items()))
        for other in pool.others
        if state.is_allocated(other.id)
    )
    return (tuple(pool.counters.items()), taken)
