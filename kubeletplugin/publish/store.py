"""What publishing needs of the rest: the node's slices in an API server, and somewhere to tell a person."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from dra_driver.allocator import Allocator
from dra_driver.api.core_v1 import ObjectReference
from dra_driver.api.resource_v1 import ResourceSlice
from dra_driver.kube.event import EventType
from kubeletplugin.publish.coexistence import OtherOwner


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What publishing needs of the Node: which object it is, who allocates its devices, and who else serves some."""

    uid: str
    allocator: Allocator
    others: tuple[OtherOwner, ...] = ()


class SliceStore(Protocol):
    """The slices of this node. Every request raises ApiError."""

    async def follow(self, notice: Callable[[], None], interrupted: Callable[[], None]) -> None:
        """Watch the node's slices and the Node until cancelled, and call `notice` after every change that matters.

        Outages are waited out; `interrupted` is called when the watch has failed, as when the API server is restarted.
        """
        ...

    def slices(self) -> tuple[ResourceSlice, ...] | None:
        """Return the slices as far as the watch has seen and we have written; None while the watch has seen nothing."""
        ...

    async def list_slices(self) -> tuple[ResourceSlice, ...]:
        """Return all slices of this node now, whoever wrote them."""
        ...

    async def create_slice(self, item: ResourceSlice, *, dry_run: bool = False) -> ResourceSlice:
        """Create a slice and return what the server made of it. Stores nothing in a dry run."""
        ...

    async def update_slice(self, item: ResourceSlice) -> ResourceSlice:
        """Replace a slice at the resource version that it carries, and return what the server made of it."""
        ...

    async def delete_slice(self, item: ResourceSlice) -> None:
        """Delete a slice if it still has the UID and the resource version that it carries. Gone already is success."""
        ...

    def node(self) -> NodeFacts | None:
        """Return what the watch has seen of the Node last; None while it has seen none."""
        ...

    async def read_node(self) -> NodeFacts:
        """Return what is true of the Node now."""
        ...


class HeldReader(Protocol):
    """Who knows what Pods of this node hold: `kubeletplugin.kubelet.pod_resource.PodResources`."""

    async def read_held(self) -> frozenset[str] | None:
        """Return the names of the extended resources of which Pods hold some; None if that is not known now."""
        ...


class EventSink(Protocol):
    """Where Events go: `dra_driver.kube.event.EventRecorder`."""

    def record(self, target: ObjectReference, reason: str, message: str, *, type: EventType) -> None:  # noqa: A002 - its name
        """Take note of an Event about an object. Neither waits nor fails."""
        ...
