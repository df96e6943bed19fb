"""A cluster that is kept up to date through a history, beside one that is looked at anew for each question.

A history is a list of events in the form of JSON: `set` and `remove` objects, and ask to `allocate`, `place` or
`explain`.
"""

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from controller.allocator import (
    Allocated,
    AllocationError,
    Answer,
    CelCompiler,
    Cluster,
    Features,
    Policy,
    Problem,
    Refused,
    SelectorCache,
    Undecided,
    allocate,
)
from controller.allocator.cluster import Placed, Unplaced
from controller.allocator.feature import features_of_names
from controller.allocator.search import Outcome
from dra_driver.api.codec import decode, encode
from dra_driver.api.core_v1 import Node
from dra_driver.api.resource_v1 import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimStatus, ResourceSlice
from dra_driver.errors import InvalidError
from tests.referee.agreement import without_share_ids
from tests.referee.process import Question

_TYPES: Mapping[str, type] = {
    "node": Node,
    "slice": ResourceSlice,
    "class": DeviceClass,
    "claim": ResourceClaim,
    "rule": DeviceTaintRule,
}


class BadEventError(ValueError):
    """An event that cannot be read."""


class Event(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something that happens: `object` comes or goes, or a question about `claims`, whose allocation may be kept."""

    do: Literal["set", "remove", "allocate", "place", "explain"]
    kind: Literal["", "node", "slice", "class", "claim", "rule"] = ""
    object: msgspec.Raw = msgspec.Raw(b"null")
    name: str = ""
    claims: tuple[msgspec.Raw, ...] = ()
    node: str = ""
    nodes: tuple[str, ...] = ()
    policy: Policy | None = Policy.FIRST_FIT
    commit: bool = False


_Answers: TypeAlias = Mapping[str, Answer | AllocationError]
_T = TypeVar("_T")
_TIMEOUT_MS = 1000


@dataclass(frozen=True, slots=True)
class Finding:
    """A question within a history, and how the kept cluster answered otherwise; `asked` is what it came down to."""

    kinds: tuple[str, ...]
    asked: Question | None
    answer: Any


@dataclass(slots=True)
class History:
    """Plays events to a kept cluster, and keeps the objects to ask anew."""

    features: Features
    gates: Mapping[str, bool] | None = None
    cluster: Cluster = field(init=False)
    objects: dict[str, dict[str, Any]] = field(default_factory=lambda: {kind: {} for kind in _TYPES})

    def __post_init__(self) -> None:
        self.cluster = Cluster(SelectorCache(CelCompiler()), _new_share_id, features=self.features)

    def play(self, events: Sequence[Event]) -> Iterator[Finding]:
        """Give what each question came to. Raises BadEventError, and whatever a defect raises."""
        for event in events:
            claims = [_read(claim, ResourceClaim) for claim in event.claims]
            nodes = [node for node in event.nodes if node in self.objects["node"]]
            match event.do:
                case "set":
                    self._set(event.kind, _read(event.object, _type_of(event)))
                case "remove":
                    self._remove(event)
                case "allocate" if event.node in self.objects["node"]:
                    yield self._allocate(event, claims)
                case "place":
                    yield self._place(event, claims, nodes)
                case "explain":
                    yield self._explain(claims, nodes)
                case _:
                    pass

    def _set(self, kind: str, object_: Any) -> None:
        meta = object_.metadata
        name = f"{meta.namespace}/{meta.name}" if kind == "claim" else meta.name
        # What is replaced goes to the end, as in the cluster: of slices that contradict each other the first counts.
        self.objects[kind].pop(name, None)
        self.objects[kind][name] = object_
        setters: Mapping[str, Callable[[Any], None]] = {
            "node": self.cluster.set_node,
            "slice": self.cluster.set_slice,
            "class": self.cluster.set_class,
            "claim": self.cluster.set_claim,
            "rule": self.cluster.set_taint_rule,
        }
        setters[kind](object_)

    def _remove(self, event: Event) -> None:
        _type_of(event)
        self.objects[event.kind].pop(event.name, None)
        removers: Mapping[str, Callable[[str], None]] = {
            "node": self.cluster.remove_node,
            "slice": self.cluster.remove_slice,
            "class": self.cluster.remove_class,
            "claim": self.cluster.remove_claim,
            "rule": self.cluster.remove_taint_rule,
        }
        removers[event.kind](event.name)

    def _allocate(self, event: Event, claims: list[ResourceClaim]) -> Finding:
        node, policy = event.node, event.policy
        fresh = self._answer(claims, node, policy)
        kept = _run(lambda: self.cluster.allocate(claims, node, policy=policy))
        kinds = (f"allocate: {_differ(kept, fresh)}",) if _shown(kept) != _shown(fresh) else ()
        self._commit(event, claims, kept)
        return Finding(kinds, self._ask(claims, node, policy), _shown(fresh))

    def _place(self, event: Event, claims: list[ResourceClaim], nodes: list[str]) -> Finding:
        policy = event.policy
        fresh = {node: self._answer(claims, node, policy) for node in nodes}
        try:
            kept = self.cluster.place(claims, nodes, policy=policy)
        except AllocationError as error:
            return Finding(_check_error(error, fresh), None, None)
        if isinstance(kept, Placed):
            asked = self._ask(claims, kept.node, policy)
            self._commit(event, claims, kept.answer)
            return Finding(_check_placed(kept, fresh), asked, _shown(fresh[kept.node]))
        kinds = tuple(kind for node, answer in fresh.items() for kind in _check_unplaced(node, answer, kept))
        if not nodes:
            return Finding(kinds[:1], None, None)
        return Finding(kinds[:1], self._ask(claims, nodes[0], policy), _shown(fresh[nodes[0]]))

    def _explain(self, claims: list[ResourceClaim], nodes: list[str]) -> Finding:
        joined = self.cluster.explain(claims, nodes)
        fresh = [self._answer(claims, node, Policy.FIRST_FIT) for node in nodes]
        fitting = sum(kind.count for kind in joined.kinds if kind.outcome is Outcome.FOUND)
        is_same = fitting == sum(isinstance(answer, Allocated) for answer in fresh)
        return Finding(() if is_same else ("explain: other nodes fit",), None, None)

    def _answer(self, claims: list[ResourceClaim], node: str, policy: Policy | None) -> Answer | AllocationError:
        return _run(lambda: allocate(self._problem(claims, node, policy)))

    def _commit(self, event: Event, claims: list[ResourceClaim], answer: Answer | AllocationError) -> None:
        if event.commit and isinstance(answer, Allocated):
            for claim, result in zip(claims, answer.results, strict=True):
                status = ResourceClaimStatus(allocation=result)
                self._set("claim", msgspec.structs.replace(claim, status=status))

    def _problem(self, claims: list[ResourceClaim], node: str, policy: Policy | None) -> Problem:
        return Problem(
            node=self.objects["node"][node],
            claims=claims,
            slices=tuple(self.objects["slice"].values()),
            classes=self.objects["class"],
            allocated=tuple(self.objects["claim"].values()),
            taint_rules=tuple(self.objects["rule"][name] for name in sorted(self.objects["rule"])),
            features=self.features,
            policy=policy,
            new_share_id=_new_share_id,
        )

    def _ask(self, claims: list[ResourceClaim], node: str, policy: Policy | None) -> Question | None:
        """Give what upstream can be asked: it knows neither taint rules nor policies."""
        if self.objects["rule"] or policy is not Policy.FIRST_FIT:
            return None
        problem = self._problem(claims, node, policy)
        objects: dict[str, Any] = {
            "node": problem.node,
            "classes": tuple(problem.classes.values()),
            "slices": problem.slices,
            "claims": problem.claims,
            "allocated": problem.allocated,
        }
        plain = {part: msgspec.json.decode(encode(value)) for part, value in objects.items()}
        return {"op": "allocate", "timeoutMs": _TIMEOUT_MS, "features": self.gates, **plain}


def play(question: Question) -> Iterator[Finding]:
    """Play the history of a question. Raises BadEventError, and whatever a defect raises."""
    features = question.get("features")
    history = History(Features() if features is None else features_of_names(features), features)
    yield from history.play(read_events(question.get("events", ())))


def read_events(events: Sequence[Mapping[str, Any]]) -> tuple[Event, ...]:
    """Read events from the form of JSON. Raises BadEventError."""
    return _read(msgspec.json.encode(events), tuple[Event, ...])


def _read(data: bytes | msgspec.Raw, type_: type[_T]) -> _T:
    try:
        return decode(bytes(data), type_)
    except InvalidError as error:
        raise BadEventError(str(error)) from error


def _type_of(event: Event) -> type:
    if event.kind not in _TYPES:
        raise BadEventError(f"event: kind {event.kind!r}, want one of {', '.join(_TYPES)}")
    return _TYPES[event.kind]


def _new_share_id() -> str:
    return str(uuid.uuid4())


def _run(call: Callable[[], Answer]) -> Answer | AllocationError:
    try:
        return call()
    except AllocationError as error:
        return error


def _shown(answer: Answer | AllocationError) -> Any:
    """Give what must be equal."""
    match answer:
        case AllocationError():
            return {"error": str(answer.error_class), "nodeOnly": answer.node_only}
        case Allocated():
            return {"result": without_share_ids(msgspec.json.decode(encode(answer.results)))}
        case Refused():
            return "refused"
        case Undecided():
            return "undecided"


def _name(answer: Answer | AllocationError) -> str:
    return f"error {answer.error_class}" if isinstance(answer, AllocationError) else type(answer).__name__


def _differ(kept: Answer | AllocationError, fresh: Answer | AllocationError) -> str:
    return f"{_name(kept)}, anew {_name(fresh)}"


def _check_error(error: AllocationError, fresh: _Answers) -> tuple[str, ...]:
    """Some node must have the error; none before it may fit."""
    for answer in fresh.values():
        if isinstance(answer, Allocated):
            return (f"place: error {error.error_class}, a node before fits",)
        if isinstance(answer, AllocationError) and not answer.node_only:
            same = answer.error_class is error.error_class
            return () if same else (f"place: error {error.error_class}, anew {answer.error_class}",)
    return (f"place: error {error.error_class}, anew none",)


def _check_placed(kept: Placed, fresh: _Answers) -> tuple[str, ...]:
    """It must be the first node that fits, with what fits there."""
    for node, answer in fresh.items():
        if node == kept.node:
            return () if _shown(answer) == _shown(kept.answer) else (f"place: {_differ(kept.answer, answer)}",)
        if isinstance(answer, Allocated):
            return ("place: a node before fits",)
        if isinstance(answer, AllocationError) and not answer.node_only:
            return (f"place: fits, a node before has error {answer.error_class}",)
    return ("place: on a node that was not given",)


def _check_unplaced(node: str, answer: Answer | AllocationError, kept: Unplaced) -> tuple[str, ...]:
    if isinstance(answer, Refused | Undecided) or node in kept.errors:
        return ()
    if isinstance(answer, AllocationError) and answer.node_only:
        return ()
    return (f"place: nowhere, anew {_name(answer)} on a node",)
