"""Which pools the controller may allocate from: those whose devices, all of them, carry its taint.

A pool is offered as a whole or not at all. While its taints change, some slices have them and some have not; devices
that kube-scheduler still gives away would then share counters with those that the controller gives away.
"""

from collections.abc import Container, Iterator
from dataclasses import dataclass, field

from controller.ownership import has_taint, strip_taint
from dra_driver.api.resource_v1 import ResourceSlice

PoolKey = tuple[str, str]
"""Driver and pool name."""


@dataclass(slots=True)
class Offer:
    """All slices, by pool. Methods yield what changes in the offered ones: a name, and the slice or None."""

    _slices: dict[str, ResourceSlice] = field(default_factory=dict)
    _pools: dict[PoolKey, dict[str, ResourceSlice]] = field(default_factory=dict)
    _offered: dict[str, tuple[ResourceSlice, ResourceSlice]] = field(default_factory=dict)

    def set(self, slice_: ResourceSlice) -> Iterator[tuple[str, ResourceSlice | None]]:
        """Add a slice, or replace it."""
        name = slice_.metadata.name
        old = self._slices.get(name)
        if old is not None and _pool_key(old) != _pool_key(slice_):
            yield from self.remove(name)
        self._slices[name] = slice_
        self._pools.setdefault(_pool_key(slice_), {})[name] = slice_
        yield from self._offer(_pool_key(slice_))

    def remove(self, name: str) -> Iterator[tuple[str, ResourceSlice | None]]:
        """Forget a slice."""
        old = self._slices.pop(name, None)
        if old is None:
            return
        key = _pool_key(old)
        del self._pools[key][name]
        if not self._pools[key]:
            del self._pools[key]
        if self._offered.pop(name, None) is not None:
            yield name, None
        yield from self._offer(key)

    def list(self, pools: Container[PoolKey]) -> tuple[ResourceSlice, ...]:
        """Give the slices of pools that are offered."""
        return tuple(offered for _, offered in self._offered.values() if _pool_key(offered) in pools)

    def _offer(self, key: PoolKey) -> Iterator[tuple[str, ResourceSlice | None]]:
        slices = self._pools.get(key, {})
        is_given = _is_given(slices)
        for name, slice_ in slices.items():
            known = self._offered.get(name)
            if not is_given:
                if self._offered.pop(name, None) is not None:
                    yield name, None
            elif known is None or known[0] is not slice_:
                stripped = strip_taint(slice_)
                self._offered[name] = (slice_, stripped)
                yield name, stripped


def _is_given(slices: dict[str, ResourceSlice]) -> bool:
    """Tell whether all devices of the largest generation carry the taint."""
    newest = max((slice_.spec.pool.generation for slice_ in slices.values()), default=0)
    devices = [
        device for slice_ in slices.values() if slice_.spec.pool.generation == newest for device in slice_.spec.devices
    ]
    return bool(devices) and all(map(has_taint, devices))


def _pool_key(slice_: ResourceSlice) -> PoolKey:
    return (slice_.spec.driver, slice_.spec.pool.name)
