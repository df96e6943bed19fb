"""What the plugin asks of the API server, and what it tells there: the edge between this process and the cluster."""

import asyncio

from dra_driver.api.core_v1 import ObjectReference
from dra_driver.api.resource_v1 import ResourceClaim
from dra_driver.kube.client import ApiClient
from dra_driver.kube.event import EventRecorder, EventType, reference_to_node
from dra_driver.kube.resource import RESOURCE_CLAIMS
from kubeletplugin.prepare.record import ClaimRef


class Claims:
    """Reads claims, never from a cache: what is prepared must be what is allocated now."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    async def read_claim(self, ref: ClaimRef) -> ResourceClaim:
        """Return the claim as the API server has it now. Raises ApiError."""
        return await self._client.get(RESOURCE_CLAIMS, ref.name, namespace=ref.namespace)


class Events:
    """Tells people: of a claim on the claim, of the node's devices on the Node. May be called from any thread."""

    def __init__(self, recorder: EventRecorder, node_name: str, loop: asyncio.AbstractEventLoop) -> None:
        self._recorder = recorder
        self._loop = loop
        self._node = reference_to_node(node_name)

    def warn(self, reason: str, message: str) -> None:
        """Send a Warning about the Node."""
        self._record(self._node, reason, message)

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

    def _record(self, target: ObjectReference, reason: str, message: str) -> None:
        self._loop.call_soon_threadsafe(
            lambda: self._recorder.record(target, reason, message, type=EventType.WARNING)
        )  # fmt: skip
