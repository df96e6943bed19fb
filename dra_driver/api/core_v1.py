"""The parts of core/v1 that the driver uses: nodes, node selectors, pods as far as claims concern them, events."""

from typing import Literal

import msgspec

from dra_driver.api.meta_v1 import ListMeta, MicroTime, ObjectMeta, Time, Wire, constant
from dra_driver.api.quantity import Quantity


class NodeSelectorRequirement(Wire, frozen=True, kw_only=True):
    """A label or field of a node; `operator` is `In`, `NotIn`, `Exists`, `DoesNotExist`, `Gt` or `Lt`."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class NodeSelectorTerm(Wire, frozen=True, kw_only=True):
    """Requirements that all hold. An empty term matches no node."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(Wire, frozen=True, kw_only=True):
    """Terms of which one holds."""

    node_selector_terms: tuple[NodeSelectorTerm, ...]


class ObjectReference(Wire, frozen=True, kw_only=True):
    """The object that an Event is about."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""


class Taint(Wire, frozen=True, kw_only=True):
    """A taint of a node."""

    key: str
    value: str = ""
    effect: str
    time_added: Time | None = None


class NodeSpec(Wire, frozen=True, kw_only=True):
    """What an administrator wants of a node."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeCondition(Wire, frozen=True, kw_only=True):
    """One condition of a node."""

    type: str
    status: str
    last_heartbeat_time: Time | None = None
    last_transition_time: Time | None = None
    reason: str = ""
    message: str = ""


class NodeStatus(Wire, frozen=True, kw_only=True):
    """What a node has. `declared_features` are those of its kubelet."""

    allocatable: dict[str, Quantity] = msgspec.field(default_factory=dict)
    conditions: tuple[NodeCondition, ...] = ()
    declared_features: tuple[str, ...] = ()


class Node(Wire, frozen=True, kw_only=True):
    """A node."""

    api_version: Literal["v1"] = constant("v1")
    kind: Literal["Node"] = constant("Node")
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)


class NodeList(Wire, frozen=True, kw_only=True):
    """A list of nodes."""

    api_version: Literal["v1"] = constant("v1")
    kind: Literal["NodeList"] = constant("NodeList")
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: tuple[Node, ...]


class PodResourceClaim(Wire, frozen=True, kw_only=True):
    """A claim of a pod: exactly one of `resource_claim_name` and `resource_claim_template_name`."""

    name: str
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class Toleration(Wire, frozen=True, kw_only=True):
    """Taints that a pod bears. `operator` is `Equal` (also if empty), `Exists`, `Lt` or `Gt`; no effect means any."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class NodeAffinity(Wire, frozen=True, kw_only=True):
    """Which nodes a pod must have; which it would like better is left to kube-scheduler."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None


class Affinity(Wire, frozen=True, kw_only=True):
    """What a pod wants of its surroundings."""

    node_affinity: NodeAffinity | None = None


class ResourceRequirements(Wire, frozen=True, kw_only=True):
    """What a container, or a pod as a whole, asks for; without a request its limit counts."""

    requests: dict[str, Quantity] = msgspec.field(default_factory=dict)
    limits: dict[str, Quantity] = msgspec.field(default_factory=dict)


class Container(Wire, frozen=True, kw_only=True):
    """A container. An init container with `restart_policy` `Always` is a sidecar, which goes on running."""

    name: str
    resources: ResourceRequirements = msgspec.field(default_factory=ResourceRequirements)
    restart_policy: str = ""


class PodSchedulingGate(Wire, frozen=True, kw_only=True):
    """While a pod has a gate, kube-scheduler waits."""

    name: str


class PodSpec(Wire, frozen=True, kw_only=True):
    """Where a pod may run and runs, what it asks for, and its claims."""

    node_name: str = ""
    scheduler_name: str = ""
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    node_selector: dict[str, str] = msgspec.field(default_factory=dict)
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: dict[str, Quantity] = msgspec.field(default_factory=dict)
    resources: ResourceRequirements | None = None
    resource_claims: tuple[PodResourceClaim, ...] = ()


class PodResourceClaimStatus(Wire, frozen=True, kw_only=True):
    """The claim that was made from a template; None where none is needed."""

    name: str
    resource_claim_name: str | None = None


class PodCondition(Wire, frozen=True, kw_only=True):
    """One condition of a pod. `PodScheduled` with reason `Unschedulable` is kube-scheduler's refusal."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: Time | None = None


class PodStatus(Wire, frozen=True, kw_only=True):
    """How far a pod is. `phase` is `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`."""

    phase: str = ""
    conditions: tuple[PodCondition, ...] = ()
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()


class PodHead(Wire, frozen=True, kw_only=True):
    """A pod but for its spec, of which each reader wants another part."""

    api_version: Literal["v1"] = constant("v1")
    kind: Literal["Pod"] = constant("Pod")
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    status: PodStatus = msgspec.field(default_factory=PodStatus)


class Pod(PodHead, frozen=True, kw_only=True):
    """A pod, as far as its claims concern it. Never write one back: most of it is not here."""

    spec: PodSpec = msgspec.field(default_factory=PodSpec)


class PodList(Wire, frozen=True, kw_only=True):
    """A list of pods."""

    api_version: Literal["v1"] = constant("v1")
    kind: Literal["PodList"] = constant("PodList")
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: tuple[Pod, ...]


class EventSource(Wire, frozen=True, kw_only=True):
    """The component that an Event comes from."""

    component: str = ""
    host: str = ""


class EventSeries(Wire, frozen=True, kw_only=True):
    """How often an Event was seen since `event_time`."""

    count: int = 0
    last_observed_time: MicroTime | None = None


class Event(Wire, frozen=True, kw_only=True):
    """Something that a person must know about an object.

    The server wants `involved_object.namespace` equal to `metadata.namespace`; an Event about an object without
    namespace lives in `default`. With `event_time` set it also wants `reporting_component` (a qualified name),
    `reporting_instance`, `action`, `reason` and `type`, and then lets nothing but `series` change.
    Without, `first_timestamp`, `last_timestamp` and `count` tell of repetition.
    `message` is at most 1024 bytes, `reason` at most 128; `type` is `Normal` or `Warning`.
    """

    api_version: Literal["v1"] = constant("v1")
    kind: Literal["Event"] = constant("Event")
    metadata: ObjectMeta
    involved_object: ObjectReference
    type: str = ""
    reason: str = ""
    message: str = ""
    action: str = ""
    source: EventSource = msgspec.field(default_factory=EventSource)
    first_timestamp: Time | None = None
    last_timestamp: Time | None = None
    count: int = 0
    event_time: MicroTime | None = None
    series: EventSeries | None = None
    related: ObjectReference | None = None
    reporting_component: str = ""
    reporting_instance: str = ""


class EventList(Wire, frozen=True, kw_only=True):
    """A list of Events."""

    api_version: Literal["v1"] = constant("v1")
    kind: Literal["EventList"] = constant("EventList")
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: tuple[Event, ...]
