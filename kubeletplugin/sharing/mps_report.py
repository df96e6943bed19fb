"""Tells Pods and claims what they must know of the MPS daemons that they use: one ended, or one Pod has two of them."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Protocol

import structlog

from dra_driver.api.config_v1alpha1 import Strategy
from dra_driver.api.resource_v1 import ResourceClaim
from dra_driver.errors import ApiError, ApiNotFoundError
from kubeletplugin.prepare.record import ClaimRecord, ClaimRef, ClaimState
from kubeletplugin.sharing.mps_state import DaemonChange

log = structlog.get_logger(__name__)

SEVERAL: Final = "SeveralMpsDaemons"

LOOK_INTERVAL_S: Final = 300.0
"""How often Pods are looked for that have claims which were prepared for others before."""


@dataclass(frozen=True, slots=True, order=True)
class PodRef:
    """A Pod that a claim is reserved for."""

    namespace: str
    name: str
    uid: str


class Claims(Protocol):
    """Where claims are read."""

    async def read_claim(self, ref: ClaimRef) -> ResourceClaim:
        """Return the claim as the API server has it now. Raises ApiError."""
        ...


class MpsReport:
    """Looks at the claims whose devices are shared by MPS.

    `changes` gives, once each, what happened to daemons; `warn_claim` and `warn_pod` send a Warning, by reason and
    message. `clock` gives seconds and never jumps.
    """

    def __init__(  # noqa: PLR0913 - what it works with, by keyword
        self,
        *,
        claims: Claims,
        records: Callable[[], Iterable[ClaimRecord]],
        changes: Callable[[], Iterable[DaemonChange]],
        warn_claim: Callable[[ClaimRef, str, str], None],
        warn_pod: Callable[[PodRef, str, str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._claims = claims
        self._records = records
        self._changes = changes
        self._warn_claim = warn_claim
        self._warn_pod = warn_pod
        self._clock = clock
        self._untold: list[tuple[ClaimRef, DaemonChange]] = []
        self._told: frozenset[tuple[PodRef, frozenset[ClaimRef]]] = frozenset()
        self._looked_at: frozenset[ClaimRef] = frozenset()
        self._next_look = clock()

    async def work(self) -> None:
        """Tell once what is new. What the API server does not answer for now is asked again."""
        devices = _read_devices(self._records())
        for change in self._changes():
            log.warning("MPS daemon lost", device=change.device, reason=change.reason, message=change.message)
            for ref in (ref for ref, names in devices.items() if change.device in names):
                self._warn_claim(ref, change.reason, change.message)
                self._untold.append((ref, change))
        await self._tell_pods()
        await self._tell_several(devices)

    async def _tell_pods(self) -> None:
        untold, self._untold = self._untold, []
        for ref, change in untold:
            pods = await self._read_pods(ref)
            if pods is None:
                self._untold.append((ref, change))
            for pod in pods or ():
                self._warn_pod(pod, change.reason, change.message)

    async def _tell_several(self, devices: dict[ClaimRef, frozenset[str]]) -> None:
        """Tell of Pods with claims of several daemons. Such a Pod is fine if no container of it has two of them."""
        if self._looked_at == devices.keys() and self._clock() < self._next_look:
            return
        found: defaultdict[PodRef, set[ClaimRef]] = defaultdict(set)
        for ref in _list_candidates(devices):
            pods = await self._read_pods(ref)
            if pods is None:
                return
            for pod in pods:
                found[pod].add(ref)
        several = frozenset(
            (pod, frozenset(refs))
            for pod, refs in found.items()
            if len(frozenset[str]().union(*(devices[ref] for ref in refs))) > 1
        )
        for pod, refs in sorted(several - self._told, key=lambda each: each[0]):
            self._warn_pod(pod, SEVERAL, _explain_several(refs, devices))
        self._told, self._looked_at, self._next_look = several, frozenset(devices), self._clock() + LOOK_INTERVAL_S

    async def _read_pods(self, ref: ClaimRef) -> tuple[PodRef, ...] | None:
        """Return the Pods that a claim is reserved for; None if nobody knows."""
        try:
            claim = await self._claims.read_claim(ref)
        except ApiNotFoundError:
            return ()
        except ApiError:
            return None
        if claim.metadata.uid != ref.uid:
            return ()
        users = claim.status.reserved_for
        return tuple(PodRef(ref.namespace, user.name, user.uid) for user in users if user.resource == "pods")


def _read_devices(records: Iterable[ClaimRecord]) -> dict[ClaimRef, frozenset[str]]:
    """Return the devices under MPS of each claim that has any."""
    found = {
        record.ref: frozenset(device.device for device in record.devices if device.strategy is Strategy.MPS)
        for record in records
        if record.state is ClaimState.COMPLETED
    }
    return {ref: devices for ref, devices in found.items() if devices}


def _list_candidates(devices: dict[ClaimRef, frozenset[str]]) -> tuple[ClaimRef, ...]:
    """List the claims that a Pod might have together with one of another daemon: those of its namespace."""
    in_namespace: defaultdict[str, set[str]] = defaultdict(set)
    for ref, names in devices.items():
        in_namespace[ref.namespace] |= names
    return tuple(ref for ref in devices if len(in_namespace[ref.namespace]) > 1)


def _explain_several(refs: Iterable[ClaimRef], devices: dict[ClaimRef, frozenset[str]]) -> str:
    parts = [f"{ref} (device {', '.join(sorted(devices[ref]))})" for ref in sorted(refs, key=str)]
    return (
        f"claims {' and '.join(parts)}: each device is shared by an MPS daemon of its own, and a container can be the"
        " client of one, want no container with several of these claims"
    )
