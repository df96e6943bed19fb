"""Deciding about one Pod: which node, which devices, or why not. Nothing here does I/O.

A decision is made in steps, between which the event loop may do other things and the state may change; the answer
itself is found in one step, and is true of the state as it then is.
"""

from collections import Counter
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec

from controller.allocator import Allocated, AllocationError, Placed, Policy, Undecided, parse_policy
from controller.allocator.allocation import DEFAULT_BUDGET
from controller.allocator.node_selection import matches_selector
from controller.allocator.policy import ANNOTATION
from controller.decision import Code, Decision, Leave, Place, Refuse, TakeBack
from controller.node_order import NodeUse, count_devices, measure_node, order_nodes
from controller.ownership import CONTROLLER, GATE, KEY, TAINT, Owner, class_names, is_gated, is_own_class, owner_of
from controller.placement import find_misfit, sum_requests
from controller.pod_claim import find_claims, is_pending, is_reserved_for, is_reserved_only_for
from controller.state import State
from dra_driver.api.core_v1 import Node, Pod
from dra_driver.api.resource_v1 import AllocationResult, ResourceClaim
from dra_driver.kube.resource import ObjectKey, key_of

_STEP: Final = 8
"""How many nodes are tried between two pauses."""

RESERVED_MAX: Final = 256

Steps = Generator[None, None, Decision]


@dataclass(slots=True)
class _Parts:
    """The claims of a Pod, by what is to be done about them."""

    wanted: list[ResourceClaim] = field(default_factory=list)
    """Ours, to be allocated."""
    held: list[ResourceClaim] = field(default_factory=list)
    """Ours, and allocated."""
    expected: list[ResourceClaim] = field(default_factory=list)
    """Kube-scheduler's, not allocated yet."""
    foreign: list[ResourceClaim] = field(default_factory=list)
    """Kube-scheduler's, and allocated."""

    @property
    def allocated(self) -> list[ResourceClaim]:
        return [*self.held, *self.foreign]


