"""Looking for a node that takes a whole Pod: its containers, the claims that are ours, and those that are not."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec

from controller.allocator import Allocated, AllocationError, Placed, Policy, Undecided
from controller.allocator.node_selection import matches_selector
from controller.allocator.policy import ANNOTATION
from controller.decision import Code, Place, Refuse
from controller.ownership import CONTROLLER, KEY, TAINT, Owner
from controller.placement import find_misfit, name_class_resources, sum_requests
from controller.refusal_text import word_misfit
from controller.state import State
from dra_driver.api.core_v1 import Node, Pod
from dra_driver.api.resource_v1 import AllocationResult, ResourceClaim
from dra_driver.kube.resource import key_of
from dra_driver.pod_claim import is_reserved_for

Allocations = tuple[tuple[ResourceClaim, AllocationResult], ...]

NO_TAINT: Final = f"devices lack the taint {TAINT}"


@dataclass(slots=True)
class Parts:
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
        """All that are allocated."""
        return [*self.held, *self.foreign]


@dataclass(slots=True)
class NodeSearch:
    """Looking for a node for one Pod."""

    state: State
    pod: Pod
    parts: Parts
    policy: Policy
    avoided: frozenset[str]
    budget: int
    misfits: dict[str, str] = field(default_factory=dict)
    short: list[str] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)
    _requests: dict[str, int] = field(init=False)
    _class_resources: frozenset[str] = field(init=False)
    _wanted: list[ResourceClaim] = field(init=False)

    def __post_init__(self) -> None:
        self._requests = sum_requests(self.pod)
        self._class_resources = name_class_resources(self.state.classes.values())
        self._wanted = [with_policy(claim, self.policy) for claim in self.parts.wanted]

    def place(self, names: Sequence[str]) -> Place | None:
        """Try some nodes. Raises AllocationError where no node can help."""
        hopeful = [name for name in names if name in self.state.own.nodes and not self._is_elsewhere(name)]
        while hopeful:
            place = self._place_first(hopeful)
            if place is None:
                return None
            if self._takes_pod(place.node):
                promises = self._find_promises(place.node)
                if promises is not None:
                    return replace(place, promises=promises)
            index = hopeful.index(place.node)
            self._note_short(hopeful[:index], {})
            hopeful = hopeful[index + 1 :]
        return None

    def accept(self, node: str, version: object, allocations: Allocations) -> Place | None:
        """Take what was found before for claims like these, if the node still takes the Pod and is as it was then."""
        is_same = [claim for claim, _ in allocations] == self.parts.wanted and self.state.version_of(node) == version
        is_same = is_same and node in self.state.own.nodes and not self._is_elsewhere(node)
        promises = self._find_promises(node) if is_same and self._takes_pod(node) else None
        return Place(node, allocations, self._reservations, promises) if promises is not None else None

    def refuse(self) -> Refuse:
        """Say why nothing was found."""
        wanted = tuple(self.parts.wanted)
        # Whether nodes take the Pod at all is only looked at where their devices suffice, or now.
        self.short = [name for name in self.short if self._takes_pod(name)]
        if not self.state.own.nodes:
            return Refuse(Code.NO_NODE, f"no node is labelled {KEY}={CONTROLLER}", wanted)
        if self.undecided and self.short:
            # Of nodes that are alike only one was tried, and that one may not take the Pod: so all of them count.
            text = "not decided yet, trying harder"
            return Refuse(Code.UNDECIDED, text, wanted, self.misfits, undecided=tuple(self.short))
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

    def _is_elsewhere(self, name: str) -> bool:
        """Tell whether a claim of the Pod is allocated where the node cannot use it, and note it."""
        if not self.parts.allocated:
            return False
        node = self.state.own.nodes[name]
        for claim in self.parts.allocated:
            allocation = claim.status.allocation
            selector = allocation.node_selector if allocation is not None else None
            if selector is not None and not matches_selector(node, selector, f"claim {key_of(claim)}"):
                self.misfits[name] = f"claim {key_of(claim)} is allocated elsewhere"
                return True
        return False

    def _find_problem(self, name: str, node: Node) -> str:
        if name in self.avoided:
            return "kube-scheduler refused it a moment ago"
        requested = self.state.requested_without(key_of(self.pod), name)
        known = self._class_resources
        misfit = find_misfit(self.pod, node, requested, requests=self._requests, class_resources=known)
        return word_misfit(misfit) if misfit is not None else ""

    @property
    def _reservations(self) -> tuple[ResourceClaim, ...]:
        return tuple(claim for claim in self.parts.held if not is_reserved_for(claim, self.pod))

    def _place_first(self, names: Sequence[str]) -> Place | None:
        """Find the first of the nodes that has devices for the claims that are ours."""
        if not self._wanted:
            return Place(names[0], (), self._reservations)
        policy = Policy.FIRST_FIT if self.policy is Policy.FIRST_FIT else None
        answer = self.state.own.place(self._wanted, names, policy=policy, budget=self.budget)
        if isinstance(answer, Placed):
            results = zip(self.parts.wanted, answer.answer.results, strict=True)
            return Place(answer.node, tuple(results), self._reservations)
        self.undecided += answer.undecided
        self._note_short(names, answer.errors)
        return None

    def _note_short(self, names: Sequence[str], errors: Mapping[str, str]) -> None:
        """Note why nodes do not have the devices."""
        for name in names:
            if name in errors:
                self.misfits[name] = errors[name]
            elif self.state.own.pools(name):
                self.short.append(name)
            else:
                self.misfits[name] = NO_TAINT if self.state.foreign.pools(name) else "no devices"

    def _find_promises(self, node: str) -> Allocations | None:
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


def sort_claims(claims: Sequence[ResourceClaim], owners: Sequence[Owner]) -> Parts:
    """Sort the claims of a Pod by who allocates them, and whether that is done."""
    parts = Parts()
    for claim, owner in zip(claims, owners, strict=True):
        is_allocated = claim.status.allocation is not None
        if owner is Owner.CONTROLLER:
            (parts.held if is_allocated else parts.wanted).append(claim)
        else:
            (parts.foreign if is_allocated else parts.expected).append(claim)
    return parts


def with_policy(claim: ResourceClaim, policy: Policy) -> ResourceClaim:
    """Give the claim the policy of its Pod, if it names none."""
    annotations = {ANNOTATION: str(policy)} | claim.metadata.annotations
    return msgspec.structs.replace(claim, metadata=msgspec.structs.replace(claim.metadata, annotations=annotations))


def _count_misfits(misfits: Mapping[str, str], short: Sequence[str]) -> str:
    """Count nodes by what keeps them from taking the Pod."""
    counts = Counter(misfits.values())
    counts["devices do not suffice"] += len(short)
    return "; ".join(
        f"{count} {'node' if count == 1 else 'nodes'}: {text}" for text, count in sorted(counts.items()) if count
    )
