"""The backend `simulated`: devices of a profile, and what an operator does to them in the overrides file."""

import hashlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event, Lock

from cdi import ContainerEdits
from dra_driver.api.config_v1alpha1 import Interval
from dra_driver.devices.model import Device, DeviceName, Inventory, LeftOut, Partition
from dra_driver.devices.partitioning import PartitionPolicy, plan_partitions
from dra_driver.devices.simulated.edits import WantedNode, build_edits, plan_nodes, render_info
from dra_driver.devices.simulated.fleet import Fleet, Seat, build_fleet
from dra_driver.devices.simulated.identity import render_partition_uuid
from dra_driver.devices.simulated.node import CharacterDevice, CharacterDevices
from dra_driver.devices.simulated.override import Overrides, parse_overrides
from dra_driver.devices.simulated.profile import Profile
from dra_driver.devices.simulated.store import NameStore
from dra_driver.errors import DeviceError, InvalidError, StateError, explain_os_error
from dra_driver.file import ensure_directory, write_file


class SimulatedBackend:
    """A `Backend` without hardware.

    Device nodes are made below `dev_dir`, where the system permits it, and are given to containers as `/dev/nvidia0`
    and the like; where it does not, edits have variables and mounts only. Partitions live in `state_dir`.
    `partitions` says which of them are offered.
    `overrides_path` is read at every inventory; while it is malformed its last good content holds.
    """

    name = "simulated"

    def __init__(  # noqa: PLR0913 - all but two are keywords
        self,
        profile: Profile,
        node_name: str,
        *,
        dev_dir: Path,
        state_dir: Path,
        overrides_path: Path | None = None,
        nodes: CharacterDevices | None = None,
        partitions: PartitionPolicy | None = None,
    ) -> None:
        digest = hashlib.sha256(node_name.encode()).hexdigest()
        self._profile = profile
        self._node_name = node_name
        self._node_number = int(digest[:4], 16)
        self._overrides_path = overrides_path
        self._partitions = partitions or PartitionPolicy()
        self._nodes = nodes or CharacterDevices(dev_dir / f"simulated-{digest[:12]}")
        self._store = NameStore(state_dir / "partitions")
        self._time_slices = NameStore(state_dir / "time-slices")
        self._exclusive = NameStore(state_dir / "exclusive-process")
        self._info_dir = state_dir / "info"
        self._lock = Lock()
        self._text = ""
        self._problem: LeftOut | None = None
        self._fleet = build_fleet(profile, node_name, Overrides())

    def read_inventory(self) -> Inventory:
        """See `Backend.read_inventory`. What is wrong with the overrides is left out, with the reason."""
        fleet, problem = self._read_fleet()
        with _device_errors("partitions"):
            made = self._store.read_names()
        inventory = fleet.inventory()
        return Inventory(
            devices=tuple(self._cut(seat, made) for seat in fleet.seats),
            left_out=inventory.left_out + ((problem,) if problem else ()),
        )

    def wait_for_change(self, timeout_s: float) -> None:
        """See `Backend.wait_for_change`. Nothing here reports events."""
        Event().wait(timeout_s)

    def render_edits(self, device: Device, partition: Partition | None) -> ContainerEdits:
        """See `Backend.render_edits`."""
        seat = self._find_seat(device)
        name = device.name if partition is None else device.partition_name(partition)
        placement = None
        uuid = seat.device.identity
        if partition is not None:
            placement, known = _find_placement(seat, name)
            uuid = _partition_uuid(seat.device, known)
        with _device_errors(name), self._store.locked():
            if partition is not None and not self._exists(seat, name):
                raise DeviceError(f"partition {name}: does not exist, want it made first")
            nodes = self._apply_nodes(seat, placement)
            info = self._write_info(name, render_info(seat.device, partition, uuid))
        return build_edits(seat.device, name, uuid, nodes, info)

    def apply_whole(self, device: Device) -> None:
        """See `Backend.apply_whole`. A device without partitions is whole as it is."""
        seat = self._find_seat(device)
        with _device_errors(device.name), self._store.locked():
            if left := [device.partition_name(each) for each in self._existing(seat)]:
                raise DeviceError(f"device {device.name}: has {', '.join(left)}, want it removed first")

    def apply_partition(self, device: Device, partition: Partition) -> None:
        """See `Backend.apply_partition`. Refuses what overlaps or exceeds the device, as hardware would."""
        seat = self._find_seat(device)
        name = device.partition_name(partition)
        _, wanted = _find_placement(seat, name)
        with _device_errors(name), self._store.locked():
            if self._exists(seat, name):
                return
            _refuse_overlap(seat, wanted, self._existing(seat))
            self._store.write(name, render_info(seat.device, wanted, _partition_uuid(seat.device, wanted)))

    def undo_partition(self, device: Device, partition: Partition) -> None:
        """See `Backend.undo_partition`. Works for devices that are gone, too."""
        name = device.partition_name(partition)
        with _device_errors(name), self._store.locked():
            self._store.undo(name)

    def apply_time_slice(self, device: Device, interval: Interval) -> None:
        """See `Backend.apply_time_slice`. The interval is the content of a file named after the device."""
        self._apply_mode(self._time_slices, device, interval)

    def undo_time_slice(self, device: Device) -> None:
        """See `Backend.undo_time_slice`."""
        self._undo_mode(self._time_slices, device)

    def apply_exclusive_process(self, device: Device) -> None:
        """See `Backend.apply_exclusive_process`."""
        self._apply_mode(self._exclusive, device, "exclusive")

    def undo_exclusive_process(self, device: Device) -> None:
        """See `Backend.undo_exclusive_process`."""
        self._undo_mode(self._exclusive, device)

    def _apply_mode(self, store: NameStore, device: Device, word: str) -> None:
        self._find_seat(device)
        with _device_errors(device.name), store.locked():
            store.write(device.name, f"{word}\n".encode())

    @staticmethod
    def _undo_mode(store: NameStore, device: Device) -> None:
        with _device_errors(device.name), store.locked():
            store.undo(device.name)

    def _cut(self, seat: Seat, made: frozenset[str]) -> Device:
        """The device of a seat with the partitions that exist, or that its mode offers."""
        device = seat.device
        there = {(partition.profile, partition.start) for partition in device.partitions}
        ours = [p for p in seat.placements if (p.profile, p.start) not in there and device.partition_name(p) in made]
        if ours:
            every = sorted((*device.partitions, *ours), key=lambda partition: (partition.start, partition.size))
            device = replace(device, partitions=tuple(every))
        return plan_partitions(_with_uuids(device, made), self._partitions.find_mode(device))

    def _read_fleet(self) -> tuple[Fleet, LeftOut | None]:
        """The fleet of the overrides as they are now, built anew only when they change."""
        with self._lock:
            try:
                text = self._read_overrides()
            except (OSError, UnicodeDecodeError) as error:
                return self._fleet, LeftOut(subject="overrides", problem=f"cannot be read, {_reason(error)}")
            if text != self._text:
                self._text = text
                self._problem = self._apply_overrides(text)
            return self._fleet, self._problem

    def _read_overrides(self) -> str:
        """The text of the overrides. What is no file is not opened: a FIFO would keep everybody waiting."""
        path = self._overrides_path
        if path is None or not path.exists():
            return ""
        if not path.is_file() and not path.is_dir():
            raise OSError(0, "not a file")
        return path.read_text("utf-8")

    def _apply_overrides(self, text: str) -> LeftOut | None:
        try:
            overrides = parse_overrides(text, "overrides", self._profile)
        except InvalidError as error:
            return LeftOut(subject="overrides", problem="; ".join(map(str, error.errors)))
        self._fleet = build_fleet(self._profile, self._node_name, overrides)
        return None

    def _find_seat(self, device: Device) -> Seat:
        fleet, _ = self._read_fleet()
        seat = fleet.find(device.name)
        if seat is None:
            raise DeviceError(f"device {device.name}: not on this node")
        return seat

    def _exists(self, seat: Seat, name: DeviceName) -> bool:
        return name in {seat.device.partition_name(partition) for partition in self._existing(seat)}

    def _existing(self, seat: Seat) -> tuple[Partition, ...]:
        """The partitions that the device has now: the administrator's and ours."""
        made = self._store.read_names()
        ours = tuple(p for p in seat.placements if seat.device.partition_name(p) in made)
        return ours + tuple(p for p in seat.device.partitions if p.permanent)

    def _apply_nodes(self, seat: Seat, placement: int | None) -> tuple[tuple[WantedNode, CharacterDevice], ...]:
        wanted = plan_nodes(seat.device, seat.position, placement, self._node_number)
        made = ((node, self._nodes.apply(node.name, node.minor)) for node in wanted)
        return tuple((node, device) for node, device in made if device is not None)

    def _write_info(self, name: DeviceName, content: bytes) -> Path:
        path = self._info_dir / f"{name}.json"
        if not path.is_file() or path.read_bytes() != content:
            ensure_directory(path.parent)
            write_file(path, content)
        return path