@dataclass(slots=True)
class Decider:
    """Decides by a state. `policy` is for claims and classes that name none."""

    state: State
    policy: Policy = Policy.FIRST_FIT
    _uses: dict[str, tuple[object, NodeUse]] = field(default_factory=dict)

    def is_own_claim(self, claim: ResourceClaim) -> bool:
        """Tell whether the controller allocates the claim."""
        return owner_of(claim, self.state.classes) is Owner.CONTROLLER

    def has_unallocated(self, pod: Pod) -> bool:
        """Tell whether a claim of the Pod waits for the controller."""
        claims = find_claims(pod, self.state.claims).claims
        return any(claim.status.allocation is None and self.is_own_claim(claim) for claim in claims)

    def find_held(self, pod: Pod) -> tuple[ResourceClaim, ...]:
        """Give the claims of the Pod that the controller has allocated."""
        claims = find_claims(pod, self.state.claims).claims
        return tuple(claim for claim in claims if claim.status.allocation is not None and self.is_own_claim(claim))

    def decide(self, pod: Pod, *, avoided: Iterable[str] = (), budget: int = DEFAULT_BUDGET) -> Steps:
        """Decide about a Pod, in steps. `avoided` are nodes that kube-scheduler refused for it."""
        if not is_pending(pod) or not pod.spec.resource_claims:
            return Leave()
        found = find_claims(pod, self.state.claims)
        owners = [owner_of(claim, self.state.classes) for claim in found.claims]
        is_known = not found.missing and Owner.UNKNOWN not in owners
        if not any(map(self._has_own_class, found.claims)) and (is_known or not is_gated(pod)):
            return _explain_foreign(pod, _sort_claims(found.claims, owners)) if is_known else Leave()
        refusal = self._find_obstacle(pod, found.claims, owners, found.missing)
        if refusal is not None:
            return refusal
        return (yield from self._serve(pod, _sort_claims(found.claims, owners), frozenset(avoided), budget))

    def _serve(self, pod: Pod, parts: _Parts, avoided: frozenset[str], budget: int) -> Steps:
        """Decide about a Pod whose claims are all there."""
        if not parts.wanted and not is_gated(pod):
            return Leave()
        if not parts.wanted and all(is_reserved_for(claim, pod) for claim in parts.held):
            return Place("")
        decision = yield from self._find_node(pod, parts, avoided, budget)
        if isinstance(decision, Refuse) and decision.code is not Code.UNDECIDED:
            lonely = tuple(claim for claim in parts.held if is_reserved_only_for(claim, pod))
            if lonely and parts.wanted:
                return TakeBack(lonely, decision)
        return decision

    def _find_obstacle(
        self, pod: Pod, claims: Sequence[ResourceClaim], owners: Sequence[Owner], missing: Sequence[str]
    ) -> Refuse | None:
        """Say what keeps the Pod from being looked at, before any node is."""
        others = [gate.name for gate in pod.spec.scheduling_gates if gate.name != GATE]
        if others:
            return Refuse(Code.GATED, f"scheduling gates {', '.join(others)}: want none but {GATE}")
        for claim, owner in zip(claims, owners, strict=True):
            if owner is Owner.MIXED:
                return Refuse(Code.MIXED, self._explain_mixture(claim), (claim,))
        absent = {name: claim for claim in claims for name in class_names(claim) if name not in self.state.classes}
        if absent:
            text = "; ".join(f"claim {key_of(claim)}: class {name!r} does not exist" for name, claim in absent.items())
            return Refuse(Code.CLASS_MISSING, text, tuple(absent.values()))
        if missing:
            return Refuse(Code.CLAIM_MISSING, "; ".join(missing))
        for claim in claims:
            is_full = len(claim.status.reserved_for) >= RESERVED_MAX
            if is_full and not is_reserved_for(claim, pod):
                text = f"claim {key_of(claim)}: {RESERVED_MAX} Pods use it already, which is as many as can"
                return Refuse(Code.CLAIM_FULL, text, (claim,))
        return None

    def _find_node(self, pod: Pod, parts: _Parts, avoided: frozenset[str], budget: int) -> Steps:
        """Find a node that takes the whole Pod."""
        try:
            policy = self._policy_of(parts.wanted or parts.held)
        except ValueError as error:
            return Refuse(Code.INVALID, str(error), tuple(parts.wanted))
        names = self._order_nodes(policy, count_devices(parts.wanted))
        search = _Search(self.state, pod, parts, policy, avoided, budget)
        for start in range(0, len(names), _STEP):
            try:
                place = search.place(names[start : start + _STEP])
            except AllocationError as error:
                return Refuse(Code.INVALID, str(error), tuple(parts.wanted))
            if place is not None:
                return place
            yield
        return search.refuse()

    def _order_nodes(self, policy: Policy, count: int) -> Sequence[str]:
        """Order all nodes by policy. What is known of a node stays until its devices or their uses change."""
        own = self.state.own
        if policy is Policy.FIRST_FIT:
            return sorted(own.nodes)
        uses: dict[str, NodeUse] = {}
        for name in own.nodes:
            version = self.state.version_of(name)
            known = self._uses.get(name)
            if known is None or known[0] != version:
                known = self._uses[name] = (version, measure_node(own, name))
            uses[name] = known[1]
        return order_nodes(uses, policy, count)

    def _policy_of(self, claims: Sequence[ResourceClaim]) -> Policy:
        """Give the policy of the Pod: that of its first claim that names one, else of its first class that does."""
        for claim in claims:
            if ANNOTATION in claim.metadata.annotations:
                return _read_policy(f"claim {key_of(claim)}", claim.metadata.annotations[ANNOTATION])
        for claim in claims:
            for name in class_names(claim):
                annotations = self.state.classes[name].metadata.annotations
                if ANNOTATION in annotations:
                    return _read_policy(f"class {name}", annotations[ANNOTATION])
        return self.policy

    def _has_own_class(self, claim: ResourceClaim) -> bool:
        found = (self.state.classes.get(name) for name in class_names(claim))
        return any(is_own_class(each) for each in found if each is not None)

    def _explain_mixture(self, claim: ResourceClaim) -> str:
        names = class_names(claim)
        own = [name for name in names if name in self.state.classes and is_own_class(self.state.classes[name])]
        others = [name for name in names if name not in own]
        return (
            f"claim {key_of(claim)}: class {own[0]!r} is allocated by the controller and class {others[0]!r} is not, "
            f"want classes of one allocator in a claim"
        )


