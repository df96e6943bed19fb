"""A device as the allocator sees it: with what its slice and pool say about it, computed once."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from controller.allocator.cell import Cell
from controller.allocator.state import DeviceId
from controller.allocator.taint import preventing_taints
from dra_driver.api.resource_v1 import Device, DeviceAttribute, DeviceTaint, ResourceSlice
from dra_driver.cel import DeviceInput

_CELLS_MAX: Final = 64
_LINK_DOMAIN: Final = "linkDomain"

Counters: TypeAlias = dict[tuple[str, str], int]
"""Nano-units by counter set and counter."""


@dataclass(slots=True, eq=False)
class Candidate:
    """A device of a pool. The dicts at the end remember what does not change while the slice stands.

    `look` is the number of what every claim sees in it, and among which numbers, once somebody looked.
    """

    id: DeviceId
    device: Device
    slice: ResourceSlice
    consumption: Counters
    groups: dict[str, frozenset[str]]
    taints: tuple[DeviceTaint, ...]
    capacity: dict[str, int]
    is_shareable: bool
    input: DeviceInput
    verdicts: dict[str, bool] = field(default_factory=dict)
    demands: dict[tuple[object, ...], Cell] = field(default_factory=dict)
    derived: dict[str, DeviceAttribute] = field(default_factory=dict)
    cells: dict[int, Cell] = field(default_factory=dict)
    look: tuple[object, int] | None = None

    def prepare(self) -> None:
        """Convert the values for selectors now, so that the first claim that looks at the device need not wait."""
        _ = self.input.view

    def remember(self, signature: int, cell: Cell) -> None:
        """Keep what the device is worth for requests of a signature."""
        if len(self.cells) >= _CELLS_MAX:
            self.cells.clear()
        self.cells[signature] = cell

    @property
    def subject(self) -> str:
        """The device as texts name it."""
        return "/".join(self.id)


def build_candidate(device: Device, slice_: ResourceSlice) -> Candidate:
    """Compute what the allocator asks of a device again and again."""
    spec = slice_.spec
    return Candidate(
        id=(spec.driver, spec.pool.name, device.name),
        device=device,
        slice=slice_,
        consumption=_consumption(device) if device.consumes_counters else {},
        groups={entry.counter_set: frozenset(entry.compatibility_groups) for entry in device.consumes_counters},
        taints=preventing_taints(device) if device.taints else (),
        capacity={name: capacity.value.nanos for name, capacity in device.capacity.items()},
        is_shareable=bool(device.allow_multiple_allocations),
        input=DeviceInput(
            spec.driver,
            device.attributes,
            device.capacity,
            allow_multiple_allocations=bool(device.allow_multiple_allocations),
        ),
    )


def find_attribute(attributes: Mapping[str, DeviceAttribute], name: str, driver: str) -> DeviceAttribute | None:
    """Look up a fully qualified name: as it stands, else by its id alone if the domain is the driver's."""
    found = attributes.get(name)
    if found is not None:
        return found
    domain, slash, id_ = name.partition("/")
    return attributes.get(id_) if slash and domain == driver else None


def find_link_domain(candidate: Candidate) -> tuple[str, str] | None:
    """Give the driver and name of the device's link domain; None if it is in none."""
    driver = candidate.id[0]
    attribute = find_attribute(candidate.device.attributes, f"{driver}/{_LINK_DOMAIN}", driver)
    return None if attribute is None or attribute.string is None else (driver, attribute.string)


def _consumption(device: Device) -> Counters:
    counters: Counters = {}
    for entry in device.consumes_counters:
        for name, counter in entry.counters.items():
            key = (entry.counter_set, name)
            counters[key] = counters.get(key, 0) + counter.value.nanos
    return counters
