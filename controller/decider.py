"""Deciding about one Pod: which node, which devices, or why not. Nothing here does I/O.

A decision is made in steps, between which the event loop may do other things and the state may change; the answer
itself is found in one step, and is true of the state as it then is.
"""

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from controller.allocator import AllocationError, Policy, parse_policy
from controller.allocator.allocation import DEFAULT_BUDGET
from controller.allocator.policy import ANNOTATION
from controller.decision import Code, Decision, Leave, Place, Refuse, TakeBack
from controller.effort import Hint
from controller.node_order import count_devices
from controller.node_search import NodeSearch, Parts, sort_claims
from controller.ownership import CONTROLLER, GATE, KEY, Owner, class_names, is_gated, is_own_class, owner_of
from controller.pod_claim import find_claims, is_pending, is_reserved_only_for
from controller.ranking import Ranking
from controller.state import State
from dra_driver.api.allocation_validation import RESERVED_FOR_MAX
from dra_driver.api.core_v1 import Pod
from dra_driver.api.resource_v1 import ResourceClaim
from dra_driver.kube.resource import key_of
from dra_driver.pod_claim import is_reserved_for

_STEP: Final = 8
"""How many nodes are tried between two pauses."""


Steps = Generator[None, None, Decision]


@dataclass(slots=True)
class Decider:
    """Decides by a state. `policy` is for claims and classes that name none, `budget` bounds the search on a node."""

    state: State
    policy: Policy = Policy.FIRST_FIT
    budget: int = DEFAULT_BUDGET
    _ranking: Ranking = field(init=False)

    def __post_init__(self) -> None:
        self._ranking = Ranking(self.state)

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

    def decide(self, pod: Pod, *, avoided: Iterable[str] = (), hint: Hint | None = None) -> Steps:
        """Decide about a Pod, in steps.

        `avoided` are nodes that kube-scheduler refused for it, `hint` is what was found for it with more effort.
        """
        if not is_pending(pod) or not pod.spec.resource_claims:
            return Leave()
        found = find_claims(pod, self.state.claims)
        owners = [owner_of(claim, self.state.classes) for claim in found.claims]
        is_known = not found.missing and Owner.UNKNOWN not in owners
        if not any(map(self._has_own_class, found.claims)) and (is_known or not is_gated(pod)):
            return _explain_foreign(pod, sort_claims(found.claims, owners)) if is_known else Leave()
        refusal = self._find_obstacle(pod, found.claims, owners, found.missing)
        if refusal is not None:
            return _give_up(pod, sort_claims(found.claims, owners), refusal) if is_gated(pod) else refusal
        return (yield from self._serve(pod, sort_claims(found.claims, owners), frozenset(avoided), hint))

    def _serve(self, pod: Pod, parts: Parts, avoided: frozenset[str], hint: Hint | None) -> Steps:
        """Decide about a Pod whose claims are all there."""
        if not parts.wanted and not is_gated(pod):
            return Leave()
        if not parts.wanted and all(is_reserved_for(claim, pod) for claim in parts.held):
            return Place("")
        decision = yield from self._find_node(pod, parts, avoided, hint)
        is_refused = isinstance(decision, Refuse) and decision.code is not Code.UNDECIDED and parts.wanted
        return _give_up(pod, parts, decision) if isinstance(decision, Refuse) and is_refused else decision

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
            is_full = len(claim.status.reserved_for) >= RESERVED_FOR_MAX
            if is_full and not is_reserved_for(claim, pod):
                text = f"claim {key_of(claim)}: {RESERVED_FOR_MAX} Pods use it already, which is as many as can"
                return Refuse(Code.CLAIM_FULL, text, (claim,))
        return None

    def _find_node(self, pod: Pod, parts: Parts, avoided: frozenset[str], hint: Hint | None) -> Steps:
        """Find a node that takes the whole Pod."""
        try:
            policy = self._policy_of(parts.wanted or parts.held)
        except ValueError as error:
            return Refuse(Code.INVALID, str(error), tuple(parts.wanted))
        yield from self._ranking.measure(policy)
        names = self._ranking.order(policy, count_devices(parts.wanted))
        search = NodeSearch(self.state, pod, parts, policy, avoided, self.budget)
        place = search.accept(hint.node, hint.version, hint.allocations) if hint is not None else None
        if place is not None:
            return place
        for start in range(0, len(names), _STEP):
            try:
                place = search.place(names[start : start + _STEP])
            except AllocationError as error:
                return Refuse(Code.INVALID, str(error), tuple(parts.wanted))
            if place is not None:
                return place
            yield
        return search.refuse()

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


def _read_policy(subject: str, text: str) -> Policy:
    try:
        return parse_policy(text)
    except ValueError as error:
        raise ValueError(f"{subject}: annotation {ANNOTATION}: {error}") from error


def _give_up(pod: Pod, parts: Parts, refusal: Refuse) -> TakeBack | Refuse:
    """Take back what the Pod alone holds, if it holds anything."""
    lonely = tuple(claim for claim in parts.held if is_reserved_only_for(claim, pod))
    return TakeBack(lonely, refusal) if lonely else refusal


def _explain_foreign(pod: Pod, parts: Parts) -> Refuse | Leave:
    """Tell what a Pod without a claim of ours waits for: our gate in vain, or a node that kube-scheduler lacks."""
    if is_gated(pod):
        text = f"no claim is of a class with the label {KEY}={CONTROLLER}: remove the scheduling gate {GATE}"
        return Refuse(Code.NOT_OURS, text)
    if parts.expected and _is_unschedulable(pod):
        return Refuse(Code.FOREIGN, "kube-scheduler found no node", tuple(parts.expected))
    return Leave()


def _is_unschedulable(pod: Pod) -> bool:
    return any(
        condition.type == "PodScheduled" and condition.status == "False" and condition.reason == "Unschedulable"
        for condition in pod.status.conditions
    )
