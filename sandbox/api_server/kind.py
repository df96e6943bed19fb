"""The kinds that are served: how they are called, where they live, and what of them may be selected."""

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

Object: TypeAlias = dict[str, Any]
"""An object as JSON. What is stored is never changed in place."""


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """A kind of one API version. `fields` are the paths that a field selector may name, besides the metadata's."""

    group: str
    version: str
    plural: str
    singular: str
    kind: str
    namespaced: bool = False
    has_status: bool = False
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        """Group and version, as objects name them."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def root(self) -> str:
        """The path of the group and version."""
        return f"/apis/{self.api_version}" if self.group else f"/api/{self.version}"

    @property
    def qualified(self) -> str:
        """The plural with its group, as messages name it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


_RESOURCE: Final = "resource.k8s.io"
_SLICE_FIELDS: Final = ("spec.nodeName", "spec.driver", "spec.pool.name")
_EVENT_FIELDS: Final = (
    *(f"involvedObject.{name}" for name in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion")),
    *("involvedObject.fieldPath", "reason", "reportingComponent", "source", "type"),
)
_POD_FIELDS: Final = (
    *("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork"),
    *("status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName"),
)

NAMESPACES: Final = Kind(
    *("", "v1", "namespaces", "namespace", "Namespace"),
    has_status=True,
    short_names=("ns",),
    fields=("status.phase",),
    subresources=("finalize",),
)
NODES: Final = Kind(
    *("", "v1", "nodes", "node", "Node"), has_status=True, short_names=("no",), fields=("spec.unschedulable",)
)
PODS: Final = Kind(
    *("", "v1", "pods", "pod", "Pod"),
    namespaced=True,
    has_status=True,
    short_names=("po",),
    categories=("all",),
    fields=_POD_FIELDS,
    subresources=("binding", "eviction"),
)
EVENTS: Final = Kind(
    *("", "v1", "events", "event", "Event"), namespaced=True, short_names=("ev",), fields=_EVENT_FIELDS
)
CONFIG_MAPS: Final = Kind(*("", "v1", "configmaps", "configmap", "ConfigMap"), namespaced=True, short_names=("cm",))
SERVICE_ACCOUNTS: Final = Kind(
    *("", "v1", "serviceaccounts", "serviceaccount", "ServiceAccount"), namespaced=True, short_names=("sa",)
)
LEASES: Final = Kind("coordination.k8s.io", "v1", "leases", "lease", "Lease", namespaced=True)
RESOURCE_SLICES: Final = Kind(_RESOURCE, "v1", "resourceslices", "resourceslice", "ResourceSlice", fields=_SLICE_FIELDS)
DEVICE_CLASSES: Final = Kind(_RESOURCE, "v1", "deviceclasses", "deviceclass", "DeviceClass")
RESOURCE_CLAIMS: Final = Kind(
    *(_RESOURCE, "v1", "resourceclaims", "resourceclaim", "ResourceClaim"), namespaced=True, has_status=True
)
RESOURCE_CLAIM_TEMPLATES: Final = Kind(
    *(_RESOURCE, "v1", "resourceclaimtemplates", "resourceclaimtemplate", "ResourceClaimTemplate"), namespaced=True
)
DEVICE_TAINT_RULES: Final = Kind(
    *(_RESOURCE, "v1", "devicetaintrules", "devicetaintrule", "DeviceTaintRule"), has_status=True
)

KINDS: Final = (
    *(NAMESPACES, NODES, PODS, EVENTS, CONFIG_MAPS, SERVICE_ACCOUNTS, LEASES),
    *(RESOURCE_SLICES, DEVICE_CLASSES, RESOURCE_CLAIMS, RESOURCE_CLAIM_TEMPLATES, DEVICE_TAINT_RULES),
)
