"""The slices of a cluster, found by node and by pool."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from dra_driver.api.resource_v1 import ResourceSlice

PoolId: TypeAlias = tuple[str, str]
"""Driver and pool name."""

_Slices: TypeAlias = dict[Hashable, ResourceSlice]


@dataclass(slots=True)
class SliceIndex:
    """Slices under keys that the caller chooses; they keep the order in which they came."""

    own: dict[str, _Slices] = field(default_factory=dict)
    shared: _Slices = field(default_factory=dict)
    pools: dict[PoolId, _Slices] = field(default_factory=dict)

    def add(self, key: Hashable, slice_: ResourceSlice) -> None:
        """Add a slice; one under the same key must have been removed before."""
        spec = slice_.spec
        self.pools.setdefault(pool_id(slice_), {})[key] = slice_
        if spec.node_name:
            self.own.setdefault(spec.node_name, {})[key] = slice_
        else:
            self.shared[key] = slice_

    def remove(self, key: Hashable, slice_: ResourceSlice) -> None:
        """Remove a slice that was added under `key`."""
        _remove(self.pools, pool_id(slice_), key)
        if slice_.spec.node_name:
            _remove(self.own, slice_.spec.node_name, key)
        else:
            del self.shared[key]

    def for_node(self, name: str) -> Iterable[ResourceSlice]:
        """Give the slices of a node, then those that are not bound to a node by name."""
        return (*self.own.get(name, {}).values(), *self.shared.values())

    def of_pool(self, pool: PoolId) -> list[ResourceSlice]:
        """Give all slices of a pool, of all generations."""
        return list(self.pools.get(pool, {}).values())


def index_slices(slices: Iterable[ResourceSlice]) -> SliceIndex:
    """Index slices as they come."""
    index = SliceIndex()
    for number, slice_ in enumerate(slices):
        index.add(number, slice_)
    return index


def pool_id(slice_: ResourceSlice) -> PoolId:
    """Give the pool that a slice belongs to."""
    return (slice_.spec.driver, slice_.spec.pool.name)


def _remove(groups: dict[PoolId, _Slices] | dict[str, _Slices], group: PoolId | str, key: Hashable) -> None:
    slices = groups[group]  # type: ignore[index]
    del slices[key]
    if not slices:
        del groups[group]  # type: ignore[arg-type]
