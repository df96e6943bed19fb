"""Everything that the controller knows of the cluster, as the watches tell it, with what it has just decided on top.

A decision counts from the moment at which it is made: its devices are held and its Pod takes room on the node, although
nothing is written yet. When the write is refused that is forgotten.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import msgspec

from controller.allocator import AllocationError, Cluster, Features, SelectorCache
from controller.offer import Offer
from controller.ownership import is_given
from controller.placement import Requested
from controller.pod_claim import find_keys, is_pending
from dra_driver.api.core_v1 import Node, Pod
from dra_driver.api.resource_v1 import AllocationResult, DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from dra_driver.kube.resource import ObjectKey, key_of
from dra_driver.kube.view import parse_version
from dra_driver.pod_claim import is_live, is_reserved_for


@dataclass(frozen=True, slots=True)
class Effect:
    """What a change may mean: Pods that are to be looked at again, and whether any Pod may now fit."""

    pods: frozenset[ObjectKey] = frozenset()
    may_help: bool = False


NOTHING = Effect()
ANYONE = Effect(may_help=True)


@dataclass(frozen=True, slots=True)
class Flight:
    """An allocation that was decided and is not known to be written; one of kube-scheduler's is only expected."""

    claim: ResourceClaim
    is_own: bool


class _Same:
    """Equal to another one of the very same object, which it keeps."""

    def __init__(self, value: object) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self._value is other._value

    def __hash__(self) -> int:
        return id(self._value)


