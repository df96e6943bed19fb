"""How many devices of several nodes a request matches, could have, or not, and why."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from controller.allocator.reason import Reason, ReasonCode
from controller.allocator.sifting import UNSUITED, Sifted, Sifting


@dataclass(frozen=True, slots=True)
class Tally:
    """The devices of some nodes as one request sees them; each counts once, from however many nodes it can be had.

    `unsuited` counts those that the request does not mean, `kept` those that it does and cannot have, by reason
    without subject. `most` is how many it could have on the node where that is most.
    """

    request: str
    wanted: int
    is_all: bool
    nodes: int
    free: int
    most: int
    kept: Counter[Reason]
    unsuited: Counter[Reason]
    incomplete: frozenset[str]
    invalid: frozenset[str]

    @property
    def matching(self) -> int:
        """How many devices the request means, whoever uses them."""
        return self.free + self.kept.total()

    @property
    def total(self) -> int:
        """How many devices there are."""
        return self.matching + self.unsuited.total()


def tally_siftings(siftings: Iterable[tuple[Sifting, int]]) -> Tally:
    """Sum what a request found on nodes of several kinds, each with the number of its nodes."""
    pairs = list(siftings)
    first = pairs[0][0]
    counts = Counter(_local(pairs))
    counts.update(_shared(pairs))
    free = counts.pop(None, 0)
    reasons = [(reason, count) for reason, count in counts.items() if reason is not None]
    return Tally(
        request=first.request,
        wanted=max(sifting.wanted for sifting, _ in pairs),
        is_all=first.is_all,
        nodes=sum(count for _, count in pairs),
        free=free,
        most=max(sifting.usable for sifting, _ in pairs),
        kept=Counter({reason: count for reason, count in reasons if reason.code not in UNSUITED}),
        unsuited=Counter({reason: count for reason, count in reasons if reason.code in UNSUITED}),
        incomplete=_pools(pairs, ReasonCode.POOL_INCOMPLETE),
        invalid=_pools(pairs, ReasonCode.POOL_INVALID),
    )


def _local(pairs: list[tuple[Sifting, int]]) -> dict[Reason | None, int]:
    counts: Counter[Reason | None] = Counter()
    for sifting, count in pairs:
        for device in sifting.devices:
            if device.is_local:
                counts[_strip(device.reason)] += count
    return counts


def _shared(pairs: list[tuple[Sifting, int]]) -> Counter[Reason | None]:
    """Count devices that several nodes may have, by what is least in the way."""
    best: dict[str, Sifted] = {}
    for sifting, _ in pairs:
        for device in sifting.devices:
            if not device.is_local and (device.device not in best or _rank(device) < _rank(best[device.device])):
                best[device.device] = device
    return Counter(_strip(device.reason) for device in best.values())


def _strip(reason: Reason | None) -> Reason | None:
    return replace(reason, subject="") if reason is not None else None


def _rank(device: Sifted) -> tuple[int, str, str, str]:
    reason = device.reason
    if reason is None:
        return (0, "", "", "")
    return (2 if reason.code in UNSUITED else 1, reason.code, reason.seen, reason.wanted)


def _pools(pairs: list[tuple[Sifting, int]], code: ReasonCode) -> frozenset[str]:
    return frozenset(_names(pairs, code))


def _names(pairs: list[tuple[Sifting, int]], code: ReasonCode) -> Iterator[str]:
    for sifting, _ in pairs:
        yield from (pool.subject for pool in sifting.pools if pool.code is code)