@dataclass(slots=True)
class _Search:
    """Looking for a node for one Pod."""

    state: State
    pod: Pod
    parts: _Parts
    policy: Policy
    avoided: frozenset[str]
    budget: int
    misfits: dict[str, str] = field(default_factory=dict)
    short: list[str] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)
    _requests: dict[str, int] = field(init=False)
    _wanted: list[ResourceClaim] = field(init=False)

    def __post_init__(self) -> None:
        self._requests = sum_requests(self.pod)
        self._wanted = [_with_policy(claim, self.policy) for claim in self.parts.wanted]

    def place(self, names: Sequence[str]) -> Place | None:
        """Try some nodes. Raises AllocationError where no node can help."""
        hopeful = [name for name in names if self._takes_pod(name)]
        while hopeful:
            place = self._place_first(hopeful)
            if place is None:
                return None
            promises = self._find_promises(place.node)
            if promises is not None:
                return replace(place, promises=promises)
            hopeful = hopeful[hopeful.index(place.node) + 1 :]
        return None

    def refuse(self) -> Refuse:
        """Say why nothing was found."""
        wanted = tuple(self.parts.wanted)
        if not self.state.own.nodes:
            return Refuse(Code.NO_NODE, f"no node is labelled {KEY}={CONTROLLER}", wanted)
        if self.undecided:
            text = f"{len(self.undecided)} nodes: not decided yet, trying harder"
            return Refuse(Code.UNDECIDED, text, wanted, self.misfits, tuple(self.short), tuple(self.undecided))
        code = Code.DEVICES if self.short else Code.NODE
        if not self.short and all(text == NO_TAINT for text in self.misfits.values()):
            code = Code.NO_TAINT
        return Refuse(code, _count_misfits(self.misfits, self.short), wanted, self.misfits, tuple(self.short))

    def _takes_pod(self, name: str) -> bool:
        """Tell whether the node takes the Pod, as far as its claims are not concerned."""
        node = self.state.own.nodes.get(name)
        if node is None:
            return False
        problem = self._find_problem(name, node)
        if problem:
            self.misfits[name] = problem
        return not problem

    def _find_problem(self, name: str, node: Node) -> str:
        for claim in self.parts.allocated:
            allocation = claim.status.allocation
            selector = allocation.node_selector if allocation is not None else None
            if selector is not None and not matches_selector(node, selector, f"claim {key_of(claim)}"):
                return f"claim {key_of(claim)} is allocated elsewhere"
        if name in self.avoided:
            return "kube-scheduler refused it a moment ago"
        key = ObjectKey(self.pod.metadata.namespace, self.pod.metadata.name)
        requested = self.state.requested_without(key, name)
        misfit = find_misfit(self.pod, node, requested, requests=self._requests)
        return misfit.message if misfit is not None else ""

    def _place_first(self, names: Sequence[str]) -> Place | None:
        """Find the first of the nodes that has devices for the claims that are ours."""
        reservations = tuple(claim for claim in self.parts.held if not is_reserved_for(claim, self.pod))
        if not self._wanted:
            return Place(names[0], (), reservations)
        policy = Policy.FIRST_FIT if self.policy is Policy.FIRST_FIT else None
        answer = self.state.own.place(self._wanted, names, policy=policy, budget=self.budget)
        if isinstance(answer, Placed):
            results = zip(self.parts.wanted, answer.answer.results, strict=True)
            return Place(answer.node, tuple(results), reservations)
        self.undecided += answer.undecided
        for name in names:
            if name in answer.errors:
                self.misfits[name] = answer.errors[name]
            elif self.state.own.pools(name):
                self.short.append(name)
            else:
                self.misfits[name] = NO_TAINT if self.state.foreign.pools(name) else "no devices"
        return None

    def _find_promises(self, node: str) -> tuple[tuple[ResourceClaim, AllocationResult], ...] | None:
        """Give what kube-scheduler would find on the node for the claims that are its own; None if nothing."""
        expected = self.parts.expected
        if not expected:
            return ()
        try:
            answer = self.state.foreign.allocate(expected, node, budget=self.budget)
        except AllocationError as error:
            self.misfits[node] = str(error)
            return None
        if isinstance(answer, Allocated):
            return tuple(zip(expected, answer.results, strict=True))
        if isinstance(answer, Undecided):
            self.undecided.append(node)
        names = ", ".join(str(key_of(claim)) for claim in expected)
        self.misfits[node] = f"its devices of kube-scheduler do not suffice for claim {names}"
        return None


NO_TAINT: Final = f"devices lack the taint {TAINT}"


def _sort_claims(claims: Sequence[ResourceClaim], owners: Sequence[Owner]) -> _Parts:
    parts = _Parts()
    for claim, owner in zip(claims, owners, strict=True):
        is_allocated = claim.status.allocation is not None
        if owner is Owner.CONTROLLER:
            (parts.held if is_allocated else parts.wanted).append(claim)
        else:
            (parts.foreign if is_allocated else parts.expected).append(claim)
    return parts


def _with_policy(claim: ResourceClaim, policy: Policy) -> ResourceClaim:
    """Give the claim the policy of its Pod, if it names none."""
    annotations = {ANNOTATION: str(policy)} | claim.metadata.annotations
    return msgspec.structs.replace(claim, metadata=msgspec.structs.replace(claim.metadata, annotations=annotations))


def _read_policy(subject: str, text: str) -> Policy:
    try:
        return parse_policy(text)
    except ValueError as error:
        raise ValueError(f"{subject}: annotation {ANNOTATION}: {error}") from error


def _explain_foreign(pod: Pod, parts: _Parts) -> Refuse | Leave:
    """Tell why kube-scheduler found no node, if it did not, for a Pod that is its own."""
    if parts.expected and _is_unschedulable(pod):
        return Refuse(Code.FOREIGN, "kube-scheduler found no node", tuple(parts.expected))
    return Leave()


def _is_unschedulable(pod: Pod) -> bool:
    return any(
        condition.type == "PodScheduled" and condition.status == "False" and condition.reason == "Unschedulable"
        for condition in pod.status.conditions
    )


def _count_misfits(misfits: Mapping[str, str], short: Sequence[str]) -> str:
    """Count nodes by what keeps them from taking the Pod."""
    counts = Counter(misfits.values())
    counts["devices do not suffice"] += len(short)
    return "; ".join(
        f"{count} {'node' if count == 1 else 'nodes'}: {text}" for text, count in sorted(counts.items()) if count
    )
