"""One physical device as entries of a slice: the whole device, its partitions, and the counters that they draw from.

The whole and its partitions exclude each other by counters: the whole takes all of every counter, a partition its part.
One that an administrator has cut up offers what is there; those partitions exist side by side and need no counters.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from dra_driver.api.quantity import Quantity
from dra_driver.api.resource_v1 import Counter, CounterSet, DeviceCapacity, DeviceCounterConsumption, DeviceTaint
from dra_driver.api.resource_v1 import Device as SliceDevice
from dra_driver.devices.attribute import DEFAULT_SLOTS, render_attributes, render_capacity
from dra_driver.devices.model import UNHEALTHY_TAINT, Device, Partition
from kubeletplugin.publish.feature import Features


@dataclass(frozen=True, slots=True, kw_only=True)
class SharePolicy:
    """How devices are shared: by at most `slots` claims each; with `unenforced` also where nothing holds the limits."""

    slots: int = DEFAULT_SLOTS
    unenforced: bool = False


def build_whole(device: Device, *, shares: SharePolicy, features: Features, takes_counters: bool) -> SliceDevice:
    """Return the entry of a whole device: shareable if its capacities have request policies and sharing is possible."""
    capacity = render_capacity(device, slots=shares.slots, share_unenforced=shares.unenforced)
    shareable = features.sharing and any(item.request_policy is not None for item in capacity.values())
    return SliceDevice(
        name=device.name,
        attributes=render_attributes(device),
        capacity=capacity if shareable else _plain(capacity),
        allow_multiple_allocations=True if shareable else None,
        consumes_counters=_consumption(device, device.counters) if takes_counters else (),
        taints=_taints(device),
    )


def build_partition(device: Device, partition: Partition, *, takes_counters: bool) -> SliceDevice:
    """Return the entry of a partition. It is given to one claim at a time."""
    return SliceDevice(
        name=device.partition_name(partition),
        attributes=render_attributes(device, partition),
        capacity=_plain(render_capacity(device, partition)),
        consumes_counters=_consumption(device, partition.counters) if takes_counters else (),
        taints=_taints(device),
    )


def build_counter_set(device: Device) -> CounterSet:
    """Return what a device's partitions draw from. The set has the device's name."""
    return CounterSet(name=device.name, counters=_counters(device.counters))


def _consumption(device: Device, counters: Mapping[str, int]) -> tuple[DeviceCounterConsumption, ...]:
    return (DeviceCounterConsumption(counter_set=device.name, counters=_counters(counters)),)


def _counters(counters: Mapping[str, int]) -> dict[str, Counter]:
    return {name: Counter(value=_quantity(name, counters[name])) for name in sorted(counters)}


def _quantity(name: str, amount: int) -> Quantity:
    return Quantity.of_bytes(amount) if name == "memory" else Quantity.of_int(amount)


def _taints(device: Device) -> tuple[DeviceTaint, ...]:
    if device.health is None:
        return ()
    return (DeviceTaint(key=UNHEALTHY_TAINT, value=device.health.reason, effect="NoSchedule"),)


def _plain(capacity: Mapping[str, DeviceCapacity]) -> dict[str, DeviceCapacity]:
    return {name: DeviceCapacity(value=item.value) for name, item in capacity.items()}
