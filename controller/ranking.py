"""The nodes in the order of a policy, measured again only where something was allocated or freed."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from controller.allocator import AllocationError, Policy
from controller.node_order import NodeUse, measure_node, order_nodes
from controller.state import State


@dataclass(slots=True, eq=False)
class Ranking:
    """Orders the nodes of a state. It is the only one that takes note of the pools that the state calls touched."""

    state: State
    _uses: dict[str, NodeUse] = field(default_factory=dict)
    _nodes: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    _names: list[str] = field(default_factory=list)
    _layout: int = -1

    def order(self, policy: Policy, count: int) -> Sequence[str]:
        """Give all nodes of the controller in the order in which they are to be tried for `count` devices."""
        self._catch_up()
        if policy is Policy.FIRST_FIT:
            return self._names
        for name in self._names:
            if name not in self._uses:
                self._measure(name)
        return order_nodes(self._uses, policy, count)

    def _catch_up(self) -> None:
        """Forget what may not be true any more."""
        if self._layout != self.state.layout:
            self._layout = self.state.layout
            self._uses.clear()
            self._nodes.clear()
            self._names = sorted(self.state.own.nodes)
        for pool in self.state.touched_pools:
            for name in self._nodes.get(pool, ()):
                self._uses.pop(name, None)
        self.state.touched_pools.clear()

    def _measure(self, name: str) -> None:
        own = self.state.own
        self._uses[name] = measure_node(own, name)
        try:
            pools = own.pools(name)
        except AllocationError:
            return
        for pool in pools:
            self._nodes.setdefault(pool.id, set()).add(name)
