"""Follows the API server: every change of what is watched goes into the state at once, and is told on."""

import asyncio
import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import structlog

from controller.state import Effect, State
from dra_driver.api.core_v1 import Node, Pod
from dra_driver.api.resource_v1 import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from dra_driver.errors import ApiForbiddenError, ApiNotFoundError, ApiUnavailableError
from dra_driver.kube.cache import Cache
from dra_driver.kube.client import ApiClient
from dra_driver.kube.resource import (
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    ObjectKey,
    Resource,
    Selection,
    T,
)
from dra_driver.kube.view import Keys
from dra_driver.kube.watch import Watch, WatchTiming

log = structlog.get_logger(__name__)

_PROBE_S = 300.0
_NO_OBJECT = Selection(field_selector="metadata.name=none")


@dataclass(slots=True, eq=False)
class Caches:
    """What is watched."""

    nodes: Cache[Node]
    slices: Cache[ResourceSlice]
    classes: Cache[DeviceClass]
    claims: Cache[ResourceClaim]
    pods: Cache[Pod]
    rules: Cache[DeviceTaintRule]


class Follower:
    """Keeps `state` as the API server has it. Someone runs `run`; `notice` hears of every change."""

    def __init__(self, client: ApiClient, state: State, notice: Callable[[Effect], None], timing: WatchTiming) -> None:
        self._client = client
        self._notice = notice
        self._timing = timing
        self.caches = Caches(
            nodes=self._cache(NODES, lambda key, node: state.set_node(key.name, node)),
            slices=self._cache(RESOURCE_SLICES, lambda key, slice_: state.set_slice(key.name, slice_)),
            classes=self._cache(DEVICE_CLASSES, lambda key, device_class: state.set_class(key.name, device_class)),
            claims=self._cache(RESOURCE_CLAIMS, state.set_claim),
            pods=self._cache(PODS, state.set_pod),
            rules=self._cache(DEVICE_TAINT_RULES, lambda key, rule: state.set_rule(key.name, rule)),
        )
        self._has_rules: bool | None = None
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Follow until cancelled."""
        caches = self.caches
        async with asyncio.TaskGroup() as tasks:
            followed = {
                "nodes": caches.nodes.run(),
                "resourceslices": caches.slices.run(),
                "deviceclasses": caches.classes.run(),
                "resourceclaims": caches.claims.run(),
                "pods": caches.pods.run(),
                "devicetaintrules": self._follow_rules(),
            }
            self._tasks = {name: tasks.create_task(coroutine) for name, coroutine in followed.items()}

    async def synced(self) -> None:
        """Wait until everything was listed once."""
        while self.find_missing():  # noqa: ASYNC110 - six caches and a probe, asked rarely
            await asyncio.sleep(0.01)

    def find_dead(self) -> tuple[str, ...]:
        """Give what is not followed any more. An API server that is away does not count: it is waited for."""
        return tuple(name for name, task in self._tasks.items() if task.done())

    def find_missing(self) -> tuple[str, ...]:
        """Give what was not listed yet."""
        caches = self.caches
        known = {
            "nodes": caches.nodes.is_synced,
            "resourceslices": caches.slices.is_synced,
            "deviceclasses": caches.classes.is_synced,
            "resourceclaims": caches.claims.is_synced,
            "pods": caches.pods.is_synced,
            "devicetaintrules": self._has_rules is False or caches.rules.is_synced,
        }
        return tuple(name for name, is_known in known.items() if not is_known)

    def _cache(self, resource: Resource[T], take: Callable[[ObjectKey, T | None], Effect]) -> Cache[T]:
        cache = Cache(Watch(self._client, resource, timing=self._timing))

        def absorb(keys: Keys) -> None:
            effects = [take(key, cache.get(key.name, key.namespace)) for key in sorted(keys)]
            pods = frozenset[ObjectKey]().union(*(effect.pods for effect in effects))
            self._notice(Effect(pods, may_help=any(effect.may_help for effect in effects)))

        cache.listen(absorb)
        return cache

    async def _follow_rules(self) -> None:
        """Follow taint rules where the API server has that kind; where not, look again from time to time."""
        following: Coroutine[Any, Any, None] | None = None
        failures = 0
        while following is None:
            try:
                await self._client.list(DEVICE_TAINT_RULES, _NO_OBJECT)
            except (ApiNotFoundError, ApiForbiddenError) as error:
                if self._has_rules is None:
                    log.info("device taint rules not followed", error=str(error))
                self._has_rules = False
                await asyncio.sleep(_PROBE_S)
            except ApiUnavailableError as error:
                delay_s = self._timing.backoff.delay_s(failures, random.random())  # noqa: S311 - no secret
                failures += 1
                log.warning("device taint rules not asked for", error=str(error), retry_in_s=round(delay_s, 3))
                await asyncio.sleep(delay_s)
            else:
                following = self.caches.rules.run()
        await following
