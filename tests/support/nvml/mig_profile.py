"""The MIG profiles of real GPUs, as captures of `nvidia-smi mig -lgip` and `-lgipp` show them: for the fake only.

The driver itself has no such table, it asks NVML.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class MigProfile:
    """A GPU instance profile: `enum` is NVML's constant, `id` what instances are created by, `memory` is in MiB.

    `engines` are copy engines, decoders, encoders, JPEG engines and OFAs.
    """

    name: str
    enum: int
    id: int
    compute_slices: int
    instances: int
    memory: int
    multiprocessors: int
    engines: tuple[int, int, int, int, int]
    starts: tuple[int, ...]
    size: int


MIG_PROFILES: Final[Mapping[str, tuple[MigProfile, ...]]] = {
    "A100-40": (
        MigProfile("1g.5gb", 0, 19, 1, 7, 4864, 14, (1, 0, 0, 0, 0), (0, 1, 2, 3, 4, 5, 6), 1),
        MigProfile("1g.5gb+me", 7, 20, 1, 1, 4864, 14, (1, 1, 0, 1, 1), (0, 1, 2, 3, 4, 5, 6), 1),
        MigProfile("1g.10gb", 9, 15, 1, 4, 9856, 14, (1, 1, 0, 0, 0), (0, 2, 4, 6), 2),
        MigProfile("2g.10gb", 1, 14, 2, 3, 9856, 28, (2, 1, 0, 0, 0), (0, 2, 4), 2),
        MigProfile("3g.20gb", 2, 9, 3, 2, 19968, 42, (3, 2, 0, 0, 0), (0, 4), 4),
        MigProfile("4g.20gb", 3, 5, 4, 1, 19968, 56, (4, 2, 0, 0, 0), (0,), 4),
        MigProfile("7g.40gb", 4, 0, 7, 1, 40192, 98, (7, 5, 0, 1, 1), (0,), 8),
    ),
    "A100-80": (
        MigProfile("1g.10gb", 0, 19, 1, 7, 9856, 14, (1, 0, 0, 0, 0), (0, 1, 2, 3, 4, 5, 6), 1),
        MigProfile("1g.10gb+me", 7, 20, 1, 1, 9856, 14, (1, 1, 0, 1, 1), (0, 1, 2, 3, 4, 5, 6), 1),
        MigProfile("1g.20gb", 9, 15, 1, 4, 19968, 14, (1, 1, 0, 0, 0), (0, 2, 4, 6), 2),
        MigProfile("2g.20gb", 1, 14, 2, 3, 19968, 28, (2, 1, 0, 0, 0), (0, 2, 4), 2),
        MigProfile("3g.40gb", 2, 9, 3, 2, 40192, 42, (3, 2, 0, 0, 0), (0, 4), 4),
        MigProfile("4g.40gb", 3, 5, 4, 1, 40192, 56, (4, 2, 0, 0, 0), (0,), 4),
        MigProfile("7g.80gb", 4, 0, 7, 1, 80384, 98, (7, 5, 0, 1, 1), (0,), 8),
    ),
    "A30": (
        MigProfile("1g.6gb", 0, 14, 1, 4, 5952, 14, (1, 0, 0, 0, 0), (0, 1, 2, 3), 1),
        MigProfile("1g.6gb+me", 7, 21, 1, 1, 5952, 14, (1, 1, 0, 1, 1), (0, 1, 2, 3), 1),
        MigProfile("2g.12gb", 1, 5, 2, 2, 11968, 28, (2, 2, 0, 0, 0), (0, 2), 2),
        MigProfile("2g.12gb+me", 8, 6, 2, 1, 11968, 28, (2, 2, 0, 1, 1), (0, 2), 2),
        MigProfile("4g.24gb", 3, 0, 4, 1, 24000, 56, (4, 4, 0, 1, 1), (0,), 4),
    ),
    "H100-80": (
        MigProfile("1g.10gb", 0, 19, 1, 7, 9984, 16, (1, 1, 0, 1, 0), (0, 1, 2, 3, 4, 5, 6), 1),
        MigProfile("1g.10gb+me", 7, 20, 1, 1, 9984, 16, (1, 1, 0, 1, 1), (0, 1, 2, 3, 4, 5, 6), 1),
        MigProfile("1g.20gb", 9, 15, 1, 4, 20096, 26, (1, 1, 0, 1, 0), (0, 2, 4, 6), 2),
        MigProfile("2g.20gb", 1, 14, 2, 3, 20096, 32, (2, 2, 0, 2, 0), (0, 2, 4), 2),
        MigProfile("3g.40gb", 2, 9, 3, 2, 40448, 60, (3, 3, 0, 3, 0), (0, 4), 4),
        MigProfile("4g.40gb", 3, 5, 4, 1, 40448, 64, (4, 4, 0, 4, 0), (0,), 4),
        MigProfile("7g.80gb", 4, 0, 7, 1, 81152, 132, (8, 7, 0, 7, 1), (0,), 8),
    ),
    "H200-141": (
        MigProfile("1g.18gb", 0, 19, 1, 7, 16384, 16, (1, 1, 0, 1, 0), (0, 1, 2, 3, 4, 5, 6), 1),
        MigProfile("1g.18gb+me", 7, 20, 1, 1, 16384, 16, (1, 1, 0, 1, 1), (0, 1, 2, 3, 4, 5, 6), 1),
        MigProfile("1g.35gb", 9, 15, 1, 4, 33280, 26, (1, 1, 0, 1, 0), (0, 2, 4, 6), 2),
        MigProfile("2g.35gb", 1, 14, 2, 3, 33280, 32, (2, 2, 0, 2, 0), (0, 2, 4), 2),
        MigProfile("3g.71gb", 2, 9, 3, 2, 71424, 60, (3, 3, 0, 3, 0), (0, 4), 4),
        MigProfile("4g.71gb", 3, 5, 4, 1, 71424, 64, (4, 4, 0, 4, 0), (0,), 4),
        MigProfile("7g.141gb", 4, 0, 7, 1, 143360, 132, (8, 7, 0, 7, 1), (0,), 8),
    ),
    "B200-180": (
        MigProfile("1g.23gb", 0, 19, 1, 7, 23552, 18, (2, 1, 0, 1, 0), (0, 1, 2, 3, 4, 5, 6), 1),
        MigProfile("1g.23gb+me", 7, 20, 1, 1, 23552, 18, (2, 1, 0, 1, 1), (0, 1, 2, 3, 4, 5, 6), 1),
        MigProfile("1g.45gb", 9, 15, 1, 4, 46080, 18, (2, 1, 0, 1, 0), (0, 2, 4, 6), 2),
        MigProfile("2g.45gb", 1, 14, 2, 3, 46080, 36, (3, 1, 0, 1, 0), (0, 2, 4), 2),
        MigProfile("3g.90gb", 2, 9, 3, 2, 92160, 54, (6, 1, 0, 1, 0), (0, 4), 4),
        MigProfile("4g.90gb", 3, 5, 4, 1, 92160, 72, (8, 1, 0, 1, 0), (0,), 4),
        MigProfile("7g.180gb", 4, 0, 7, 1, 184320, 126, (16, 1, 0, 1, 1), (0,), 8),
    ),
}
