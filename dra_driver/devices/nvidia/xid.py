"""What the numbers of NVIDIA's XID events mean for a GPU: whether it can still be used. Pure.

An XID that a program causes (a bad address, a full time-out) ends that program, and the GPU is well. One that tells of
something that NVML counts, too (remapped rows, recommended actions), is left to what NVML says now. All others, also
those that are not known here, make a GPU unwell until it was reset.
Source: the catalog in NVIDIA's documentation "XID errors", column "immediate action".
"""

from typing import Final

from dra_driver.devices.model import Health

PROGRAM_XIDS: Final = frozenset(
    {8, 11, 13, 25, 31, 32, 45, 60, 68, 69, 80, 109, 139}
    | {39, 40, 41, 70, 71, 72, 75, 76, 77, 85, *range(126, 136)}  # copy engines
    | {82, 83, 84, 86, 88, 89, *range(96, 106)}  # video, JPEG and optical flow engines
)
"""A program did something wrong, or was ended, and has to be started again: the GPU is well.

NVIDIA's catalog wants a reset after 109, its device plugin and DRA driver pass over it; where it is needed the
recommended action says so.
"""

NOTED_XIDS: Final = frozenset({14, 37, 38, 43, 44, 66, 67, 93, 106, 107, 108, 121, 137, 141, 160, 161})
"""Nothing has to be done at once, NVIDIA's catalog says: the GPU is well."""

COUNTED_XIDS: Final = frozenset({63, 92, 94, 154})
"""NVML's counters and its recommended action say what follows."""

_MEANINGS: Final = {
    46: "the GPU stopped",
    48: "memory error that cannot be corrected",
    61: "the GPU's microcontroller stopped",
    62: "the GPU's microcontroller halted",
    64: "a row of memory or a page cannot be replaced",
    74: "NVLink error",
    79: "the GPU has fallen off the bus",
    95: "memory error that was not contained",
    110: "security fault",
    119: "the GPU's system processor does not answer",
    120: "the GPU's system processor failed",
    136: "link training failed",
    140: "memory error that was not recovered",
    143: "the GPU could not be initialised",
    145: "NVLink error",
    155: "NVLink link in an undefined state",
    156: "a resource of the GPU was retired",
    158: "the GPU timed out",
}


def explain_xid(xid: int, *, ignored: frozenset[int] = frozenset()) -> Health | None:
    """Return what an XID means for the GPU's health; None if it means nothing, or NVML tells it better.

    `ignored` are those that an operator wants passed over, too.
    """
    if xid in PROGRAM_XIDS | NOTED_XIDS | COUNTED_XIDS | ignored:
        return None
    message = f"XID {xid}: {_MEANINGS.get(xid, 'error of the GPU or its driver')}"
    return Health(reason=xid_reason(xid), message=message)


def xid_reason(xid: int) -> str:
    """Return the reason of a GPU that is unwell since that XID."""
    return f"xid-{xid}"
