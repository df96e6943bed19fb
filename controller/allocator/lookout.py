"""How the nodes of a cluster look to claims, and which of them were refused to claims like these.

What was seen is kept until slices or allocations change it, so that nodes that look like a refused one are passed over.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import filterfalse
from typing import Final

from controller.allocator.look import (
    Glance,
    Look,
    Numbers,
    Sight,
    find_glance,
    forget_numbers,
    look_at_node,
    see_devices,
)
from controller.allocator.pool import Pool
from controller.allocator.selector import SelectorCache
from controller.allocator.state import AllocatedState
from dra_driver.api.codec import encode
from dra_driver.api.core_v1 import Node
from dra_driver.api.resource_v1 import DeviceClass, ResourceClaim

_LOOKS_MAX: Final = 16
_SHAPES_MAX: Final = 256
_NUMBERS_MAX: Final = 100_000


@dataclass(slots=True)
class Refusals:
    """How nodes look that were refused to claims of one shape, and which nodes look like that now."""

    looks: set[Look] = field(default_factory=set)
    nodes: set[str] = field(default_factory=set)

    def add(self, node: str, look: Look) -> None:
        """Note that claims do not fit on a node."""
        self.looks.add(look)
        self.nodes.add(node)


@dataclass(slots=True)
class Lookout:
    """Looks at nodes. `nodes` and `state` are the cluster's own, `pools` gives the pools of a node.

    Methods raise AllocationError for a malformed node selector, and KeyError for an unknown node.
    """

    nodes: Mapping[str, Node]
    pools: Callable[[str], tuple[Pool, ...]]
    state: AllocatedState
    selectors: SelectorCache
    _looks: dict[Glance, dict[str, Look]] = field(default_factory=dict)
    _sights: dict[Glance, dict[str, Sight]] = field(default_factory=dict)
    _numbers: Numbers = field(default_factory=dict)
    _refused: dict[tuple[bytes, ...], Refusals] = field(default_factory=dict)

    def look_for(
        self, claims: Sequence[ResourceClaim], classes: Mapping[str, DeviceClass]
    ) -> tuple[Callable[[str], Look], Refusals]:
        """Give what tells how a node looks to the claims, and what was refused to claims like these."""
        self._forget_numbers()
        glance = find_glance(claims, classes)
        looks = self._looks_of(glance)

        def look_at(node: str) -> Look:
            look = looks.get(node)
            if look is None:
                look = looks[node] = self._look(glance, node)
            return look

        return look_at, self._refusals_of(claims)

    def forget_refusals(self) -> None:
        """Refuse nothing any more because it was refused before."""
        self._refused.clear()

    def look_again(self, node: str) -> None:
        """Forget how a node looks, since its devices were allocated or freed."""
        for looks in self._looks.values():
            looks.pop(node, None)
        for refused in self._refused.values():
            refused.nodes.discard(node)

    def forget(self, node: str) -> None:
        """Forget what was seen of a node, since its devices changed."""
        self.look_again(node)
        for sights in self._sights.values():
            sights.pop(node, None)

    def _refusals_of(self, claims: Sequence[ResourceClaim]) -> Refusals:
        """Give what was refused to claims like these; it is added to."""
        shape = tuple(encode(claim.spec) for claim in claims)
        if len(self._refused) >= _SHAPES_MAX:
            self._refused.clear()
        return self._refused.setdefault(shape, Refusals())

    def _looks_of(self, glance: Glance) -> dict[str, Look]:
        """Give how nodes look to claims with this glance, as far as that is known; it is added to."""
        looks = self._looks.get(glance)
        if looks is None:
            if len(self._looks) >= _LOOKS_MAX:
                self._looks.clear()
                self._sights.clear()
            looks = self._looks[glance] = {}
        return looks

    def _look(self, glance: Glance, node: str) -> Look:
        """Look at a node."""
        sights = self._sights.setdefault(glance, {})
        sight = sights.get(node)
        pools = self.pools(node)
        if sight is None:
            sight = see_devices(self.nodes[node], pools, glance, self.selectors, self._numbers)
            sights[node] = sight
        return look_at_node(pools, sight, self.state, self._numbers)

    def _forget_numbers(self) -> None:
        """Start to number anew once numbers are many."""
        if len(self._numbers) >= _NUMBERS_MAX:
            self._looks.clear()
            self._sights.clear()
            forget_numbers(self._numbers)
            self._refused.clear()


def find_hopeful(nodes: Iterable[str], look_at: Callable[[str], Look], refused: Refusals) -> Iterator[tuple[str, Look]]:
    """Yield the nodes that do not look like refused ones, and how they look; those that do are noted."""
    for node in filterfalse(refused.nodes.__contains__, nodes):
        look = look_at(node)
        if look in refused.looks:
            refused.nodes.add(node)
        else:
            yield node, look
