"""The ResourceClaim controller: makes claims from templates, and frees what Pods that are done leave behind."""

import asyncio
from collections import defaultdict

from dra_driver.api.core_v1 import Pod, PodResourceClaim, PodResourceClaimStatus
from dra_driver.api.resource_v1 import ResourceClaim, ResourceClaimConsumerReference
from dra_driver.errors import ApiNotFoundError
from dra_driver.kube.cache import Cache
from dra_driver.kube.client import ApiClient, Preconditions
from dra_driver.kube.event import EventRecorder, EventType, reference_to
from dra_driver.kube.resource import PODS, RESOURCE_CLAIMS, ObjectKey, key_of
from dra_driver.pod_claim import FINALIZER, is_live, is_made_for, is_reserved_for, refer_to
from sandbox.manager.claim_rule import build_claim, find_made_claim, list_claim_names, list_pod_keys, plan_release
from sandbox.manager.view import ClusterView
from sandbox.manager.work import Work


class ClaimController:
    """Someone runs `run`; the view and the recorder are run by others."""

    def __init__(self, client: ApiClient, view: ClusterView, recorder: EventRecorder) -> None:
        self._client = client
        self._view = view
        self._recorder = recorder
        self._pods: Work[ObjectKey] = Work("pods", self._sync_pod)
        self._claims: Work[ObjectKey] = Work("claims", self._sync_claim)
        self._claims_of: defaultdict[ObjectKey, set[ObjectKey]] = defaultdict(set)
        self._pods_of: dict[ObjectKey, frozenset[ObjectKey]] = {}

    async def run(self) -> None:
        """Follow Pods, claims and templates until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow_pods())
            tasks.create_task(self._follow_claims())
            tasks.create_task(self._follow_templates())
            await self._view.synced()
            tasks.create_task(self._pods.run())
            tasks.create_task(self._claims.run())

    async def _follow_pods(self) -> None:
        with self._view.pods.subscribe() as subscription:
            async for keys in subscription:
                for key in keys:
                    self._pods.add(key)
                    for claim in self._claims_of.get(key, ()):
                        self._claims.add(claim)

    async def _follow_claims(self) -> None:
        with self._view.claims.subscribe() as subscription:
            async for keys in subscription:
                for key in keys:
                    self._index(key)
                    self._claims.add(key)
                    for pod in self._pods_of.get(key, ()):
                        self._pods.add(pod)

    async def _follow_templates(self) -> None:
        """Let Pods that lack a claim look again: the template that was missing may be there."""
        with self._view.templates.subscribe() as subscription:
            async for _ in subscription:
                for pod in self._view.pods.list():
                    if None in list_claim_names(pod).values():
                        self._pods.add(key_of(pod))

    def _index(self, key: ObjectKey) -> None:
        claim = self._view.claims.get(key.name, key.namespace)
        pods = list_pod_keys(claim) if claim is not None else frozenset()
        for pod in self._pods_of.get(key, frozenset()) - pods:
            self._claims_of[pod].discard(key)
            if not self._claims_of[pod]:
                del self._claims_of[pod]
        for pod in pods:
            self._claims_of[pod].add(key)
        self._pods_of[key] = pods
        if not pods:
            del self._pods_of[key]

    async def _sync_pod(self, key: ObjectKey) -> None:
        """Make the claims that a Pod lacks, and reserve claims of a Pod that did not come by the scheduler."""
        pod = self._view.pods.get(key.name, key.namespace)
        if pod is None or not is_live(pod) or pod.metadata.deletion_timestamp is not None:
            return
        made = {}
        for entry in pod.spec.resource_claims:
            if entry.resource_claim_template_name is not None:
                name = await self._ensure_claim(pod, entry)
                if name is None:
                    return
                made[entry.name] = name
        have = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
        if made.items() - have.items():
            statuses = [PodResourceClaimStatus(name=name, resource_claim_name=claim) for name, claim in made.items()]
            patch = {"metadata": {"uid": pod.metadata.uid}, "status": {"resourceClaimStatuses": statuses}}
            written = await self._client.patch(PODS, key.name, patch, namespace=key.namespace, subresource="status")
            self._view.pods.record_write(written)
        elif pod.spec.node_name:
            await self._reserve(pod)

    async def _ensure_claim(self, pod: Pod, entry: PodResourceClaim) -> str | None:
        found = find_made_claim(pod, entry, self._view.claims.list())
        if found is not None:
            return found.metadata.name
        template = self._view.templates.get(entry.resource_claim_template_name or "", pod.metadata.namespace)
        if template is None:
            message = f"claim {entry.name!r}: no template {entry.resource_claim_template_name!r}, want it created"
            self._recorder.record(reference_to(pod), "FailedResourceClaimCreation", message, type=EventType.WARNING)
            return None
        claim = await self._client.create(RESOURCE_CLAIMS, build_claim(pod, entry, template))
        self._view.claims.record_write(claim)
        return claim.metadata.name

    async def _reserve(self, pod: Pod) -> None:
        for name in list_claim_names(pod).values():
            claim = self._view.claims.get(name or "", pod.metadata.namespace)
            if claim is None or claim.status.allocation is None or claim.metadata.deletion_timestamp is not None:
                continue
            if not is_reserved_for(claim, pod):
                await self._write_status(claim, {"reservedFor": [*claim.status.reserved_for, refer_to(pod)]})

    async def _sync_claim(self, key: ObjectKey) -> None:
        """Free a claim of the Pods that are done, and delete it with the one that it was made for."""
        claim = self._view.claims.get(key.name, key.namespace)
        if claim is None:
            return
        users = tuple([user for user in claim.status.reserved_for if await self._is_user(claim, user)])
        change = plan_release(claim, users)
        if change is not None:
            claim = await self._write_status(claim, change)
        is_free = not users and claim.status.allocation is None
        if is_free and FINALIZER in claim.metadata.finalizers and (change or claim.metadata.deletion_timestamp):
            claim = await self._drop_finalizer(claim)
        if not users and claim.metadata.deletion_timestamp is None:
            await self._delete_if_owner_done(claim)

    async def _is_user(self, claim: ResourceClaim, user: ResourceClaimConsumerReference) -> bool:
        """Tell whether the Pod still uses, or will use, the claim. What is no Pod is left to who reserved it."""
        if user.resource != "pods" or user.api_group:
            return True
        pod = self._view.pods.get(user.name, claim.metadata.namespace)
        if pod is None or pod.metadata.uid != user.uid:
            try:  # the cache may not know it yet
                pod = await self._client.get(PODS, user.name, namespace=claim.metadata.namespace)
            except ApiNotFoundError:
                return False
        return pod.metadata.uid == user.uid and is_live(pod)

    async def _delete_if_owner_done(self, claim: ResourceClaim) -> None:
        for key in list_pod_keys(claim):
            pod = self._view.pods.get(key.name, key.namespace)
            if pod is not None and is_made_for(claim, pod) and not is_live(pod):
                same = Preconditions(uid=claim.metadata.uid)
                metadata = claim.metadata
                await self._client.delete(
                    RESOURCE_CLAIMS, metadata.name, namespace=metadata.namespace, preconditions=same
                )

    async def _write_status(self, claim: ResourceClaim, status: object) -> ResourceClaim:
        patch = {"metadata": _version(claim), "status": status}
        return await self._patch(claim, patch, "status")

    async def _drop_finalizer(self, claim: ResourceClaim) -> ResourceClaim:
        left = [each for each in claim.metadata.finalizers if each != FINALIZER]
        return await self._patch(claim, {"metadata": {**_version(claim), "finalizers": left or None}})

    async def _patch(self, claim: ResourceClaim, patch: object, subresource: str = "") -> ResourceClaim:
        metadata = claim.metadata
        written = await self._client.patch(
            RESOURCE_CLAIMS, metadata.name, patch, namespace=metadata.namespace, subresource=subresource
        )
        _record(self._view.claims, written)
        return written


def _version(claim: ResourceClaim) -> dict[str, str]:
    return {"uid": claim.metadata.uid, "resourceVersion": claim.metadata.resource_version}


def _record(cache: Cache[ResourceClaim], written: ResourceClaim) -> None:
    """Show a write. What lost its last finalizer while being deleted is gone, and the watch says so."""
    if written.metadata.deletion_timestamp is None or written.metadata.finalizers:
        cache.record_write(written)
