"""How many of several wishes can be granted at once: maximum flow from wishes through classes to sinks."""

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field


@dataclass(slots=True)
class Flow:
    """A small network. Edges are added once; `maximum` pushes as much as goes through."""

    capacity: dict[Hashable, dict[Hashable, int]] = field(default_factory=dict)

    def add(self, source: Hashable, target: Hashable, capacity: int) -> None:
        """Add an edge, or widen it."""
        edges = self.capacity.setdefault(source, {})
        edges[target] = edges.get(target, 0) + capacity
        self.capacity.setdefault(target, {}).setdefault(source, 0)

    def maximum(self, source: Hashable, target: Hashable) -> int:
        """Push what goes from `source` to `target` along shortest paths; the network keeps what is left."""
        total = 0
        while path := self._path(source, target):
            pushed = min(self.capacity[start][end] for start, end in path)
            for start, end in path:
                self.capacity[start][end] -= pushed
                self.capacity[end][start] += pushed
            total += pushed
        return total

    def _path(self, source: Hashable, target: Hashable) -> list[tuple[Hashable, Hashable]]:
        before: dict[Hashable, Hashable] = {source: source}
        waiting = deque([source])
        while waiting:
            node = waiting.popleft()
            for follower, left in self.capacity.get(node, {}).items():
                if left > 0 and follower not in before:
                    before[follower] = node
                    if follower == target:
                        return _walk_back(before, source, target)
                    waiting.append(follower)
        return []


def _walk_back(before: dict[Hashable, Hashable], source: Hashable, target: Hashable) -> list[tuple[Hashable, Hashable]]:
    path = []
    while target != source:
        path.append((before[target], target))
        target = before[target]
    return path
