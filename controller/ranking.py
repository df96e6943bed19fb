"""The nodes in the order of a policy, measured again only where something has changed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from controller.allocator import AllocationError, Policy
from controller.node_order import NodeUse, measure_node, order_nodes
from controller.state import State

_STEP: Final = 16
"""How many nodes are measured between two pauses."""


@dataclass(slots=True, eq=False)
class Ranking:
    """Orders the nodes of a state. It is the only one that takes note of what the state calls touched."""

    state: State
    _uses: dict[str, NodeUse] = field(default_factory=dict)
    _nodes: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    _names: list[str] = field(default_factory=list)
    _layout: int = -1

    def order(self, policy: Policy, count: int) -> Sequence[str]:
        """Give all nodes of the controller in the order in which they are to be tried for `count` devices."""
        for _ in self.measure(policy):
            pass
        if policy is Policy.FIRST_FIT:
            return self._names
        return order_nodes(self._uses, policy, count)

    def measure(self, policy: Policy) -> Iterator[None]:
        """Measure what `policy` wants to know of the nodes, in steps; what changes meanwhile is left to `order`."""
        self._catch_up()
        if policy is Policy.FIRST_FIT:
            return
        missing = [name for name in self._names if name not in self._uses]
        for start in range(0, len(missing), _STEP):
            for name in missing[start : start + _STEP]:
                if name in self.state.own.nodes:
                    self._measure(name)
            yield

    def _catch_up(self) -> None:
        """Forget what may not be true any more."""
        state = self.state
        if state.touched_nodes or self._layout != state.layout:
            self._names = sorted(state.own.nodes)
        if self._layout != state.layout:
            self._layout = state.layout
            self._uses.clear()
            self._nodes.clear()
        for pool in state.touched_pools:
            for name in self._nodes.pop(pool, ()):
                self._uses.pop(name, None)
        for name in state.touched_nodes:
            self._uses.pop(name, None)
        state.touched_pools.clear()
        state.touched_nodes.clear()

    def _measure(self, name: str) -> None:
        own = self.state.own
        self._uses[name] = measure_node(own, name)
        try:
            pools = own.relied_pools(name)
        except AllocationError:
            return
        for pool in pools:
            self._nodes.setdefault(pool, set()).add(name)
