"""What is known of a cluster, kept up to date from watch events, so that one more claim does not start over.

Pools are gathered once a node and kept until one of their slices changes; with them stays what selectors said about
their devices. Allocations are summed one by one. Nodes that look alike to a claim are tried once.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from controller.allocator.alike import shared_slices
from controller.allocator.allocation import (
    DEFAULT_BUDGET,
    Allocated,
    Answer,
    Problem,
    Undecided,
    allocate_from,
    solve_table,
)
from controller.allocator.error import AllocationError
from controller.allocator.feature import Features
from controller.allocator.joining import Group, Joined, join_groups
from controller.allocator.look import Look
from controller.allocator.lookout import Lookout, find_hopeful
from controller.allocator.policy import Policy
from controller.allocator.pool import Pool, gather_pools
from controller.allocator.relaxation import Question
from controller.allocator.selector import SelectorCache
from controller.allocator.slice_index import PoolId, SliceIndex, pool_id
from controller.allocator.state import AllocatedState
from controller.allocator.stock import Stock
from controller.allocator.table import Table
from controller.allocator.taint import apply_taint_rules
from dra_driver.api.codec import encode
from dra_driver.api.core_v1 import Node
from dra_driver.api.resource_v1 import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice

_TABLES_MAX: Final = 1024

_Kind: TypeAlias = tuple[Look, frozenset[str]]
"""Nodes are explained alike that look alike and use the same slices of more than one node."""


@dataclass(frozen=True, slots=True)
class Placed:
    """The claims fit on `node`."""

    node: str
    answer: Allocated


@dataclass(frozen=True, slots=True)
class Unplaced:
    """No node fits. `undecided` and `errors` name those that were tried and of which that is not certain.

    `tried` counts searches; what was refused before is not tried again.
    """

    tried: int
    undecided: tuple[str, ...] = ()
    errors: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Cluster:
    """Nodes, slices, classes, taint rules and claims by name; nothing is shared with the caller."""

    selectors: SelectorCache
    new_share_id: Callable[[], str]
    features: Features = field(default_factory=Features)
    nodes: dict[str, Node] = field(default_factory=dict)
    classes: dict[str, DeviceClass] = field(default_factory=dict)
    state: AllocatedState = field(init=False)
    _claims: dict[str, ResourceClaim] = field(default_factory=dict)
    _slices: dict[str, ResourceSlice] = field(default_factory=dict)
    _rules: dict[str, DeviceTaintRule] = field(default_factory=dict)
    _index: SliceIndex = field(default_factory=SliceIndex)
    _pools: dict[str, tuple[Pool, ...]] = field(default_factory=dict)
    _stocks: dict[str, Stock] = field(default_factory=dict)
    _users: dict[PoolId, set[str]] = field(default_factory=dict)
    _relied: dict[str, set[PoolId]] = field(default_factory=dict)
    _tables: dict[tuple[str | bytes, ...], Table] = field(default_factory=dict)
    _lookout: Lookout = field(init=False)

    def __post_init__(self) -> None:
        self.state = AllocatedState(self.features.consumable_capacity)
        self._lookout = Lookout(self.nodes, self.pools, self.state, self.selectors)

    def set_node(self, node: Node) -> None:
        """Add a node, or replace it."""
        name = node.metadata.name
        old = self.nodes.get(name)
        self.nodes[name] = node
        self._lookout.look_again(name)
        if old is None or _seen(old) != _seen(node):
            self._forget([name])

    def remove_node(self, name: str) -> None:
        """Forget a node."""
        self.nodes.pop(name, None)
        self._forget([name])

    def set_class(self, device_class: DeviceClass) -> None:
        """Add a class, or replace it."""
        self.classes[device_class.metadata.name] = device_class
        self._tables.clear()
        self._lookout.forget_refusals()

    def remove_class(self, name: str) -> None:
        """Forget a class."""
        self.classes.pop(name, None)
        self._tables.clear()
        self._lookout.forget_refusals()

    def set_slice(self, slice_: ResourceSlice) -> None:
        """Add a slice, or replace it."""
        name = slice_.metadata.name
        self.remove_slice(name)
        self._slices[name] = slice_
        (tainted,) = self._taint([slice_])
        self._index.add(name, tainted)
        self._forget_pool(tainted)

    def remove_slice(self, name: str) -> None:
        """Forget a slice."""
        old = self._slices.pop(name, None)
        if old is not None:
            self._index.remove(name, old)
            self._forget_pool(old)

    def set_taint_rule(self, rule: DeviceTaintRule) -> None:
        """Add a rule, or replace it. All slices are looked at again."""
        self._rules[rule.metadata.name] = rule
        self._taint_again()

    def remove_taint_rule(self, name: str) -> None:
        """Forget a rule. All slices are looked at again."""
        if self._rules.pop(name, None) is not None:
            self._taint_again()

    def set_claim(self, claim: ResourceClaim) -> None:
        """Count what a claim holds, and no longer what it held before."""
        self.remove_claim(_key(claim))
        if claim.status.allocation is not None:
            self._claims[_key(claim)] = claim
            self.state.add(claim)
            self._look_again(claim)

    def remove_claim(self, key: str) -> None:
        """Count no longer what the claim `namespace/name` held."""
        old = self._claims.pop(key, None)
        if old is not None:
            self.state.discard(old)
            self._look_again(old)

    def allocate(
        self,
        claims: Sequence[ResourceClaim],
        node: str,
        *,
        policy: Policy | None = Policy.FIRST_FIT,
        budget: int = DEFAULT_BUDGET,
    ) -> Answer:
        """Allocate on one node. Raises AllocationError, and KeyError for an unknown node."""
        if policy is Policy.FIRST_FIT:
            return solve_table(self._table(claims, node), budget, self.new_share_id)
        problem = Problem(
            node=self.nodes[node],
            claims=claims,
            slices=(),
            classes=self.classes,
            features=self.features,
            policy=policy,
            budget=budget,
            new_share_id=self.new_share_id,
        )
        return allocate_from(problem, self.pools(node), self.state, self.selectors)

    def place(
        self,
        claims: Sequence[ResourceClaim],
        nodes: Iterable[str],
        *,
        policy: Policy | None = Policy.FIRST_FIT,
        budget: int = DEFAULT_BUDGET,
    ) -> Placed | Unplaced:
        """Allocate on the first of `nodes` that fits; of nodes that look alike only one is tried.

        Raises AllocationError where no other node can help.
        """
        look_at, refused = self._lookout.look_for(claims, self.classes)
        tried: set[Look] = set()
        undecided: list[str] = []
        errors: dict[str, str] = {}
        for node, look in find_hopeful(nodes, look_at, refused):
            if look in tried:
                continue
            tried.add(look)
            try:
                answer = self.allocate(claims, node, policy=policy, budget=budget)
            except AllocationError as error:
                if not error.node_only:
                    raise
                errors[node] = str(error)
                continue
            if isinstance(answer, Allocated):
                return Placed(node, answer)
            if isinstance(answer, Undecided):
                undecided.append(node)
            else:
                refused.add(node, look)
        return Unplaced(len(tried), tuple(undecided), errors)

    def explain(
        self,
        claims: Sequence[ResourceClaim],
        nodes: Iterable[str],
        *,
        policy: Policy | None = Policy.FIRST_FIT,
        budget: int = DEFAULT_BUDGET,
    ) -> Joined:
        """Say why the claims fit on none of `nodes`; of nodes that look alike only one is examined.

        Raises KeyError for an unknown node.
        """
        look_at, _ = self._lookout.look_for(claims, self.classes)
        groups: dict[_Kind, list[str]] = {}
        broken: list[Group] = []
        for node in sorted(set(nodes)):
            try:
                look = look_at(node)
                shared = shared_slices(self.pools(node)) if self._index.shared else frozenset[str]()
                groups.setdefault((look, shared), []).append(node)
            except AllocationError as error:
                broken.append(Group((node,), error))
        asked = [Group(tuple(alike), self._question(claims, alike[0], policy, budget)) for alike in groups.values()]
        return join_groups([*asked, *broken])

    def _question(self, claims: Sequence[ResourceClaim], node: str, policy: Policy | None, budget: int) -> Question:
        return Question(
            node=self.nodes[node],
            claims=claims,
            classes=self.classes,
            features=self.features,
            selectors=self.selectors,
            state=self.state,
            gather=lambda completed: self._gather(node, completed) if completed else self.pools(node),
            policy=policy,
            budget=budget,
        )

    def _table(self, claims: Sequence[ResourceClaim], node: str) -> Table:
        """Make the question ready, or take up one that claims like these asked before."""
        key: tuple[str | bytes, ...] = (node, *[encode(claim.spec) for claim in claims])
        pools = self.pools(node)
        table = self._tables.get(key)
        if table is not None and table.pools is pools and table.node is self.nodes[node]:
            table.renew(claims)
            return table
        table = Table(
            self.nodes[node], self.features, self.selectors, self.state, pools, known=self._stock(node, pools)
        )
        table.plan(claims, self.classes)
        if len(self._tables) >= _TABLES_MAX:
            self._tables.clear()
        self._tables[key] = table
        return table

    def _stock(self, node: str, pools: tuple[Pool, ...]) -> Stock:
        """Give the devices of a node and who holds what of them, which is up to date from now on."""
        stock = self._stocks.get(node)
        if stock is None:
            stock = self._stocks[node] = Stock(pools, self.state)
            for pool in pools:
                self.state.watch(*pool.id, stock)
        return stock

    def pools(self, node: str) -> tuple[Pool, ...]:
        """Give the pools of a node. Raises AllocationError for a malformed node selector, KeyError without the node."""
        pools = self._pools.get(node)
        if pools is None:
            pools = self._pools[node] = self._gather(node)
            for pool in pools:
                for candidate in pool.candidates:
                    candidate.prepare()
            # Also of pools that are out of date now: they may be the newest again.
            relied = self._relied[node] = {pool_id(slice_) for slice_ in self._index.for_node(node)}
            for id_ in relied:
                self._users.setdefault(id_, set()).add(node)
        return pools

    def relied_pools(self, node: str) -> frozenset[PoolId]:
        """Give the pools that have slices for a node, those out of date included. Raises what `pools` raises."""
        self.pools(node)
        return frozenset(self._relied[node])

    def _gather(self, node: str, completed: frozenset[PoolId] = frozenset()) -> tuple[Pool, ...]:
        return gather_pools(self.nodes[node], self._index, self.features, completed)

    def _look_again(self, claim: ResourceClaim) -> None:
        """Forget how nodes look whose devices a claim holds or held."""
        if claim.status.allocation is None:
            return
        for result in claim.status.allocation.devices.results:
            for node in self._users.get((result.driver, result.pool), ()):
                self._lookout.look_again(node)

    def _taint(self, slices: Iterable[ResourceSlice]) -> Iterator[ResourceSlice]:
        if not self._rules or not self.features.device_taints:
            return iter(tuple(slices))
        return iter(apply_taint_rules(slices, tuple(self._rules[name] for name in sorted(self._rules))))

    def _taint_again(self) -> None:
        self._index = SliceIndex()
        for slice_ in self._taint(self._slices.values()):
            self._index.add(slice_.metadata.name, slice_)
        self._forget(list(self._pools))

    def _forget_pool(self, slice_: ResourceSlice) -> None:
        """Forget the pools of every node that a changed slice may matter for."""
        if slice_.spec.node_name:
            self._forget([slice_.spec.node_name, *self._users.get(pool_id(slice_), ())])
        else:
            self._forget(list(self._pools))

    def _forget(self, nodes: Iterable[str]) -> None:
        for node in nodes:
            self._lookout.forget(node)
            stock = self._stocks.pop(node, None)
            for pool in self._pools.pop(node, ()):
                if stock is not None:
                    self.state.unwatch(*pool.id, stock)
            for id_ in self._relied.pop(node, ()):
                self._users[id_].discard(node)
                if not self._users[id_]:
                    del self._users[id_]


def _seen(node: Node) -> tuple[dict[str, str], tuple[str, ...]]:
    """Give what decides which devices a node has, and how they look."""
    return node.metadata.labels, node.status.declared_features


def _key(claim: ResourceClaim) -> str:
    return f"{claim.metadata.namespace}/{claim.metadata.name}"
