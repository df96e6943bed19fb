"""Who else gives this node's devices away: a vendor's device plugin, or a vendor's own DRA driver. Pure.

Neither kube-scheduler nor the kubelet compares what a device plugin counts with what slices list, so a device that
both serve is given away twice. A device plugin counts, and does not say which devices it means, so all of the vendor's
are taken to be served twice. Once it has ended, Pods still hold what they got from it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from dra_driver.api.quantity import Quantity
from dra_driver.api.resource_v1 import DeviceTaint, ResourceSlice

IN_USE_KEY: Final = "dra-driver.io/in-use-by"
"""The key of the taint of a device that somebody else serves, too; the value says who."""


@dataclass(frozen=True, slots=True)
class Others:
    """What others may serve a vendor's devices: extended resources (patterns), and names of DRA drivers."""

    resources: tuple[str, ...]
    drivers: tuple[str, ...] = ()


OTHERS: Final[Mapping[str, Others]] = {
    "nvidia": Others(("nvidia.com/gpu", "nvidia.com/gpu.*", "nvidia.com/mig-*"), ("gpu.nvidia.com",)),
    "huawei": Others(("huawei.com/Ascend*", "huawei.com/npu*"), ("npu.huawei.com", "ascend.project-hami.io")),
    "cambricon": Others(("cambricon.com/*",)),
    "hygon": Others(("hygon.com/*",), ("hcu.hygon.com", "dcu.hygon.com")),
    "amd": Others(("amd.com/gpu*", "amd.com/?px_*"), ("gpu.amd.com",)),
    "mthreads": Others(("mthreads.com/*",)),
    "iluvatar": Others(("iluvatar.com/*", "iluvatar.ai/*")),
    "metax": Others(("metax-tech.com/*",)),
    "enflame": Others(("enflame.com/*",)),
    "intel": Others(("habana.ai/gaudi",), ("gaudi.intel.com",)),
    "kunlunxin": Others(("kunlunxin.com/*",)),
}
"""By the vendors' names in the attribute `vendor`."""


@dataclass(frozen=True, slots=True, order=True)
class OtherOwner:
    """Somebody else who serves a vendor's devices on this node: an extended resource's or a DRA driver's name."""

    vendor: str
    name: str

    @property
    def taint(self) -> DeviceTaint:
        """The taint of the vendor's devices. A label value has no `/`."""
        value = self.name.replace("/", "_")[:63].rstrip("._-")
        return DeviceTaint(key=IN_USE_KEY, value=value, effect="NoSchedule")

    def __str__(self) -> str:
        """Say what is so of the vendor's devices."""
        if "/" in self.name:
            return f"served by the device plugin of {self.name}, or held by Pods that have them from it"
        return f"served by the DRA driver {self.name}"


def find_other_owners(
    allocatable: Mapping[str, Quantity],
    slices: Iterable[ResourceSlice],
    *,
    driver: str,
    held: frozenset[str] = frozenset(),
) -> tuple[OtherOwner, ...]:
    """Return who else serves devices of a node, at most one a vendor, by vendor; device plugins come first.

    `allocatable` is that of the Node, `slices` are all slices of the node; those of `driver` are ours.
    `held` are the extended resources of which Pods of the node hold some.
    """
    counted = {name for name, amount in allocatable.items() if amount > Quantity.of_int(0)}
    resources = sorted(counted | held)
    drivers = sorted({item.spec.driver for item in slices if item.spec.devices} - {driver})
    found = ((vendor, _find(others, resources, drivers)) for vendor, others in sorted(OTHERS.items()))
    return tuple(OtherOwner(vendor, name) for vendor, name in found if name is not None)


def find_told_owners(slices: Iterable[ResourceSlice], *, driver: str) -> tuple[OtherOwner, ...]:
    """Return whom the taints in slices of `driver` name, as a process before this one saw them; by vendor."""
    told = {
        attribute.string: taint.value
        for item in slices
        if item.spec.driver == driver
        for device in item.spec.devices
        for taint in device.taints
        if taint.key == IN_USE_KEY and (attribute := device.attributes.get("vendor"))
    }
    names = ((vendor, others, told.get(vendor)) for vendor, others in sorted(OTHERS.items()))
    found = ((vendor, _find(others, (name.replace("_", "/", 1),), (name,))) for vendor, others, name in names if name)
    return tuple(OtherOwner(vendor, name) for vendor, name in found if name is not None)


def _find(others: Others, resources: Iterable[str], drivers: Iterable[str]) -> str | None:
    served = (name for name in resources if any(fnmatchcase(name, pattern) for pattern in others.resources))
    return next(served, None) or next((name for name in drivers if name in others.drivers), None)


class OwnerHold:
    """Keeps who is gone for `hold_s` seconds more.

    A kubelet that starts anew counts nothing until the device plugins have registered again.
    """

    def __init__(self, hold_s: float) -> None:
        self._hold_s = hold_s
        self._owners: dict[str, OtherOwner] = {}
        self._gone_s: dict[str, float] = {}

    def settle(self, found: Iterable[OtherOwner], now_s: float) -> tuple[OtherOwner, ...]:
        """Return those who are found now, and those whose time is not over; at most one a vendor, by vendor."""
        present = {other.vendor: other for other in found}
        self._owners |= present
        self._gone_s = {vendor: self._gone_s.get(vendor, now_s) for vendor in self._owners if vendor not in present}
        for vendor, since_s in self._gone_s.items():
            if now_s - since_s >= self._hold_s:
                del self._owners[vendor]
        return tuple(other for _, other in sorted(self._owners.items()))
