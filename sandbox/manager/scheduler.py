"""The scheduler of the sandbox: puts Pods without a gate on the first node where they and all their claims fit.

It writes what kube-scheduler writes, in its order: finalizer, allocation with reservation, binding; or the condition
that says why not. Whatever is half done is taken up again, since the next look begins with what is written.
"""

import asyncio
import uuid
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
import structlog

from controller.allocator import AllocationError, CelCompiler, Cluster, Placed, SelectorCache, summarize
from controller.allocator.node_selection import matches_selector
from controller.placement import Requested, find_misfit
from controller.pod_claim import find_claims, find_keys
from dra_driver.api.allocation_validation import RESERVED_FOR_MAX
from dra_driver.api.core_v1 import Node, NodeSelector, Pod, PodCondition
from dra_driver.api.meta_v1 import render_time
from dra_driver.api.resource_v1 import AllocationResult, ResourceClaim
from dra_driver.errors import ApiConflictError, ApiError, ApiNotFoundError
from dra_driver.kube.cache import Cache
from dra_driver.kube.client import ApiClient
from dra_driver.kube.event import EventRecorder, EventType, reference_to
from dra_driver.kube.resource import PODS, RESOURCE_CLAIMS, key_of
from dra_driver.pod_claim import FINALIZER, is_live, is_reserved_for, refer_to
from sandbox.manager.view import ClusterView

log = structlog.get_logger(__name__)

NAMES: Final = ("", "default-scheduler")
_SCHEDULED: Final = "PodScheduled"
_SETTLE_S: Final = 0.005
_RETRY_S: Final = 0.2


class UnschedulableError(Exception):
    """Why a Pod cannot be put anywhere now."""


