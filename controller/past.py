"""What happened to a Pod before, as far as it matters for the next decision about it. It is not kept over a restart."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import structlog

from controller.ownership import is_gated
from dra_driver.api.core_v1 import Pod
from dra_driver.api.resource_v1 import ResourceClaim
from dra_driver.kube.resource import ObjectKey, key_of

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Past:
    uid: str
    node: str = ""
    avoided: dict[str, float] = field(default_factory=dict)
    partial: tuple[tuple[str, ...], float] | None = None


class Pasts:
    """The pasts of Pods; `now` is monotonic seconds."""

    def __init__(self) -> None:
        self._pasts: dict[ObjectKey, _Past] = {}

    def place(self, pod: Pod, node: str) -> None:
        """Note that the Pod's claims are written for a node; empty: they are not any more, and by ourselves."""
        self._of(pod).node = node

    def find_avoided(self, pod: Pod, now: float, avoid_s: float, *, has_unallocated: bool) -> frozenset[str]:
        """Give the nodes that kube-scheduler refused for the Pod: it took an allocation back that we had written."""
        past = self._of(pod)
        if past.node and has_unallocated and not is_gated(pod):
            log.info("kube-scheduler took an allocation back", pod=str(key_of(pod)), node=past.node)
            past.avoided[past.node] = now + avoid_s
            past.node = ""
        past.avoided = {name: until for name, until in past.avoided.items() if until > now}
        return frozenset(past.avoided)

    def unchanged_s(self, pod: Pod, claims: Sequence[ResourceClaim], now: float) -> float:
        """Give for how long claims have been as they are, as far as that was asked before."""
        past = self._of(pod)
        versions = tuple(claim.metadata.resource_version for claim in claims)
        if past.partial is None or past.partial[0] != versions:
            past.partial = (versions, now)
        return now - past.partial[1]

    def forget(self, key: ObjectKey) -> None:
        """Forget a Pod."""
        self._pasts.pop(key, None)

    def clear(self) -> None:
        """Forget all."""
        self._pasts.clear()

    def _of(self, pod: Pod) -> _Past:
        past = self._pasts.get(key_of(pod))
        if past is None or past.uid != pod.metadata.uid:
            past = self._pasts[key_of(pod)] = _Past(pod.metadata.uid)
        return past
