"""Pods as a kubelet needs them: images, commands, and which container has which claim."""

from typing import Literal

import msgspec

from dra_driver.api.core_v1 import PodCondition, PodResourceClaim, PodResourceClaimStatus
from dra_driver.api.meta_v1 import JsonObject, ListMeta, ObjectMeta, Time, Wire, constant
from dra_driver.kube.resource import Resource
from dra_driver.pod_claim import FINAL_PHASES

RUN_FOR = "sandbox.dra-driver.io/run-for"
"""The annotation that says after how many seconds a Pod's containers end by themselves, as those of a job do."""


class ContainerClaim(Wire, frozen=True, kw_only=True):
    """A claim of the Pod that the container uses: one request of it, or all if `request` is empty."""

    name: str
    request: str = ""


class ContainerResources(Wire, frozen=True, kw_only=True):
    """The claims of a container."""

    claims: tuple[ContainerClaim, ...] = ()


class EnvVar(Wire, frozen=True, kw_only=True):
    """A variable; one whose value comes from elsewhere is empty here."""

    name: str
    value: str = ""


class Container(Wire, frozen=True, kw_only=True):
    """A container."""

    name: str
    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: tuple[EnvVar, ...] = ()
    resources: ContainerResources = msgspec.field(default_factory=ContainerResources)


class PodSpec(Wire, frozen=True, kw_only=True):
    """What is to run, and the Pod's claims."""

    node_name: str = ""
    containers: tuple[Container, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()


class PodStatus(Wire, frozen=True, kw_only=True):
    """How far the Pod is. Container statuses are kept as they are."""

    phase: str = ""
    start_time: Time | None = None
    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[JsonObject, ...] = ()
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()


class Pod(Wire, frozen=True, kw_only=True):
    """A Pod. Never write one back: most of it is not here."""

    api_version: Literal["v1"] = constant("v1")
    kind: Literal["Pod"] = constant("Pod")
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)

    @property
    def is_final(self) -> bool:
        """Whether its containers have ended for good."""
        return self.status.phase in FINAL_PHASES

    @property
    def run_for_s(self) -> float | None:
        """After how many seconds its containers end, or None if they do not."""
        try:
            return float(self.metadata.annotations[RUN_FOR])
        except (KeyError, ValueError):
            return None

    @property
    def running_since(self) -> str:
        """When its containers were started, as its status says; empty if they were not."""
        states = (each.get("state", {}).get("running", {}) for each in self.status.container_statuses)
        return next((str(state["startedAt"]) for state in states if "startedAt" in state), "")

    def __str__(self) -> str:
        return f"{self.metadata.namespace}/{self.metadata.name}"


class PodList(Wire, frozen=True, kw_only=True):
    """A list of Pods."""

    api_version: Literal["v1"] = constant("v1")
    kind: Literal["PodList"] = constant("PodList")
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: tuple[Pod, ...]


PODS = Resource("", "v1", "pods", Pod, PodList, namespaced=True)
