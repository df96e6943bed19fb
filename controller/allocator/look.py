"""How a node looks to claims: nodes that look the same fit alike, so that one of them is tried for all."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from controller.allocator.candidate import Candidate, find_attribute
from controller.allocator.pool import Pool, matches_device_node
from controller.allocator.selector import Eye, SelectorCache
from controller.allocator.state import AllocatedState
from dra_driver.api.core_v1 import Node
from dra_driver.api.resource_v1 import DeviceClass, DeviceSubRequest, ExactDeviceRequest, ResourceClaim

Numbers: TypeAlias = dict[Hashable, int]
"""Numbers for what is seen: they compare faster, and take less room."""

_LAST: Final = "last"

Look: TypeAlias = tuple[int, ...]
"""How a node looks: numbers alone, since there are many looks, and the garbage collector passes over those."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What claims see of a node while its slices stand.

    `devices` has a number for each, by pool. Devices with equal numbers look alike but for who uses them. Nodes of one
    `shape` have as many of each kind.
    """

    devices: tuple[tuple[int, ...], ...]
    shape: int


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
    """Give what the claims see of a node while its slices stand; `numbers` is added to."""
    looker = _Looker(node, glance, selectors.eyes(glance.selectors, glance.derived), numbers)
    devices = tuple(tuple([looker.look(candidate) for candidate in pool.candidates]) for pool in pools)
    kinds = tuple(
        (pool.id[0], pool.is_incomplete, bool(pool.invalid), tuple(pool.counters.items()), tuple(sorted(own)))
        for pool, own in zip(pools, devices, strict=True)
    )
    return Sight(devices, _number(numbers, (node.status.declared_features, kinds)))


def look_at_node(pools: Sequence[Pool], sight: Sight, state: AllocatedState, numbers: Numbers) -> Look:
    """Give what the claims see of a node now. Names of devices and pools, and the order of devices, do not count."""
    whole, shares = state.whole, state.shares
    look = [sight.shape]
    for pool, devices in zip(pools, sight.devices, strict=True):
        used = []
        for device, candidate in zip(devices, pool.candidates, strict=True):
            id_ = candidate.id
            if id_ in shares:
                consumed = state.consumed.get(id_)
                amounts = frozenset(consumed.items()) if consumed else None
                used.append(_number(numbers, (device, id_ in whole, amounts)))
            elif id_ in whole:
                used.append(device)
        used.sort()
        look.append(-1)
        look += used
        if pool.counters and pool.others:
            look += (-2, _look_at_others(pool, state, numbers))
    return tuple(look)


def _parts(claim: ResourceClaim) -> Iterator[ExactDeviceRequest | DeviceSubRequest]:
    for request in claim.spec.devices.requests:
        if request.exactly is not None:
            yield request.exactly
        yield from request.first_available


class _Looker:
    """Looks at the devices of a node as claims do, whoever uses them."""

    def __init__(self, node: Node, glance: Glance, eyes: Sequence[Eye], numbers: Numbers) -> None:
        self._node = node
        self._attributes = glance.attributes
        self._eyes = eyes
        self._numbers = numbers
        self._known: list[Numbers] = [{} for _ in glance.attributes]

    def look(self, candidate: Candidate) -> int:
        """Give the number of what is seen."""
        seen = [eye(candidate) for eye in self._eyes]
        seen.append(_look_at_all(candidate, self._numbers))
        if self._attributes:
            seen += self._look_at_attributes(candidate)
        if candidate.slice.spec.per_device_node_selection:
            seen.append(matches_device_node(self._node, candidate.device, candidate.slice))
        return _number(self._numbers, tuple(seen))

    def _look_at_attributes(self, candidate: Candidate) -> Iterator[Hashable]:
        """Yield constrained attributes as numbers, since all that counts is which of them are equal; lists stay."""
        for name, known in zip(self._attributes, self._known, strict=True):
            attribute = find_attribute(candidate.device.attributes, name, candidate.id[0])
            if attribute is None or attribute.ints or attribute.bools or attribute.strings or attribute.versions:
                yield attribute
            else:
                yield known.setdefault(attribute, len(known))


def _look_at_all(candidate: Candidate, numbers: Numbers) -> int:
    """Give what every claim sees; it is remembered."""
    known = candidate.look
    if known is None or known[0] is not numbers:
        device = candidate.device
        seen = (
            tuple(device.capacity.items()),
            tuple(candidate.consumption.items()),
            tuple(candidate.groups.items()),
            candidate.taints,
            candidate.is_shareable,
            bool(device.binding_conditions),
            bool(candidate.slice.spec.skip_node_operations),
        )
        candidate.look = known = (numbers, _number(numbers, seen))
    return known[1]


def _number(numbers: Numbers, seen: Hashable) -> int:
    """Number what is seen. No number is given twice, even once the others are forgotten."""
    number = numbers.get(seen)
    if number is None:
        numbers[_LAST] = number = numbers.get(_LAST, 0) + 1
        numbers[seen] = number
    return number


def forget_numbers(numbers: Numbers) -> None:
    """Forget what was seen, but not which numbers were given."""
    last = numbers.get(_LAST, 0)
    numbers.clear()
    numbers[_LAST] = last


def _look_at_others(pool: Pool, state: AllocatedState, numbers: Numbers) -> int:
    """Give what devices elsewhere have taken of the counters."""
    taken = tuple(
        (tuple(other.consumption.items()), tuple(other.groups.items()))
        for other in pool.others
        if state.is_allocated(other.id)
    )
    return _number(numbers, taken)
