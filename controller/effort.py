"""Trying harder where the search for devices was given up: with larger budgets, in a thread, one Pod after the other.

What is found is a hint. It is taken only if the node is still as it was when the search began.
"""

import asyncio
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import structlog

from controller.allocator import Allocated, AllocationError, Answer, Policy, Problem, Undecided, allocate
from controller.decision import Refuse
from controller.node_search import with_policy
from controller.state import State
from dra_driver.api.core_v1 import Pod
from dra_driver.api.resource_v1 import AllocationResult, ResourceClaim
from dra_driver.kube.resource import ObjectKey, key_of

log = structlog.get_logger(__name__)

FACTORS: Final = (10, 50)
"""By how much larger the budgets are."""

_NODES_MAX: Final = 16


@dataclass(frozen=True, slots=True)
class Hint:
    """An allocation that fits on `node` as long as that has `version`."""

    node: str
    version: object
    allocations: tuple[tuple[ResourceClaim, AllocationResult], ...]


@dataclass(slots=True, eq=False)
class Effort:
    """Searches for Pods that were added, as long as someone runs `run`; `found` is told of those with a hint."""

    state: State
    policy: Policy
    budget: int
    found: Callable[[ObjectKey], None]
    hints: dict[ObjectKey, Hint] = field(default_factory=dict)
    _waiting: dict[ObjectKey, tuple[Pod, Refuse]] = field(default_factory=dict)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _failed: dict[ObjectKey, dict[str, object]] = field(default_factory=dict)

    def add(self, pod: Pod, refusal: Refuse) -> None:
        """Search for a Pod on the nodes that are undecided."""
        self._waiting[key_of(pod)] = (pod, refusal)
        self._wake.set()

    def forget(self, key: ObjectKey) -> None:
        """Search for a Pod no more."""
        for each in (self._waiting, self.hints, self._failed):
            each.pop(key, None)

    def clear(self) -> None:
        """Forget all."""
        for each in (self._waiting, self.hints, self._failed):
            each.clear()

    async def run(self) -> None:
        """Search until cancelled."""
        while True:
            while not self._waiting:
                self._wake.clear()
                await self._wake.wait()
            key = next(iter(self._waiting))
            pod, refusal = self._waiting.pop(key)
            hint = await self._search(key, refusal)
            if hint is not None and key_of(pod) in self.state.pods:
                self.hints[key] = hint
                self.found(key)

    async def _search(self, key: ObjectKey, refusal: Refuse) -> Hint | None:
        failed = self._failed.setdefault(key, {})
        tried = 0
        for factor in FACTORS:
            for node in refusal.undecided[:_NODES_MAX]:
                version = self.state.version_of(node)
                if version is None or failed.get(node) == version:
                    continue
                tried += 1
                answer = await asyncio.to_thread(_answer, self._ask(refusal.claims, node, self.budget * factor))
                if isinstance(answer, Allocated):
                    return Hint(node, version, tuple(zip(refusal.claims, answer.results, strict=True)))
                if not isinstance(answer, Undecided) or factor == FACTORS[-1]:
                    failed[node] = version
        if tried:
            log.info("devices not found with the largest budget", pod=str(key), nodes=len(refusal.undecided))
        return None

    def _ask(self, claims: tuple[ResourceClaim, ...], node: str, budget: int) -> Problem:
        """Put the question together from objects that never change, so that a thread may answer it."""
        state = self.state
        return Problem(
            node=state.own.nodes[node],
            claims=[with_policy(claim, self.policy) for claim in claims],
            slices=state.offer.list(state.own.relied_pools(node)),
            classes=dict(state.classes),
            allocated=state.list_allocated(),
            taint_rules=tuple(state.rules.values()),
            features=state.features,
            policy=None,
            budget=budget,
            new_share_id=lambda: str(uuid.uuid4()),
        )


def _answer(problem: Problem) -> Answer | None:
    try:
        return allocate(problem)
    except AllocationError:
        return None