class Scheduler:
    """Someone runs `run`; the view and the recorder are run by others."""

    def __init__(
        self,
        client: ApiClient,
        view: ClusterView,
        recorder: EventRecorder,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        new_share_id: Callable[[], str] = lambda: str(uuid.uuid4()),
    ) -> None:
        self._client = client
        self._view = view
        self._recorder = recorder
        self._clock = clock
        self._cluster = Cluster(SelectorCache(CelCompiler()), new_share_id)
        self._bound: dict[str, str] = {}
        self._wake = asyncio.Event()

    async def run(self) -> None:
        """Schedule until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow(self._view.nodes, self._cluster.set_node, self._cluster.remove_node))
            tasks.create_task(self._follow(self._view.classes, self._cluster.set_class, self._cluster.remove_class))
            tasks.create_task(self._follow(self._view.slices, self._cluster.set_slice, self._cluster.remove_slice))
            tasks.create_task(self._follow(self._view.claims, self._cluster.set_claim, self._cluster.remove_claim))
            tasks.create_task(
                self._follow(self._view.taint_rules, self._cluster.set_taint_rule, self._cluster.remove_taint_rule)
            )
            tasks.create_task(self._follow(self._view.pods, lambda _: None, lambda _: None))
            await self._view.synced()
            while True:
                await self._wake.wait()
                await asyncio.sleep(_SETTLE_S)
                self._wake.clear()
                await self._schedule_all()

    async def _follow(self, cache: Cache[Any], put: Callable[[Any], None], remove: Callable[[str], None]) -> None:
        with cache.subscribe() as subscription:
            for value in cache.list():
                put(value)
            self._wake.set()
            async for keys in subscription:
                for key in keys:
                    value = cache.get(key.name, key.namespace)
                    if value is None:
                        remove(str(key))
                    else:
                        put(value)
                self._wake.set()

    async def _schedule_all(self) -> None:
        """Try every Pod that waits, the oldest first."""
        pods = self._view.pods.list()
        self._bound = {
            pod.metadata.uid: self._bound[pod.metadata.uid]
            for pod in pods
            if pod.metadata.uid in self._bound and not pod.spec.node_name
        }
        waiting = [pod for pod in pods if self._is_waiting(pod)]
        if not waiting:
            return
        requested = self._sum_requested(pods)
        for pod in sorted(waiting, key=lambda pod: (pod.metadata.creation_timestamp or "", pod.metadata.name)):
            try:
                await self._schedule_or_tell(pod, requested)
            except ApiError as error:
                log.info("pod put off", pod=f"{pod.metadata.namespace}/{pod.metadata.name}", error=str(error))
                asyncio.get_running_loop().call_later(_RETRY_S, self._wake.set)

    async def _schedule_or_tell(self, pod: Pod, requested: dict[str, Requested]) -> None:
        try:
            await self._schedule(pod, requested)
        except UnschedulableError as error:
            await self._tell(pod, str(error))

    def _is_waiting(self, pod: Pod) -> bool:
        return (
            not pod.spec.node_name
            and not pod.spec.scheduling_gates
            and pod.spec.scheduler_name in NAMES
            and pod.metadata.deletion_timestamp is None
            and pod.metadata.uid not in self._bound
            and is_live(pod)
        )

    def _sum_requested(self, pods: Iterable[Pod]) -> dict[str, Requested]:
        requested = {name: Requested() for name in self._cluster.nodes}
        for pod in pods:
            node = pod.spec.node_name or self._bound.get(pod.metadata.uid, "")
            if node in requested:
                requested[node].add(pod)
        return requested

    async def _schedule(self, pod: Pod, requested: dict[str, Requested]) -> None:
        """Find a node, write what it means for the claims, and bind. Raises UnschedulableError and ApiError."""
        claims = self._find_claims(pod)
        node, results = self._place(pod, claims, requested)
        for claim in claims:
            await self._reserve(pod, claim, results.get(claim.metadata.uid))
        metadata = pod.metadata
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": metadata.name, "uid": metadata.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        await self._client.create_subresource(PODS, metadata.name, "binding", binding, namespace=metadata.namespace)
        self._bound[metadata.uid] = node
        requested[node].add(pod)
        message = f"Successfully assigned {metadata.namespace}/{metadata.name} to {node}"
        self._recorder.record(reference_to(pod), "Scheduled", message)
        log.info("pod bound", pod=f"{metadata.namespace}/{metadata.name}", node=node)

    def _find_claims(self, pod: Pod) -> tuple[ResourceClaim, ...]:
        """Find the Pod's claims, all of which must be there and free for it. Raises UnschedulableError."""
        there = {key: self._view.claims.get(key.name, key.namespace) for key in find_keys(pod)}
        found = find_claims(pod, {key: claim for key, claim in there.items() if claim is not None})
        problems = list(found.missing)
        for claim in found.claims:
            if claim.metadata.deletion_timestamp is not None:
                problems.append(f"claim {key_of(claim)}: is being deleted")
            elif not is_reserved_for(claim, pod) and len(claim.status.reserved_for) >= RESERVED_FOR_MAX:
                problems.append(f"claim {key_of(claim)}: used by {RESERVED_FOR_MAX} pods already, want fewer")
        if problems:
            raise UnschedulableError("; ".join(problems))
        return found.claims

    def _place(
        self, pod: Pod, claims: Sequence[ResourceClaim], requested: dict[str, Requested]
    ) -> tuple[str, dict[str, AllocationResult]]:
        """Choose a node, and what each claim that is not allocated gets there. Raises UnschedulableError."""
        misfits: list[tuple[str, str]] = []
        fitting = []
        for name in sorted(self._cluster.nodes):
            held = requested.setdefault(name, Requested())
            problem = self._find_problem(pod, self._cluster.nodes[name], claims, held)
            if problem is None:
                fitting.append(name)
            else:
                misfits.append((name, problem))
        wanted = [claim for claim in claims if claim.status.allocation is None]
        if fitting and not wanted:
            return fitting[0], {}
        try:
            answer = self._cluster.place(wanted, fitting)
        except AllocationError as error:
            raise UnschedulableError(str(error)) from error
        if isinstance(answer, Placed):
            results = {claim.metadata.uid: result for claim, result in zip(wanted, answer.answer.results, strict=True)}
            return answer.node, results
        raise UnschedulableError(self._explain(wanted, fitting, misfits))

    def _explain(
        self, claims: Sequence[ResourceClaim], fitting: Sequence[str], misfits: Sequence[tuple[str, str]]
    ) -> str:
        """Say why no node will do, which takes much longer than to see that none will."""
        reason = summarize(self._cluster.explain(claims, fitting), misfits)
        return f"0/{len(self._cluster.nodes)} nodes are available: {reason}"

    def _find_problem(self, pod: Pod, node: Node, claims: Sequence[ResourceClaim], requested: Requested) -> str | None:
        """Say what keeps the Pod off a node, apart from claims that are not allocated yet."""
        misfit = find_misfit(pod, node, requested)
        if misfit is not None:
            return misfit.message
        for claim in claims:
            allocation = claim.status.allocation
            selector = allocation.node_selector if allocation is not None else None
            if selector is not None and not _matches(selector, node):
                return f"claim {claim.metadata.name!r}: allocated on another node"
        return None

    async def _reserve(self, pod: Pod, claim: ResourceClaim, result: AllocationResult | None) -> None:
        """Allocate a claim and reserve it for the Pod, or only reserve it."""
        if is_reserved_for(claim, pod):
            return
        status: dict[str, Any] = {"reservedFor": [*claim.status.reserved_for, refer_to(pod)]}
        if result is not None:
            status["allocation"] = msgspec.structs.replace(result, allocation_timestamp=self._now())
            if FINALIZER not in claim.metadata.finalizers:
                finalizers = [*claim.metadata.finalizers, FINALIZER]
                claim = await self._patch(claim, {"metadata": {"finalizers": finalizers}})
        await self._patch(claim, {"status": status}, "status")

    async def _patch(self, claim: ResourceClaim, patch: dict[str, Any], subresource: str = "") -> ResourceClaim:
        """Patch a claim that is still as it was. What is written counts at once."""
        metadata = claim.metadata
        same = {"uid": metadata.uid, "resourceVersion": metadata.resource_version}
        patch = {**patch, "metadata": {**patch.get("metadata", {}), **same}}
        written = await self._client.patch(
            RESOURCE_CLAIMS, metadata.name, patch, namespace=metadata.namespace, subresource=subresource
        )
        self._view.claims.record_write(written)
        self._cluster.set_claim(written)
        return written

    async def _tell(self, pod: Pod, message: str) -> None:
        """Say in the Pod's condition, and in an Event, why it waits, unless that is known."""
        known = {condition.type: condition for condition in pod.status.conditions}
        scheduled = known.get(_SCHEDULED)
        if scheduled is not None and scheduled.status == "False" and scheduled.message == message:
            return
        since = scheduled.last_transition_time if scheduled is not None and scheduled.status == "False" else None
        refusal = PodCondition(
            type=_SCHEDULED,
            status="False",
            reason="Unschedulable",
            message=message,
            last_transition_time=since or self._now(),
        )
        metadata = pod.metadata
        others = [condition for condition in pod.status.conditions if condition.type != _SCHEDULED]
        patch = {
            "metadata": {"uid": metadata.uid, "resourceVersion": metadata.resource_version},
            "status": {"conditions": [*others, refusal]},
        }
        try:
            written = await self._client.patch(
                PODS, metadata.name, patch, namespace=metadata.namespace, subresource="status"
            )
        except (ApiNotFoundError, ApiConflictError):  # the watch tells, and it is looked at again
            return
        self._view.pods.record_write(written)
        self._recorder.record(reference_to(pod), "FailedScheduling", message, type=EventType.WARNING)
        log.info("pod does not fit", pod=f"{metadata.namespace}/{metadata.name}", reason=message)

    def _now(self) -> str:
        return render_time(self._clock())


def _matches(selector: NodeSelector, node: Node) -> bool:
    try:
        return matches_selector(node, selector, "allocation")
    except AllocationError:
        return False