@dataclass(slots=True)
class State:
    """Nodes, slices, classes, rules, claims and Pods. Nothing here does I/O.

    `own` allocates what the controller was given; `foreign` tells what kube-scheduler could allocate. `since` has the
    resource versions at which allocations appeared, `changed_pools` the pools whose slices changed since somebody
    looked. `touched_pools` and `touched_nodes` are those that changed since, or whose devices were allocated or freed;
    `layout` grows whenever that may concern any node.
    """

    selectors: SelectorCache
    new_share_id: Callable[[], str]
    features: Features = field(default_factory=Features)
    own: Cluster = field(init=False)
    foreign: Cluster = field(init=False)
    offer: Offer = field(default_factory=Offer)
    nodes: dict[str, Node] = field(default_factory=dict)
    slices: dict[str, ResourceSlice] = field(default_factory=dict)
    rules: dict[str, DeviceTaintRule] = field(default_factory=dict)
    claims: dict[ObjectKey, ResourceClaim] = field(default_factory=dict)
    pods: dict[ObjectKey, Pod] = field(default_factory=dict)
    flights: dict[ObjectKey, Flight] = field(default_factory=dict)
    changed_pools: set[tuple[str, str]] = field(default_factory=set)
    touched_pools: set[tuple[str, str]] = field(default_factory=set)
    touched_nodes: set[str] = field(default_factory=set)
    layout: int = 0
    since: dict[ObjectKey, int] = field(default_factory=dict)
    users: dict[ObjectKey, set[ObjectKey]] = field(default_factory=dict)
    requested: dict[str, Requested] = field(default_factory=dict)
    _counted: dict[ObjectKey, tuple[str, Pod]] = field(default_factory=dict)
    _chosen: dict[str, str] = field(default_factory=dict)
    _held: dict[ObjectKey, AllocationResult] = field(default_factory=dict)
    _class_changes: int = 0
    _versions: Counter[tuple[str, str]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.own = Cluster(self.selectors, self.new_share_id, self.features)
        self.foreign = Cluster(self.selectors, self.new_share_id, self.features)

    @property
    def classes(self) -> dict[str, DeviceClass]:
        """Classes by name."""
        return self.own.classes

    def set_node(self, name: str, node: Node | None) -> Effect:
        """Take over a node, or that it is gone. What nobody decides by, such as heartbeats, is no change."""
        old = self.nodes.get(name)
        if node is None:
            self.touched_nodes.add(name)
            self.nodes.pop(name, None)
            self.own.remove_node(name)
            self.foreign.remove_node(name)
            return ANYONE if old is not None else NOTHING
        self.nodes[name] = node
        if old is not None and _gist(old) == _gist(node):
            return NOTHING
        self.touched_nodes.add(name)
        self.foreign.set_node(node)
        if is_given(node):
            self.own.set_node(node)
        elif name in self.own.nodes:
            self.own.remove_node(name)
        return ANYONE

    def set_slice(self, name: str, slice_: ResourceSlice | None) -> Effect:
        """Take over a slice, or that it is gone."""
        old = self.slices.get(name)
        self.changed_pools |= {(each.spec.driver, each.spec.pool.name) for each in (old, slice_) if each is not None}
        if slice_ is None:
            self.slices.pop(name, None)
            self.foreign.remove_slice(name)
            changes = self.offer.remove(name)
        else:
            self.slices[name] = slice_
            self.foreign.set_slice(slice_)
            changes = self.offer.set(slice_)
        self._touch(old)
        for changed, offered in changes:
            self._touch(self.slices.get(changed))
            if offered is None:
                self.own.remove_slice(changed)
            else:
                self.own.set_slice(offered)
        return ANYONE

    def set_class(self, name: str, device_class: DeviceClass | None) -> Effect:
        """Take over a class, or that it is gone."""
        self._class_changes += 1
        for cluster in (self.own, self.foreign):
            if device_class is None:
                cluster.remove_class(name)
            else:
                cluster.set_class(device_class)
        return Effect(frozenset(key for key, pod in self.pods.items() if pod.spec.resource_claims), may_help=True)

    def set_rule(self, name: str, rule: DeviceTaintRule | None) -> Effect:
        """Take over a taint rule, or that it is gone."""
        old = self.rules.get(name)
        if rule is None:
            self.rules.pop(name, None)
        else:
            self.rules[name] = rule
            if old is not None and old.spec == rule.spec:
                return NOTHING
        self.layout += 1
        for cluster in (self.own, self.foreign):
            if rule is None:
                cluster.remove_taint_rule(name)
            else:
                cluster.set_taint_rule(rule)
        return ANYONE

    def set_claim(self, key: ObjectKey, claim: ResourceClaim | None) -> Effect:
        """Take over a claim, or that it is gone."""
        old = self.claims.get(key)
        if claim is None:
            self.claims.pop(key, None)
        else:
            self.claims[key] = claim
        self._count_claim(key)
        users = frozenset(self.users.get(key, ()))
        for pod in users:
            self._count_pod(pod)
        held = old.status.allocation if old is not None else None
        holds = claim.status.allocation if claim is not None else None
        if claim is None or holds is None:
            self.since.pop(key, None)
        elif held != holds:
            self.since[key] = parse_version(claim.metadata.resource_version)
        return Effect(users, may_help=held is not None and held != holds)

    def set_pod(self, key: ObjectKey, pod: Pod | None) -> Effect:
        """Take over a Pod, or that it is gone."""
        old = self.pods.get(key)
        if old is not None:
            for claim in find_keys(old):
                self.users[claim].discard(key)
                if not self.users[claim]:
                    del self.users[claim]
        if pod is None:
            self.pods.pop(key, None)
        else:
            self.pods[key] = pod
            for claim in find_keys(pod):
                self.users.setdefault(claim, set()).add(key)
        if old is not None and (pod is None or pod.metadata.uid != old.metadata.uid or not is_pending(pod)):
            self._chosen.pop(old.metadata.uid, None)
        if old is not None and (pod is None or pod.metadata.uid != old.metadata.uid or not is_live(pod)):
            self._forget_promises(old)
        before = self._counted.get(key)
        self._count_pod(key)
        freed = before is not None and key not in self._counted
        return Effect(frozenset((key,)), may_help=freed)

    def choose(self, pod: Pod, node: str, allocations: Iterable[tuple[ResourceClaim, AllocationResult]]) -> None:
        """Count from now on what was decided for a Pod."""
        self._chosen[pod.metadata.uid] = node
        self._count_pod(key_of(pod))
        for claim, allocation in allocations:
            status = msgspec.structs.replace(claim.status, allocation=allocation)
            self.flights[key_of(claim)] = Flight(msgspec.structs.replace(claim, status=status), is_own=True)
            self._count_claim(key_of(claim))

    def promise(self, claims: Iterable[tuple[ResourceClaim, AllocationResult]]) -> None:
        """Count what kube-scheduler will have to find for a Pod, until it has."""
        for claim, allocation in claims:
            status = msgspec.structs.replace(claim.status, allocation=allocation)
            self.flights[key_of(claim)] = Flight(msgspec.structs.replace(claim, status=status), is_own=False)
            self._count_claim(key_of(claim))

    def land(self, keys: Iterable[ObjectKey]) -> None:
        """Believe about claims what the watch tells, no longer what was decided."""
        for key in keys:
            if self.flights.pop(key, None) is not None:
                self._count_claim(key)

    def forget_choice(self, pod: Pod) -> None:
        """Count the Pod no longer on the node that was chosen for it, unless its claims hold devices there."""
        self._chosen.pop(pod.metadata.uid, None)
        self._count_pod(key_of(pod))

    def chosen_node(self, pod: Pod) -> str:
        """Give the node that was chosen for a Pod; empty if none."""
        return self._chosen.get(pod.metadata.uid, "") or next(self._nodes_of_claims(pod), "")

    def forget_changes(self) -> None:
        """Keep no note of what changed, since nobody looks; whoever does later on looks at everything."""
        self.layout += 1
        for changes in (self.changed_pools, self.touched_pools, self.touched_nodes):
            changes.clear()

    def version_of(self, node: str) -> object:
        """Give something that is different once the node's own devices, what is taken of them, or classes are.

        None for a node that is not the controller's, or whose devices cannot be told.
        """
        if node not in self.own.nodes:
            return None
        try:
            pools = self.own.pools(node)
        except AllocationError:
            return None
        return (self._class_changes, _Same(pools), tuple(self._versions[pool.id] for pool in pools))

    def list_allocated(self) -> tuple[ResourceClaim, ...]:
        """Give all claims that hold devices, as they are counted."""
        claims = self.claims | {key: flight.claim for key, flight in self.flights.items()}
        return tuple(claim for claim in claims.values() if claim.status.allocation is not None)

    def requested_without(self, key: ObjectKey, node: str) -> Requested:
        """Give what all Pods on a node but one request."""
        requested = self.requested.get(node) or Requested()
        counted = self._counted.get(key)
        if counted is None or counted[0] != node:
            return requested
        others = Requested(dict(requested.resources), requested.pods)
        others.remove(counted[1])
        return others

    def _touch(self, slice_: ResourceSlice | None) -> None:
        """Note for which nodes it matters that a slice comes or goes, or is offered or not."""
        if slice_ is None:
            return
        if not slice_.spec.node_name:
            self.layout += 1
            return
        self.touched_nodes.add(slice_.spec.node_name)
        self.touched_pools.add((slice_.spec.driver, slice_.spec.pool.name))

    def _count_claim(self, key: ObjectKey) -> None:
        """Count what a claim holds: what the watch tells, or what is being written."""
        claim = self.claims.get(key)
        flight = self.flights.get(key)
        if flight is not None and self._is_moot(flight, claim):
            del self.flights[key]
        elif flight is not None:
            claim = flight.claim
        held = self._held.pop(key, None)
        holds = claim.status.allocation if claim is not None else None
        if holds is not None:
            self._held[key] = holds
        if held == holds:
            return
        for allocation in (held, holds):
            for result in allocation.devices.results if allocation is not None else ():
                self._versions[result.driver, result.pool] += 1
                self.touched_pools.add((result.driver, result.pool))
        for cluster in (self.own, self.foreign):
            if claim is None:
                cluster.remove_claim(str(key))
            else:
                cluster.set_claim(claim)

    @staticmethod
    def _is_moot(flight: Flight, claim: ResourceClaim | None) -> bool:
        """Tell whether the claim got an allocation, or is another one, so that nothing can be written any more."""
        if claim is None or claim.metadata.uid != flight.claim.metadata.uid:
            return True
        return claim.status.allocation is not None

    def _forget_promises(self, pod: Pod) -> None:
        """Expect nothing any more for a Pod that is gone."""
        flights = ((key, self.flights.get(key)) for key in find_keys(pod))
        self.land([key for key, flight in flights if flight is not None and not flight.is_own])

    def _count_pod(self, key: ObjectKey) -> None:
        """Count what a Pod requests where it runs or is going to."""
        before = self._counted.pop(key, None)
        if before is not None:
            requested = self.requested[before[0]]
            requested.remove(before[1])
            if not requested.pods:
                del self.requested[before[0]]
        pod = self.pods.get(key)
        if pod is None or not is_live(pod):
            return
        node = pod.spec.node_name or (self.chosen_node(pod) if is_pending(pod) else "")
        if node:
            self.requested.setdefault(node, Requested()).add(pod)
            self._counted[key] = (node, pod)

    def _nodes_of_claims(self, pod: Pod) -> Iterator[str]:
        for key in find_keys(pod):
            claim = self.claims.get(key)
            if claim is not None and claim.status.allocation is not None and is_reserved_for(claim, pod):
                node = find_node(claim.status.allocation)
                if node:
                    yield node


def find_node(allocation: AllocationResult) -> str:
    """Give the node to which an allocation is bound; empty if it can be used on several."""
    for term in allocation.node_selector.node_selector_terms if allocation.node_selector is not None else ():
        for requirement in term.match_fields:
            if requirement.key == "metadata.name" and requirement.operator == "In" and len(requirement.values) == 1:
                return requirement.values[0]
    return ""


def _gist(node: Node) -> tuple[object, ...]:
    return (node.metadata.labels, node.spec, node.status.allocatable, node.status.declared_features)
