"""Node profiles: which accelerators a simulated node has, as a YAML file that people write.

A profile lists groups of equal devices. Names, UUIDs and serials are not in it: they follow from the node's name.
"""

import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path as FilePath

import msgspec

from dra_driver.api.name import validate_dns_label
from dra_driver.api.quantity import Quantity
from dra_driver.devices.model import DeviceType, ShareEnforcement
from dra_driver.devices.simulated.document import (
    Document,
    Path,
    Problem,
    Written,
    decode_document,
    parse_document,
)
from dra_driver.errors import SettingError, explain_os_error
from dra_driver.suggestion import explain_meant

MAX_DEVICES = 120
MAX_PARTITIONS_OF_A_DEVICE = 63
MAX_COUNTERS = 32

_PROFILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]{0,23}")
_PCI_ADDRESS = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_PCI_ROOT = re.compile(r"pci[0-9a-f]{4}:[0-9a-f]{2}")
_MAX_MEMORY = 2**63 - 1


class Slot(Written, frozen=True, kw_only=True):
    """Where a device sits: PCI address (`0000:1b:00.0`), PCIe root (`pci0000:15`), NUMA node."""

    address: str
    root: str | None = None
    numa_node: int | None = None


class GroupLink(Written, frozen=True, kw_only=True):
    """What joins the devices of a group; `size` devices in a row are one domain, all of them without it."""

    type: str
    full_mesh: bool | None = None
    size: int | None = None


class PartitionProfile(Written, frozen=True, kw_only=True):
    """One partition profile with all its placements.

    A placement takes `size` of the device's slices from one of `starts` on, and `counters` besides.
    """

    profile: str
    size: int
    starts: tuple[int, ...]
    memory: str
    compute_units: int | None = None
    counters: dict[str, int] = msgspec.field(default_factory=dict)


class Partitioning(Written, frozen=True, kw_only=True):
    """How a device can be cut: `slices` that a placement covers, and what else there is to share out."""

    slices: int
    counters: dict[str, int] = msgspec.field(default_factory=dict)
    profiles: tuple[PartitionProfile, ...]


class DeviceGroup(Written, frozen=True, kw_only=True):
    """`count` equal devices. The fields are those of `Device`; `memory` is a Kubernetes quantity of bytes."""

    count: int = 1
    vendor: str
    type: DeviceType
    model: str
    family: str | None = None
    product_name: str | None = None
    memory: str | None = None
    memory_type: str | None = None
    compute_capability: str | None = None
    compute_units: int | None = None
    driver_version: str | None = None
    runtime_version: str | None = None
    fabric_domain: str | None = None
    share_enforcement: ShareEnforcement = ShareEnforcement.NONE
    link: GroupLink | None = None
    slots: tuple[Slot, ...] = ()
    partitioning: Partitioning | None = None


class Profile(Written, frozen=True, kw_only=True):
    """All accelerators of a node."""

    description: str = ""
    devices: tuple[DeviceGroup, ...]


def parse_profile(text: str, subject: str = "profile") -> Profile:
    """Read a profile. Raises InvalidError with everything that is wrong in it."""
    document = parse_document(text, subject)
    profile = decode_document(document, Profile)
    _refuse(document, validate_groups(profile.devices, ("devices",)))
    return profile


def profile_names() -> tuple[str, ...]:
    """The profiles that come with the package, sorted."""
    files = resources.files(__package__).joinpath("profiles").iterdir()
    return tuple(sorted(file.name.removesuffix(".yaml") for file in files if file.name.endswith(".yaml")))


def read_profile(name: str) -> Profile:
    """Read a profile of the package by its name, or any other by its path (it has a `/` or ends in `.yaml`).

    Raises SettingError if there is no such profile, InvalidError if it is wrong.
    """
    if "/" in name or name.endswith((".yaml", ".yml")):
        return parse_profile(_read_text(FilePath(name)), f"profile {name}")
    known = profile_names()
    if name not in known:
        raise SettingError(
            f"profile {name!r}: unknown, want a path or one of {', '.join(known)}{explain_meant(name, known)}"
        )
    return parse_profile(
        resources.files(__package__).joinpath("profiles", f"{name}.yaml").read_text("utf-8"), f"profile {name}"
    )


def parse_memory(text: str) -> int:
    """Bytes of `81559Mi`, `64Gi` or `1024`. Raises ValueError if it is no whole number of bytes from 0 on."""
    quantity = Quantity.parse(text)
    if not quantity.is_integer() or not 0 <= quantity.value() <= _MAX_MEMORY:
        raise ValueError(f"{text!r}: not an amount of memory, want whole bytes such as '80Gi'")
    return quantity.value()


def slice_counters(start: int, size: int) -> dict[str, int]:
    """The counters of the slices that a placement covers: each slice exists once."""
    return {f"memory-slice-{index}": 1 for index in range(start, start + size)}


