"""coordination.k8s.io/v1: the Lease, by which one of several replicas leads."""

from typing import Literal

import msgspec

from dra_driver.api.meta_v1 import ListMeta, MicroTime, ObjectMeta, Wire, constant


class LeaseSpec(Wire, frozen=True, kw_only=True):
    """Who holds a lease and until when: `renew_time` plus `lease_duration_seconds`, by the holder's clock."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: MicroTime | None = None
    renew_time: MicroTime | None = None
    lease_transitions: int | None = None
    preferred_holder: str | None = None
    strategy: str | None = None


class Lease(Wire, frozen=True, kw_only=True):
    """A lease."""

    api_version: Literal["coordination.k8s.io/v1"] = constant("coordination.k8s.io/v1")
    kind: Literal["Lease"] = constant("Lease")
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: LeaseSpec = msgspec.field(default_factory=LeaseSpec)


class LeaseList(Wire, frozen=True, kw_only=True):
    """A list of leases."""

    api_version: Literal["coordination.k8s.io/v1"] = constant("coordination.k8s.io/v1")
    kind: Literal["LeaseList"] = constant("LeaseList")
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: tuple[Lease, ...]
