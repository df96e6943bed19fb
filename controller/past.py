"""What happened to a Pod before, as far as it matters for the next decision about it. It is not kept over a restart."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from controller.ownership import is_gated
from dra_driver.api.core_v1 import Pod
from dra_driver.api.resource_v1 import ResourceClaim
from dra_driver.kube.resource import ObjectKey, key_of


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

    def note_refusal(self, pod: Pod, until: float) -> str:
        """Note that kube-scheduler took back what we had written; give the node, to be avoided `until`, if it did.

        The Pod has a claim that is not allocated.
        """
        past = self._of(pod)
        if is_gated(pod) or not past.node:
            return ""
        node, past.node = past.node, ""
        past.avoided[node] = until
        return node

    def find_avoided(self, pod: Pod, now: float) -> frozenset[str]:
        """Give the nodes that kube-scheduler refused for the Pod a while ago."""
        past = self._of(pod)
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
