"""Who may lead by a Lease, and what to write into it: the rules of client-go's leader election, without effects.

Clocks of different machines are never compared. A candidate counts from the moment at which it saw the lease change,
by its own clock; a leader counts from before it sent its last renewal. So the leader's time is over first.
"""

import math
from dataclasses import dataclass

from msgspec.structs import replace

from dra_driver.api.coordination_v1 import Lease, LeaseSpec
from dra_driver.api.meta_v1 import MicroTime, ObjectMeta
from dra_driver.errors import SettingError

_RELEASED_S = 1
_JITTER = 1.2
_LONGEST_S = 86_400


@dataclass(frozen=True, slots=True)
class Terms:
    """How leadership is held, in seconds.

    Others wait `lease_duration_s` (rounded up, as a Lease has whole seconds) after the last renewal that they saw; a
    leader gives up `renew_deadline_s` after the last one that succeeded, so the difference is the time in which what
    it leads must end. Raises SettingError where that leaves no room.
    """

    lease_duration_s: float = 15.0
    renew_deadline_s: float = 10.0
    retry_period_s: float = 2.0

    def __post_init__(self) -> None:
        if not _LONGEST_S >= self.lease_duration_s > self.renew_deadline_s > _JITTER * self.retry_period_s > 0:
            raise SettingError(
                f"leader election: lease duration {self.lease_duration_s:g} s, renew deadline "
                f"{self.renew_deadline_s:g} s, retry period {self.retry_period_s:g} s, want {_LONGEST_S} >= lease "
                f"duration > renew deadline > {_JITTER:g} times retry period > 0"
            )

    @property
    def lease_seconds(self) -> int:
        """What the Lease says."""
        return math.ceil(self.lease_duration_s)

    @property
    def attempt_s(self) -> float:
        """How long one attempt may take, so that there is time for another one."""
        return self.renew_deadline_s / 2

    def delay_s(self, chance: float) -> float:
        """Seconds until a candidate looks again, given a random number in [0, 1)."""
        return self.retry_period_s * (1 + _JITTER * chance)


@dataclass(frozen=True, slots=True)
class Sighting:
    """A lease as it was last seen, and since when, by our own clock, it has been seen like this."""

    lease: Lease
    since: float


def plan_sighting(before: Sighting | None, lease: Lease, now: float) -> Sighting:
    """Return what is known after a look. A lease whose spec is as before was not renewed, whatever else changed."""
    unchanged = before is not None and _identity(before.lease) == _identity(lease)
    return Sighting(lease, before.since if before is not None and unchanged else now)


def find_holder(sighting: Sighting, now: float) -> str:
    """Return who holds the lease, or nothing where nobody does or its time is over."""
    spec = sighting.lease.spec
    valid = now < sighting.since + (spec.lease_duration_seconds or 0)
    return (spec.holder_identity or "") if valid else ""


def plan_bid(current: Lease | None, metadata: ObjectMeta, identity: str, terms: Terms, now: MicroTime) -> Lease:
    """Return the lease to write in order to hold it, or to go on holding it; `metadata` is for a new one.

    An own lease is renewed: since when it is held, and how often it changed hands, stay.
    """
    lease = current or Lease(metadata=metadata)
    spec = replace(lease.spec, holder_identity=identity, lease_duration_seconds=terms.lease_seconds, renew_time=now)
    if current is None:
        spec = replace(spec, acquire_time=now, lease_transitions=0)
    elif current.spec.holder_identity != identity:
        spec = replace(spec, acquire_time=now, lease_transitions=(current.spec.lease_transitions or 0) + 1)
    return replace(lease, spec=spec)


def plan_release(current: Lease, now: MicroTime) -> Lease:
    """Return the lease without a holder, so that the next candidate need not wait."""
    spec = replace(
        current.spec, holder_identity=None, lease_duration_seconds=_RELEASED_S, acquire_time=now, renew_time=now
    )
    return replace(current, spec=spec)


def _identity(lease: Lease) -> tuple[str, LeaseSpec]:
    return lease.metadata.uid, lease.spec
