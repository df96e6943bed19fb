"""Garbage collection: claims go with the Pods, and slices with the Nodes, that own them; Pods with their Node.

Source: the garbage collector and the Pod garbage collector of kube-controller-manager. An owner that the cache does
not know is asked for at the API server before anything is deleted.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import structlog

from dra_driver.api.meta_v1 import OwnerReference
from dra_driver.errors import ApiNotFoundError
from dra_driver.kube.cache import Cache
from dra_driver.kube.client import ApiClient, Preconditions
from dra_driver.kube.resource import (
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    KubernetesObject,
    ObjectKey,
    Resource,
    key_of,
)
from sandbox.manager.view import ClusterView
from sandbox.manager.work import Work

log = structlog.get_logger(__name__)

_OWNERS: Final[dict[tuple[str, str], Resource[Any]]] = {("v1", "Pod"): PODS, ("v1", "Node"): NODES}


@dataclass(frozen=True, slots=True)
class _Dependent:
    resource: Resource[Any]
    key: ObjectKey


class GarbageCollector:
    """Someone runs `run`; the view is run by others."""

    def __init__(self, client: ApiClient, view: ClusterView) -> None:
        self._client = client
        self._view = view
        self._dependents: tuple[tuple[Resource[Any], Cache[Any]], ...] = (
            (RESOURCE_CLAIMS, view.claims),
            (RESOURCE_SLICES, view.slices),
        )
        self._work: Work[_Dependent] = Work("garbage", self._collect)
        self._orphans: Work[ObjectKey] = Work("orphaned pods", self._collect_pod)

    async def run(self) -> None:
        """Follow owners and what they own until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            await self._view.synced()
            for resource, cache in self._dependents:
                tasks.create_task(self._follow(resource, cache))
            tasks.create_task(self._follow_owners("Pod", self._view.pods))
            tasks.create_task(self._follow_owners("Node", self._view.nodes))
            tasks.create_task(self._work.run())
            tasks.create_task(self._orphans.run())

    async def _follow(self, resource: Resource[Any], cache: Cache[Any]) -> None:
        with cache.subscribe() as subscription:
            for value in cache.list():
                self._add(resource, value)
            async for keys in subscription:
                for key in keys:
                    if (value := cache.get(key.name, key.namespace)) is not None:
                        self._add(resource, value)

    def _add(self, resource: Resource[Any], value: KubernetesObject) -> None:
        if value.metadata.owner_references and value.metadata.deletion_timestamp is None:
            self._work.add(_Dependent(resource, key_of(value)))

    async def _follow_owners(self, kind: str, cache: Cache[Any]) -> None:
        """Look at what an owner that is gone, or was replaced by another, owned."""
        with cache.subscribe() as subscription:
            known = {key_of(value): value.metadata.uid for value in cache.list()}
            async for keys in subscription:
                values = ((key, cache.get(key.name, key.namespace)) for key in keys)
                seen = {key: value.metadata.uid if value is not None else None for key, value in values}
                gone = find_gone(known, seen)
                for key in gone:
                    known.pop(key, None)
                known |= {key: uid for key, uid in seen.items() if uid is not None}
                if gone:
                    self._look_at_owned(kind, gone)
                    self._look_at_bound(kind, gone)

    def _look_at_owned(self, kind: str, gone: set[ObjectKey]) -> None:
        for resource, cache in self._dependents:
            for value in cache.list():
                namespace = value.metadata.namespace if kind == "Pod" else ""
                owners = {ObjectKey(namespace, owner.name) for owner in value.metadata.owner_references}
                if owners & gone:
                    self._add(resource, value)

    def _look_at_bound(self, kind: str, gone: set[ObjectKey]) -> None:
        if kind == "Node":
            for pod in self._view.pods.list():
                if ObjectKey("", pod.spec.node_name) in gone:
                    self._orphans.add(key_of(pod))

    async def _collect(self, dependent: _Dependent) -> None:
        """Delete an object if all of its owners are gone."""
        resource, key = dependent.resource, dependent.key
        cache = next(cache for each, cache in self._dependents if each is resource)
        value = cache.get(key.name, key.namespace)
        if value is None or value.metadata.deletion_timestamp is not None or not value.metadata.owner_references:
            return
        for owner in value.metadata.owner_references:
            if await self._is_there(owner, key.namespace):
                return
        log.info("garbage collected", resource=resource.plural, object=str(key))
        same = Preconditions(uid=value.metadata.uid)
        await self._delete(resource, key, same, None)

    async def _is_there(self, owner: OwnerReference, namespace: str) -> bool:
        resource = _OWNERS.get((owner.api_version, owner.kind))
        if resource is None:  # of a kind that is not looked after here
            return True
        cache: Cache[Any] = self._view.pods if resource is PODS else self._view.nodes
        namespace = namespace if resource.namespaced else ""
        known = cache.get(owner.name, namespace)
        if known is not None and known.metadata.uid == owner.uid:
            return True
        try:
            found: KubernetesObject = await self._client.get(resource, owner.name, namespace=namespace)
        except ApiNotFoundError:
            return False
        return found.metadata.uid == owner.uid

    async def _collect_pod(self, key: ObjectKey) -> None:
        """Delete a Pod whose Node is gone: no kubelet will."""
        pod = self._view.pods.get(key.name, key.namespace)
        if pod is None:
            return
        try:
            await self._client.get(NODES, pod.spec.node_name)
        except ApiNotFoundError:
            await self._delete(PODS, key, Preconditions(uid=pod.metadata.uid), 0)

    async def _delete(
        self, resource: Resource[Any], key: ObjectKey, same: Preconditions, grace_period_s: int | None
    ) -> None:
        with contextlib.suppress(ApiNotFoundError):
            await self._client.delete(
                resource, key.name, namespace=key.namespace, preconditions=same, grace_period_s=grace_period_s
            )


def find_gone(known: Mapping[ObjectKey, str], seen: Mapping[ObjectKey, str | None]) -> set[ObjectKey]:
    """Find the owners that are not there any more, by their UIDs before and now; pure.

    One that was deleted and made again at once is seen only as another UID under the same name.
    """
    return {key for key, uid in seen.items() if uid is None or known.get(key, uid) != uid}
