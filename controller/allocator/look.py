"""How a node looks to claims: nodes that look the same fit alike, so that one of them is tried for all."""

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from controller.allocator.candidate import Candidate, find_attribute
from controller.allocator.pool import Pool, matches_device_node
from controller.allocator.selector import SelectorCache
from controller.allocator.state import AllocatedState
from dra_driver.api.core_v1 import Node
from dra_driver.api.resource_v1 import DeviceClass, DeviceSubRequest, ExactDeviceRequest, ResourceClaim

_LOOKS_MAX = 64


@dataclass(frozen=True, slots=True)
class Glance:
    """What claims and their classes look at in a device: selectors, derived attributes, constrained attributes."""

    selectors: tuple[str, ...]
    derived: tuple[str, ...]
    attributes: tuple[str, ...]


class Look:
    """What is seen, hashed once."""

    __slots__ = ("_hash", "_seen")

    def __init__(self, seen: Hashable) -> None:
        self._seen = seen
        self._hash = hash(seen)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Look) and self._hash == other._hash and self._seen == other._seen)


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


def look_at_node(
    node: Node, pools: Sequence[Pool], state: AllocatedState, glance: Glance, selectors: SelectorCache
) -> Hashable:
    """Give what the claims see of a node. Names of devices and pools, and the order of devices, do not count."""
    seen = []
    numbers: list[dict[Hashable, int]] = [{} for _ in glance.attributes]
    for pool in pools:
        devices = Counter(
            (
                _look_at_device(node, candidate, glance, selectors),
                _look_at_use(candidate, state),
                _number_attributes(candidate, glance, numbers),
            )
            for candidate in pool.candidates
        )
        counted = frozenset(devices.items())
        seen.append((pool.id[0], pool.is_incomplete, bool(pool.invalid), counted, _look_at_counters(pool, state)))
    return (node.status.declared_features, tuple(seen))


def _parts(claim: ResourceClaim) -> Iterator[ExactDeviceRequest | DeviceSubRequest]:
    for request in claim.spec.devices.requests:
        if request.exactly is not None:
            yield request.exactly
        yield from request.first_available


def _look_at_device(node: Node, candidate: Candidate, glance: Glance, selectors: SelectorCache) -> Hashable:
    """Give what does not change while the slice stands; remembered."""
    look = candidate.looks.get(glance)
    if look is None:
        if len(candidate.looks) >= _LOOKS_MAX:
            candidate.looks.clear()
        look = candidate.looks[glance] = Look(_look(node, candidate, glance, selectors))
    return look


def _look(node: Node, candidate: Candidate, glance: Glance, selectors: SelectorCache) -> Hashable:
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


def _number_attributes(
    candidate: Candidate, glance: Glance, numbers: list[dict[Hashable, int]]
) -> tuple[Hashable, ...]:
    """Give constrained attributes as numbers, since all that counts is which of them are equal; lists stay."""
    seen: list[Hashable] = []
    for name, known in zip(glance.attributes, numbers, strict=True):
        attribute = find_attribute(candidate.device.attributes, name, candidate.id[0])
        if attribute is None or attribute.ints or attribute.bools or attribute.strings or attribute.versions:
            seen.append(attribute)
        else:
            seen.append(known.setdefault(attribute, len(known)))
    return tuple(seen)


def _look_at_use(candidate: Candidate, state: AllocatedState) -> Hashable:
    if not state.is_allocated(candidate.id):
        return None
    consumed = state.consumed.get(candidate.id)
    return (candidate.id in state.whole, frozenset(consumed.items()) if consumed else None)


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
