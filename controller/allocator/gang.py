"""Several Pods at once: a node for each and an allocation for all, if there is one.

Pods that share a claim go to one node. On a node the claims of all its Pods are one problem. Where a device can be
reached from several nodes, allocations of one are varied until the others fit, too; all within a budget.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from controller.allocator.allocation import DEFAULT_BUDGET, Allocated, Undecided, apply_policy
from controller.allocator.cluster import Cluster
from controller.allocator.error import AllocationError
from controller.allocator.policy import Policy
from controller.allocator.result import build_results
from controller.allocator.search import Outcome, Search
from controller.allocator.table import Table
from dra_driver.api.codec import encode
from dra_driver.api.resource_v1 import AllocationResult, ResourceClaim, ResourceClaimStatus


@dataclass(frozen=True, slots=True)
class Member:
    """A Pod: its claims, by index into those of the gang, and the nodes where it may run, the better ones first."""

    name: str
    claims: frozenset[int]
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Gathered:
    """All fit: the node of each member by name, and an allocation for each claim, in order."""

    nodes: Mapping[str, str]
    results: tuple[AllocationResult, ...]


@dataclass(frozen=True, slots=True)
class Scattered:
    """They do not all fit at once. Unless `is_certain`, the budget was used up before that was known."""

    is_certain: bool


@dataclass(frozen=True, slots=True)
class _Group:
    """Members that share claims, directly or through others."""

    names: tuple[str, ...]
    claims: tuple[int, ...]
    nodes: tuple[str, ...]
    shape: tuple[bytes, ...]


def gather(
    cluster: Cluster,
    claims: Sequence[ResourceClaim],
    members: Sequence[Member],
    *,
    policy: Policy | None = Policy.FIRST_FIT,
    budget: int = DEFAULT_BUDGET,
) -> Gathered | Scattered:
    """Find nodes and devices for all members together; `cluster` is left as it is. Raises AllocationError.

    `budget` bounds the devices that a node's search tries, and how often a node is given to a Pod.
    """
    gathering = _Gathering(cluster, claims, _join(members, claims), policy, budget)
    for assignment in gathering.assign({}):
        results = gathering.allocate(assignment)
        if results is not None:
            pairs = zip(gathering.groups, assignment.values(), strict=True)
            nodes = {name: node for group, node in pairs for name in group.names}
            return Gathered(nodes, tuple(results[index] for index in range(len(claims))))
    return Scattered(is_certain=not gathering.is_cut)


def _join(members: Sequence[Member], claims: Sequence[ResourceClaim]) -> list[_Group]:
    """Join members that share claims; what is left of their nodes keeps the order of the first."""
    joined: list[list[Member]] = []
    for member in members:
        sharing = [group for group in joined if any(member.claims & other.claims for other in group)]
        joined = [group for group in joined if group not in sharing]
        joined.append([*(other for group in sharing for other in group), member])
    return [_build_group(group, claims) for group in joined]


def _build_group(members: list[Member], claims: Sequence[ResourceClaim]) -> _Group:
    indexes = tuple(sorted(frozenset[int]().union(*(member.claims for member in members))))
    nodes = tuple(node for node in members[0].nodes if all(node in member.nodes for member in members))
    shape = tuple(encode(claims[index].spec) for index in indexes)
    return _Group(tuple(member.name for member in members), indexes, nodes, shape)


@dataclass(slots=True)
class _Gathering:
    cluster: Cluster
    claims: Sequence[ResourceClaim]
    groups: list[_Group]
    policy: Policy | None
    budget: int
    is_cut: bool = False
    steps: int = 0
    known: dict[tuple[str, tuple[tuple[bytes, ...], ...]], bool] = field(default_factory=dict)

    def assign(self, assignment: dict[int, str]) -> Iterator[dict[int, str]]:
        """Yield the ways to give each group a node on which all fit that are there, other nodes aside."""
        number = len(assignment)
        if number == len(self.groups):
            yield assignment
            return
        group = self.groups[number]
        for node in self._choices(group, assignment):
            self.steps += 1
            if self.steps > self.budget:
                self.is_cut = True
                return
            wider = assignment | {number: node}
            if self._fits(node, wider):
                yield from self.assign(wider)

    def allocate(self, assignment: dict[int, str]) -> dict[int, AllocationResult] | None:
        """Allocate on all nodes of an assignment; None if that does not work out."""
        nodes = list(dict.fromkeys(assignment.values()))
        return self._vary(nodes, assignment, {})

    def _choices(self, group: _Group, assignment: dict[int, str]) -> Iterator[str]:
        """Yield nodes; of groups that are alike the later one never goes before the earlier one."""
        first = 0
        for number in range(len(assignment) - 1, -1, -1):
            other = self.groups[number]
            if (other.shape, other.nodes) == (group.shape, group.nodes):
                first = group.nodes.index(assignment[number])
                break
        yield from group.nodes[first:]

    def _fits(self, node: str, assignment: dict[int, str]) -> bool:
        groups = [self.groups[number] for number, chosen in assignment.items() if chosen == node]
        key = (node, tuple(sorted(group.shape for group in groups)))
        fits = self.known.get(key)
        if fits is None:
            fits = self.known[key] = self._try(node, [index for group in groups for index in group.claims])
        return fits

    def _try(self, node: str, indexes: list[int]) -> bool:
        try:
            answer = self.cluster.allocate([self.claims[index] for index in indexes], node, budget=self.budget)
        except AllocationError as error:
            if not error.node_only:
                raise
            return False
        if isinstance(answer, Undecided):
            self.is_cut = True
        return isinstance(answer, Allocated)

    def _vary(
        self, nodes: list[str], assignment: dict[int, str], results: dict[int, AllocationResult]
    ) -> dict[int, AllocationResult] | None:
        """Allocate node after node; go back to the last one for another allocation where the next does not fit."""
        if not nodes:
            return results
        node = nodes[0]
        indexes = [
            index for number, chosen in assignment.items() if chosen == node for index in self.groups[number].claims
        ]
        for found in self._solutions(node, indexes, is_varied=len(nodes) > 1):
            held = [self._hold(index, result) for index, result in found.items()]
            for claim in held:
                self.cluster.state.add(claim)
            try:
                rest = self._vary(nodes[1:], assignment, results | found)
            finally:
                for claim in held:
                    self.cluster.state.discard(claim)
            if rest is not None:
                return rest
        return None

    def _solutions(self, node: str, indexes: list[int], *, is_varied: bool) -> Iterator[dict[int, AllocationResult]]:
        """Yield allocations on a node; all of them only where its devices matter elsewhere."""
        claims = [self.claims[index] for index in indexes]
        answer = self.cluster.allocate(claims, node, policy=self.policy, budget=self.budget)
        if not isinstance(answer, Allocated):
            self.is_cut = self.is_cut or isinstance(answer, Undecided)
            return
        yield dict(zip(indexes, answer.results, strict=True))
        if not is_varied or self._is_local(node):
            return
        table = Table(
            self.cluster.nodes[node],
            self.cluster.features,
            self.cluster.selectors,
            self.cluster.state,
            self.cluster.pools(node),
        )
        table.plan(claims, self.cluster.classes)
        apply_policy(table, self.policy)
        search = Search(table, budget=self.budget)
        outcome = search.run()
        while outcome is Outcome.FOUND:
            found = build_results(table, search.given, search.choices, self.cluster.new_share_id)
            yield dict(zip(indexes, found, strict=True))
            outcome = search.resume()
        self.is_cut = self.is_cut or outcome is Outcome.EXHAUSTED

    def _is_local(self, node: str) -> bool:
        """Tell whether the node's devices can be reached from it alone."""
        return all(
            candidate.slice.spec.node_name == node for pool in self.cluster.pools(node) for candidate in pool.candidates
        )

    def _hold(self, index: int, result: AllocationResult) -> ResourceClaim:
        claim = self.claims[index]
        return ResourceClaim(metadata=claim.metadata, spec=claim.spec, status=ResourceClaimStatus(allocation=result))
