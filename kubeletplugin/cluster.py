"""What the plugin asks of the API server, and what it tells there: the edge between this process and the cluster."""

import asyncio
from collections.abc import Callable

from dra_driver.api.core_v1 import ObjectReference
from dra_driver.api.resource_v1 import AllocatedDeviceStatus, ResourceClaim
from dra_driver.kube.client import ApiClient, PatchKind
from dra_driver.kube.event import EventRecorder, EventType, reference_to_node
from dra_driver.kube.resource import RESOURCE_CLAIMS
from kubeletplugin.prepare.record import ClaimRef
from kubeletplugin.sharing.mps_report import PodRef


class Claims:
    """Reads claims, never from a cache: what is prepared must be what is allocated now. Writes what devices are like.

    `manager` names the writer, as of which each entry is remembered: it must stay the same over restarts.
    """

    def __init__(self, client: ApiClient, manager: str) -> None:
        self._client = client
        self._manager = manager

    async def read_claim(self, ref: ClaimRef) -> ResourceClaim:
        """Return the claim as the API server has it now. Raises ApiError, also for a name that no claim can have."""
        return await self._client.get(RESOURCE_CLAIMS, ref.name, namespace=ref.namespace)

    async def apply_devices(self, ref: ClaimRef, devices: tuple[AllocatedDeviceStatus, ...]) -> None:
        """Say this and nothing else of the driver's devices. Raises ApiError, also if the name is another claim's."""
        applied = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": ref.name, "namespace": ref.namespace, "uid": ref.uid},
            **({"status": {"devices": devices}} if devices else {}),
        }
        await self._client.patch(
            RESOURCE_CLAIMS,
            ref.name,
            applied,
            kind=PatchKind.APPLY,
            namespace=ref.namespace,
            subresource="status",
            field_manager=self._manager,
            force=True,
        )


class Events:
    """Tells people: of a claim on the claim, of a Pod on the Pod, of the node's devices on the Node.

    May be called from any thread. While `is_quiet`, nothing is told, since another process of the node does that.
    """

    def __init__(
        self,
        recorder: EventRecorder,
        node_name: str,
        loop: asyncio.AbstractEventLoop,
        is_quiet: Callable[[], bool] = lambda: False,
    ) -> None:
        self._recorder = recorder
        self._loop = loop
        self._is_quiet = is_quiet
        self._node = reference_to_node(node_name)

    def warn(self, reason: str, message: str) -> None:
        """Send a Warning about the Node."""
        self._record(self._node, reason, message)

    def inform(self, reason: str, message: str) -> None:
        """Send an Event about the Node that nobody has to act on."""
        self._record(self._node, reason, message, EventType.NORMAL)

    def record_claim_failure(self, ref: ClaimRef, reason: str, message: str) -> None:
        """Send a Warning about a claim."""
        claim = ObjectReference(
            api_version="resource.k8s.io/v1",
            kind="ResourceClaim",
            namespace=ref.namespace,
            name=ref.name,
            uid=ref.uid,
        )
        self._record(claim, reason, message)

    def warn_pod(self, pod: PodRef, reason: str, message: str) -> None:
        """Send a Warning about a Pod."""
        target = ObjectReference(api_version="v1", kind="Pod", namespace=pod.namespace, name=pod.name, uid=pod.uid)
        self._record(target, reason, message)

    def _record(
        self, target: ObjectReference, reason: str, message: str, event_type: EventType = EventType.WARNING
    ) -> None:
        if self._is_quiet():
            return
        self._loop.call_soon_threadsafe(lambda: self._recorder.record(target, reason, message, type=event_type))
