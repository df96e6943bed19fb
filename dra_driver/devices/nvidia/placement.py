"""Which MIG partitions a GPU can have, and counters that admit exactly those that can exist side by side.

Pure: profiles and placements come from NVML at run time, never from a table. The counters of a GPU are

- `memory-slice-<i>`, one each: a placement takes those that it covers, so placements that overlap exclude each other;
- `compute-slices`: their sum is limited apart from the memory slices (a 3g.40gb covers half the memory, with 3 of 7);
- `copy-engines`, `decoders`, `encoders`, `jpeg-engines`, `ofa-engines`: as many as its profiles ever have together;
- `media-extensions`, or `instances-<profile>`: where NVML allows fewer instances than there is room for, as of `+me`.

A whole GPU takes all of them.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dra_driver.devices.model import Partition

MAX_COUNTERS: Final = 32
"""The most counters of a counter set (resource.k8s.io/v1)."""

_MEDIA_EXTENSIONS: Final = "media-extensions"
_SCARCE: Final = (_MEDIA_EXTENSIONS, "instances-")


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuProfile:
    """A GPU instance profile of one GPU, as NVML reports it.

    `id` is NVML's id for creating, not the number of its constant. `instances` is how many of it the GPU can have.
    `memory` is in bytes; `placements` are (start, size) in memory slices.
    """

    name: str
    id: int
    compute_slices: int
    instances: int
    memory: int
    multiprocessors: int
    copy_engines: int = 0
    decoders: int = 0
    encoders: int = 0
    jpeg_engines: int = 0
    ofa_engines: int = 0
    placements: tuple[tuple[int, int], ...]

    @property
    def engines(self) -> Mapping[str, int]:
        """The engines that an instance has, those that it does not have left out."""
        every = {
            "copy-engines": self.copy_engines,
            "decoders": self.decoders,
            "encoders": self.encoders,
            "jpeg-engines": self.jpeg_engines,
            "ofa-engines": self.ofa_engines,
        }
        return {name: amount for name, amount in every.items() if amount > 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Placements:
    """All partitions that a GPU can have, in the order of placement, and the totals that they draw from."""

    partitions: tuple[Partition, ...] = ()
    counters: Mapping[str, int]

    def find(self, profile: str, start: int) -> Partition | None:
        """The partition of that profile that begins at that memory slice."""
        return next((each for each in self.partitions if (each.profile, each.start) == (profile, start)), None)


def build_placements(profiles: Iterable[GpuProfile]) -> Placements:
    """Build every partition of a GPU from its profiles. A profile without a placement gives none."""
    usable = tuple(profile for profile in profiles if profile.placements and profile.instances > 0)
    compute = max((profile.compute_slices * profile.instances for profile in usable), default=0)
    slices = max((start + size for profile in usable for start, size in profile.placements), default=0)
    scarce = {profile.name: _scarce_counter(profile, compute) for profile in usable}
    totals = Counter({"compute-slices": compute})
    for profile in usable:
        for name, amount in profile.engines.items():
            totals[name] = max(totals[name], amount * profile.instances)
        if counter := scarce[profile.name]:
            totals[counter] = max(totals[counter], profile.instances)
    counters = _fitting({**_slices(0, slices), **{name: total for name, total in totals.items() if total > 0}})
    placed = (
        _build_partition(profile, start, size, scarce[profile.name], counters)
        for profile in usable
        for start, size in profile.placements
    )
    return Placements(
        partitions=tuple(sorted(placed, key=lambda each: (each.start, each.size, each.profile))), counters=counters
    )


def parse_profile_name(text: str) -> str:
    """`1g.10gb+me` of NVML's `MIG 1g.10gb+me`."""
    return text.removeprefix("MIG ").strip()


def build_profile_name(*, compute_slices: int, memory: int, total_memory: int, suffix: str = "") -> str:
    """The name of a profile whose driver does not tell it: compute slices, and eighths of the GPU's memory in GiB.

    `memory` and `total_memory` are in bytes; the GPU's is rounded up to GiB, as NVIDIA's tools do. Where that is not
    known (0), the profile's own is.
    """
    if total_memory <= 0:
        return f"{compute_slices}g.{-(-memory // (1 << 30))}gb{suffix}"
    eighths = -(-memory * 8 // total_memory)
    gibibytes = -(-total_memory // (1 << 30))
    return f"{compute_slices}g.{(eighths * gibibytes + 4) // 8}gb{suffix}"


def _build_partition(
    profile: GpuProfile, start: int, size: int, scarce: str | None, totals: Mapping[str, int]
) -> Partition:
    counters = {**_slices(start, size), "compute-slices": profile.compute_slices, **profile.engines}
    if scarce is not None:
        counters[scarce] = 1
    return Partition(
        profile=profile.name,
        start=start,
        size=size,
        memory=profile.memory,
        compute_units=profile.multiprocessors,
        counters={name: amount for name, amount in counters.items() if name in totals},
    )


def _slices(start: int, size: int) -> dict[str, int]:
    return {f"memory-slice-{index}": 1 for index in range(start, start + size)}


def _scarce_counter(profile: GpuProfile, compute_slices: int) -> str | None:
    """The counter of a profile that NVML allows fewer of than memory and compute slices leave room for."""
    if profile.instances >= _count_fitting(profile.placements, compute_slices // max(profile.compute_slices, 1)):
        return None
    if "+me" in profile.name:
        return _MEDIA_EXTENSIONS
    return f"instances-{re.sub('[^a-z0-9]+', '-', profile.name.lower()).strip('-')}"


def _count_fitting(placements: Sequence[tuple[int, int]], most: int) -> int:
    """How many of these placements can be had at once, at most `most`: the one that ends first, and on from there."""
    count, end = 0, 0
    for start, size in sorted(placements, key=lambda each: each[0] + each[1]):
        if start >= end:
            count, end = count + 1, start + size
    return min(count, most)


def _fitting(totals: Mapping[str, int]) -> dict[str, int]:
    """The counters that a counter set has room for. Engines go first: they never decide what can exist."""
    needed = [name for name in totals if name == "compute-slices" or name.startswith(("memory-slice-", *_SCARCE))]
    rest = [name for name in totals if name not in needed]
    kept = {*needed, *rest[: max(MAX_COUNTERS - len(needed), 0)]}
    return {name: total for name, total in totals.items() if name in kept}