def validate_groups(groups: tuple[DeviceGroup, ...], path: Path) -> Iterator[Problem]:
    """Yield what no node could have: no devices, two in one slot, placements beyond the last slice."""
    total = sum(group.count for group in groups)
    if total > MAX_DEVICES:
        yield Problem(path, f"{total} devices, want at most {MAX_DEVICES}")
    taken: set[str] = set()
    for index, group in enumerate(groups):
        yield from _validate_group(group, (*path, index))
        for position, slot in enumerate(group.slots):
            if slot.address in taken:
                yield Problem((*path, index, "slots", position, "address"), f"{slot.address!r} is taken already")
            taken.add(slot.address)


def _read_text(path: FilePath) -> str:
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise SettingError(f"profile {path}: {explain_os_error(error)}") from error
    except UnicodeDecodeError as error:
        raise SettingError(f"profile {path}: not UTF-8 text") from error


def _refuse(document: Document, problems: Iterator[Problem]) -> None:
    found = list(problems)
    if found:
        raise document.build_error(found)


def _validate_group(group: DeviceGroup, path: Path) -> Iterator[Problem]:
    if group.count < 1:
        yield Problem((*path, "count"), f"got {group.count}, want at least 1")
    for name in ("vendor", "model"):
        if not getattr(group, name):
            yield Problem((*path, name), "empty, want text")
    if group.memory is not None:
        yield from _validate_memory(group.memory, (*path, "memory"))
    if group.compute_units is not None and group.compute_units < 1:
        yield Problem((*path, "computeUnits"), f"got {group.compute_units}, want at least 1")
    if group.link and group.link.size is not None and group.link.size < 1:
        yield Problem((*path, "link", "size"), f"got {group.link.size}, want at least 1")
    if group.slots and len(group.slots) != group.count:
        yield Problem((*path, "slots"), f"{len(group.slots)} slots, want {group.count} as 'count' says, or none")
    for index, slot in enumerate(group.slots):
        yield from _validate_slot(slot, (*path, "slots", index))
    if group.partitioning:
        yield from _validate_partitioning(group.partitioning, (*path, "partitioning"))


def _validate_memory(text: str, path: Path) -> Iterator[Problem]:
    try:
        parse_memory(text)
    except ValueError as error:
        yield Problem(path, str(error))


def _validate_slot(slot: Slot, path: Path) -> Iterator[Problem]:
    if not _PCI_ADDRESS.fullmatch(slot.address):
        yield Problem((*path, "address"), f"got {slot.address!r}, want a PCI address such as '0000:1b:00.0'")
    if slot.root is not None and not _PCI_ROOT.fullmatch(slot.root):
        yield Problem((*path, "root"), f"got {slot.root!r}, want a PCIe root such as 'pci0000:15'")
    if slot.numa_node is not None and slot.numa_node < 0:
        yield Problem((*path, "numaNode"), f"got {slot.numa_node}, want at least 0, or no field if it is unknown")


def _validate_partitioning(partitioning: Partitioning, path: Path) -> Iterator[Problem]:
    if partitioning.slices < 1:
        yield Problem((*path, "slices"), f"got {partitioning.slices}, want at least 1")
    if partitioning.slices + len(partitioning.counters) > MAX_COUNTERS:
        yield Problem(path, f"{partitioning.slices + len(partitioning.counters)} counters, want at most {MAX_COUNTERS}")
    placements = sum(len(profile.starts) for profile in partitioning.profiles)
    if placements > MAX_PARTITIONS_OF_A_DEVICE:
        yield Problem((*path, "profiles"), f"{placements} placements, want at most {MAX_PARTITIONS_OF_A_DEVICE}")
    for name, total in partitioning.counters.items():
        if validate_dns_label(name) or name in slice_counters(0, partitioning.slices):
            yield Problem((*path, "counters", name), "want a DNS label that is no slice's")
        if total < 1:
            yield Problem((*path, "counters", name), f"got {total}, want at least 1")
    names: set[str] = set()
    for index, profile in enumerate(partitioning.profiles):
        if profile.profile in names:
            yield Problem((*path, "profiles", index, "profile"), f"{profile.profile!r} is there already")
        names.add(profile.profile)
        yield from _validate_partition_profile(profile, partitioning, (*path, "profiles", index))


def _validate_partition_profile(profile: PartitionProfile, parent: Partitioning, path: Path) -> Iterator[Problem]:
    if not _PROFILE_NAME.fullmatch(profile.profile):
        yield Problem((*path, "profile"), f"got {profile.profile!r}, want a name such as '1g.10gb'")
    if profile.size < 1:
        yield Problem((*path, "size"), f"got {profile.size}, want at least 1")
    yield from _validate_memory(profile.memory, (*path, "memory"))
    for index, start in enumerate(profile.starts):
        if start < 0 or start + profile.size > parent.slices:
            yield Problem(
                (*path, "starts", index),
                f"slices {start} to {start + profile.size - 1}, want them in 0 to {parent.slices - 1}",
            )
        if start in profile.starts[:index]:
            yield Problem((*path, "starts", index), f"{start} is there already")
    for name, taken in profile.counters.items():
        total = parent.counters.get(name)
        if total is None:
            yield Problem(
                (*path, "counters", name), f"the device has no such counter{explain_meant(name, parent.counters)}"
            )
        elif not 1 <= taken <= total:
            yield Problem((*path, "counters", name), f"got {taken}, want 1 to {total}")