@contextmanager
def _device_errors(subject: str) -> Iterator[None]:
    """Turn what the system refuses into the one error of a backend."""
    try:
        yield
    except StateError as error:
        raise DeviceError(f"{subject}: {error}") from error
    except OSError as error:
        raise DeviceError(f"{subject}: {_reason(error)}") from error


def _reason(error: OSError | UnicodeDecodeError) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "not UTF-8 text"
    where = f" ({error.filename})" if error.filename else ""
    return f"{explain_os_error(error)}{where}"


def _find_placement(seat: Seat, name: DeviceName) -> tuple[int, Partition]:
    found = seat.find_placement(name)
    if found is None:
        raise DeviceError(f"partition {name}: the device has no such placement")
    return found


def _partition_uuid(device: Device, partition: Partition) -> str:
    return render_partition_uuid(device.vendor, device.identity, partition.profile, partition.start)


def _refuse_overlap(seat: Seat, wanted: Partition, existing: tuple[Partition, ...]) -> None:
    for partition in existing:
        if wanted.start < partition.start + partition.size and partition.start < wanted.start + wanted.size:
            name, holder = seat.device.partition_name(wanted), seat.device.partition_name(partition)
            raise DeviceError(f"partition {name}: overlaps {holder}")
    taken = Counter(wanted.counters)
    for partition in existing:
        taken.update(partition.counters)
    exceeded = sorted(counter for counter, amount in taken.items() if amount > seat.device.counters.get(counter, 0))
    if exceeded:
        name = seat.device.partition_name(wanted)
        raise DeviceError(f"partition {name}: not enough {', '.join(exceeded)} left on {seat.device.name}")


def _with_uuids(device: Device, made: frozenset[str]) -> Device:
    if not made or not any(device.partition_name(partition) in made for partition in device.partitions):
        return device
    return replace(device, partitions=tuple(_with_uuid(device, partition, made) for partition in device.partitions))


def _with_uuid(device: Device, partition: Partition, made: frozenset[str]) -> Partition:
    exists = device.partition_name(partition) in made
    return replace(partition, uuid=_partition_uuid(device, partition)) if exists else partition
