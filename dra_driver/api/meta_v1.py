"""The parts of meta/v1 that every object shares, and the base of all wire types.

`metadata.managedFields` and `metadata.selfLink` are left out on purpose: the first is most of the bytes of a list
and the server keeps it when an update does not carry it, the second is gone since Kubernetes 1.20.
"""

from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

import msgspec

Time: TypeAlias = str
"""RFC 3339 in UTC, whole seconds: `2026-01-31T12:00:00Z`."""

MicroTime: TypeAlias = str
"""RFC 3339 in UTC, six decimals: `2026-01-31T12:00:00.000000Z`."""

JsonObject: TypeAlias = dict[str, Any]
"""A JSON object that Kubernetes passes through without looking at it."""


def render_time(moment: datetime) -> Time:
    """Write a moment, which knows its zone, as the API does."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Wire(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base of everything that travels as JSON. What is not set is not written; unknown fields are ignored on read."""


def constant(value: str) -> Any:
    """Give the default of `kind` and `apiVersion`: filled in when absent (items of a list), but always written."""
    return msgspec.field(default_factory=lambda: value)


class OwnerReference(Wire, frozen=True, kw_only=True):
    """The object that an object dies with."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Wire, frozen=True, kw_only=True):
    """Name, identity and labels of an object."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()


class ShardInfo(Wire, frozen=True, kw_only=True):
    """Which shard of a collection a list holds."""

    selector: str


class ListMeta(Wire, frozen=True, kw_only=True):
    """Where a list stands: its resource version, and how to ask for the rest."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None
    shard_info: ShardInfo | None = None


class Condition(Wire, frozen=True, kw_only=True):
    """One condition of an object. `status` is `True`, `False` or `Unknown`."""

    type: str
    status: str
    observed_generation: int = 0
    last_transition_time: Time
    reason: str
    message: str


class StatusCause(Wire, frozen=True, kw_only=True):
    """One reason of a failure; `field` is the path of the field that is wrong."""

    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(Wire, frozen=True, kw_only=True):
    """What a failure is about. `kind` is here the resource or the kind, as the server likes."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[StatusCause, ...] = ()
    retry_after_seconds: int = 0


class Status(Wire, frozen=True, kw_only=True):
    """The answer of the API server that is not an object: mostly a refusal. `code` is the HTTP status."""

    api_version: Literal["v1"] = constant("v1")
    kind: Literal["Status"] = constant("Status")
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    status: str = ""
    message: str = ""
    reason: str = ""
    details: StatusDetails | None = None
    code: int = 0
