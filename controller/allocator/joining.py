"""Why claims do not fit on any of several nodes: a tree of reasons joined over the nodes.

Nodes that are alike are examined once. The work and the size of the tree are bounded, however many nodes there are;
what is left out is counted.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from controller.allocator.blocker import Blocker, BlockerCode
from controller.allocator.error import AllocationError
from controller.allocator.explanation import explain_error, find_blockers
from controller.allocator.reason import Reason, ReasonCode
from controller.allocator.relaxation import Question, Relaxation, request_path
from controller.allocator.search import Outcome
from controller.allocator.sifting import Sifting, count_agreeing, sift_request
from controller.allocator.table import Table

_KINDS_MAX: Final = 256
_DEVICES_MAX: Final = 20_000
_BLOCKED_KINDS_MAX: Final = 4
_BLOCKED_DEVICES_MAX: Final = 128
_BUDGET: Final = 2000
_SHOWN_MAX: Final = 16


@dataclass(frozen=True, slots=True)
class Group:
    """Nodes that are alike, by name; the question of the first, or why it cannot be asked."""

    nodes: tuple[str, ...]
    question: Question | AllocationError


@dataclass(frozen=True, slots=True)
class Request:
    """What a request of a claim finds on the nodes of a kind, alternative by alternative."""

    claim: str
    path: str
    siftings: tuple[Sifting, ...]
    subject: str
    """How texts name it: with its claim, if there are several."""

    @property
    def is_lacking(self) -> bool:
        """Whether the devices certainly do not suffice even for this request alone."""
        return all(sifting.is_lacking for sifting in self.siftings)


@dataclass(frozen=True, slots=True)
class Constraint:
    """A constraint of a claim, by the name of its blocker: `matchAttribute` or `distinctAttribute`, and of what.

    Of one that keeps a single request from the node, `most` devices that the request could have alone have one value,
    or values that are apart, and `wanted` are too many; else both are 0.
    """

    blocker: Blocker
    text: str
    most: int = 0
    wanted: int = 0


@dataclass(frozen=True, slots=True)
class Kind:
    """`count` nodes that are alike; `node` is the first.

    `blockers` are irreducible; they are only looked for where no request is lacking, and on the first few kinds.
    """

    node: str
    count: int
    outcome: Outcome
    requests: tuple[Request, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    blockers: tuple[Blocker, ...] = ()
    error: AllocationError | None = None

    @property
    def lacking(self) -> tuple[Request, ...]:
        """The requests that cannot be served there, whatever else is asked for."""
        return tuple(request for request in self.requests if request.is_lacking)


@dataclass(frozen=True, slots=True)
class Joined:
    """Why claims do not fit on `nodes` nodes: one reason a claim, joined over those that were examined.

    `skipped` nodes were not, since they are of too many kinds.
    """

    nodes: int
    claims: tuple[Reason, ...]
    kinds: tuple[Kind, ...]
    skipped: int = 0


def join_groups(groups: Iterable[Group]) -> Joined:
    """Explain refusals on several nodes, the groups with most nodes first."""
    ordered = sorted(groups, key=lambda group: (-len(group.nodes), group.nodes))
    kinds: list[Kind] = []
    devices = 0
    for group in ordered:
        if len(kinds) >= _KINDS_MAX or devices >= _DEVICES_MAX:
            break
        blocked = sum(bool(kind.blockers) for kind in kinds)
        kind = _examine(group, wants_blockers=blocked < _BLOCKED_KINDS_MAX)
        devices += sum(len(sifting.devices) for request in kind.requests for sifting in request.siftings)
        kinds.append(kind)
    return Joined(
        nodes=sum(len(group.nodes) for group in ordered),
        claims=(*_join_errors(ordered, kinds), *_join_claims(kinds)),
        kinds=tuple(kinds),
        skipped=sum(len(group.nodes) for group in ordered[len(kinds) :]),
    )


def _examine(group: Group, *, wants_blockers: bool) -> Kind:
    node, count = group.nodes[0], len(group.nodes)
    if isinstance(group.question, AllocationError):
        return Kind(node, count, Outcome.NONE, error=group.question)
    relaxation = Relaxation(group.question)
    try:
        table = relaxation.build(frozenset())
        outcome = relaxation.outcome(frozenset())
    except AllocationError as error:
        return Kind(node, count, Outcome.NONE, error=error)
    requests = tuple(_sift(table))
    kind = Kind(node, count, outcome, requests, tuple(_list_constraints(table, requests)))
    if kind.lacking:
        return replace(kind, outcome=Outcome.NONE)
    if outcome is Outcome.NONE and wants_blockers and len(table.candidates) <= _BLOCKED_DEVICES_MAX:
        cheap = Relaxation(replace(group.question, budget=min(group.question.budget, _BUDGET)))
        return replace(kind, blockers=find_blockers(cheap, table))
    return kind


def _sift(table: Table) -> Iterator[Request]:
    for plan in table.claims:
        claim = f"claim {plan.name}, " if len(table.claims) > 1 else ""
        for request in plan.requests:
            path = request_path(request)
            subject = f"{claim}request {path.removeprefix(f'{plan.name}/')}"
            yield Request(plan.name, path, sift_request(table, request), subject)


def _list_constraints(table: Table, requests: Sequence[Request]) -> Iterator[Constraint]:
    for plan in table.claims:
        own = [request.siftings for request in requests if request.claim == plan.name]
        for constraint in plan.constraints:
            kind = "matchAttribute" if constraint.is_match else "distinctAttribute"
            blocker = Blocker(BlockerCode.CONSTRAINT, plan.name, constraint=constraint.index)
            most, wanted = count_agreeing(table, plan, constraint, own)
            yield Constraint(blocker, f"{kind} {constraint.attribute}", most, wanted)


def _join_errors(groups: Sequence[Group], kinds: Sequence[Kind]) -> Iterator[Reason]:
    """Give the errors, each with the number of nodes where it is met."""
    trees: Counter[Reason] = Counter()
    for group, kind in zip(groups, kinds, strict=False):
        if kind.error is not None:
            claims = group.question.claims if isinstance(group.question, Question) else ()
            trees.update(dict.fromkeys(explain_error(kind.error, claims), kind.count))
    yield from _shorten([replace(tree, count=count) for tree, count in trees.items()])


def _join_claims(kinds: Sequence[Kind]) -> Iterator[Reason]:
    """Join what was found: claim, request, alternative, node, device."""
    refusing = [kind for kind in kinds if kind.requests and kind.outcome is not Outcome.FOUND]
    if not refusing:
        return
    requests = [_join_request(refusing, number) for number in range(len(refusing[0].requests))]
    for claim in dict.fromkeys(request.claim for request in refusing[0].requests):
        own = zip(refusing[0].requests, requests, strict=True)
        children = tuple(reason for request, reason in own if request.claim == claim)
        yield Reason(ReasonCode.CLAIM, claim, children=children)


def _join_request(kinds: Sequence[Kind], number: int) -> Reason:
    first = kinds[0].requests[number]
    children = tuple(_join_alternative(kinds, number, place) for place in range(len(first.siftings)))
    if len(children) == 1 and children[0].subject == first.path:
        return children[0]
    return Reason(ReasonCode.NO_ALTERNATIVE, first.path, children=children)


def _join_alternative(kinds: Sequence[Kind], number: int, place: int) -> Reason:
    siftings = [kind.requests[number].siftings[place] for kind in kinds]
    code = ReasonCode.TOO_FEW_DEVICES if all(sifting.is_lacking for sifting in siftings) else ReasonCode.COMPETES
    most = max(sifting.usable for sifting in siftings)
    nodes = [_join_node(kind, sifting) for kind, sifting in zip(kinds, siftings, strict=True)]
    wanted = str(max(sifting.wanted for sifting in siftings))
    return Reason(code, siftings[0].request, str(most), wanted, children=_shorten(nodes))


def _join_node(kind: Kind, sifting: Sifting) -> Reason:
    """Join devices with equal reasons."""
    reasons: dict[Reason, list[Reason]] = {}
    for device in sifting.devices:
        if device.reason is not None:
            reasons.setdefault(replace(device.reason, subject=""), []).append(device.reason)
    devices = [replace(alike[0], count=len(alike)) for alike in reasons.values()]
    devices.sort(key=lambda reason: (-reason.count, reason.code, reason.seen, reason.wanted))
    children = (*sifting.pools, *_shorten(devices))
    return Reason(ReasonCode.NODE, kind.node, str(sifting.usable), str(sifting.wanted), children, kind.count)


def _shorten(reasons: Sequence[Reason]) -> tuple[Reason, ...]:
    """Keep the first few; count the others."""
    rest = reasons[_SHOWN_MAX:]
    if not rest:
        return tuple(reasons)
    return (*reasons[:_SHOWN_MAX], Reason(ReasonCode.MORE, "", count=sum(reason.count for reason in rest)))
