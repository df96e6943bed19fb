"""The kinds that the driver reads and writes: where they live on an API server, and the structs that they are."""

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar
from urllib.parse import quote

from dra_driver.api.coordination_v1 import Lease, LeaseList
from dra_driver.api.core_v1 import Event, EventList, Node, NodeList, Pod, PodList
from dra_driver.api.meta_v1 import ListMeta, ObjectMeta
from dra_driver.api.resource_v1 import (
    DeviceClass,
    DeviceClassList,
    DeviceTaintRule,
    DeviceTaintRuleList,
    ResourceClaim,
    ResourceClaimList,
    ResourceClaimTemplate,
    ResourceClaimTemplateList,
    ResourceSlice,
    ResourceSliceList,
)
from dra_driver.errors import ApiNotFoundError


class KubernetesObject(Protocol):
    """What every object has."""

    @property
    def api_version(self) -> str:
        """Group and version, such as `resource.k8s.io/v1`."""
        ...

    @property
    def kind(self) -> str:
        """The kind, such as `ResourceSlice`."""
        ...

    @property
    def metadata(self) -> ObjectMeta:
        """Name, identity and version."""
        ...


T = TypeVar("T", bound=KubernetesObject)
T_co = TypeVar("T_co", covariant=True)


class KubernetesList(Protocol[T_co]):
    """What every list has."""

    @property
    def metadata(self) -> ListMeta:
        """The version of the list, and how to ask for the rest."""
        ...

    @property
    def items(self) -> tuple[T_co, ...]:
        """The objects."""
        ...


@dataclass(frozen=True, slots=True)
class Resource(Generic[T]):
    """One kind of one API version. `group` is empty for core; `struct` is an object, `list_struct` a list of them."""

    group: str
    version: str
    plural: str
    struct: type[T]
    list_struct: type[KubernetesList[T]]
    namespaced: bool = False

    def path(self, *, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the URL path of the collection, of an object, or of its subresource.

        Without `namespace` a namespaced kind means all namespaces, which only lists and watches may.
        Raises ApiNotFoundError if nothing can be called so.
        """
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        parts = [*(("namespaces", namespace) if namespace and self.namespaced else ()), self.plural]
        parts += [part for part in (name, subresource) if part]
        if not {".", ".."}.isdisjoint(parts):  # they would lead to another path, and no object is called so
            raise ApiNotFoundError(f"{self.plural}: no object can be called {name or namespace!r}")
        return "/".join([root, *(quote(part, safe="") for part in parts)])


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects of a kind: of one namespace (all if empty), by label selector and by field selector."""

    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""

    def query(self) -> dict[str, str]:
        """Return the query parameters of a list or watch."""
        query = {"labelSelector": self.label_selector, "fieldSelector": self.field_selector}
        return {name: value for name, value in query.items() if value}


@dataclass(frozen=True, slots=True, order=True)
class ObjectKey:
    """Namespace (empty for cluster-scoped kinds) and name of an object."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def key_of(value: KubernetesObject) -> ObjectKey:
    """Return the key of an object."""
    return ObjectKey(value.metadata.namespace, value.metadata.name)


EVERYTHING = Selection()

RESOURCE_SLICES = Resource("resource.k8s.io", "v1", "resourceslices", ResourceSlice, ResourceSliceList)
DEVICE_CLASSES = Resource("resource.k8s.io", "v1", "deviceclasses", DeviceClass, DeviceClassList)
RESOURCE_CLAIMS = Resource("resource.k8s.io", "v1", "resourceclaims", ResourceClaim, ResourceClaimList, namespaced=True)
DEVICE_TAINT_RULES = Resource("resource.k8s.io", "v1", "devicetaintrules", DeviceTaintRule, DeviceTaintRuleList)
RESOURCE_CLAIM_TEMPLATES = Resource(
    *("resource.k8s.io", "v1", "resourceclaimtemplates"),
    *(ResourceClaimTemplate, ResourceClaimTemplateList),
    namespaced=True,
)
NODES = Resource("", "v1", "nodes", Node, NodeList)
PODS = Resource("", "v1", "pods", Pod, PodList, namespaced=True)
EVENTS = Resource("", "v1", "events", Event, EventList, namespaced=True)
LEASES = Resource("coordination.k8s.io", "v1", "leases", Lease, LeaseList, namespaced=True)
