"""Verdicts on disk, so that a plugin that starts knows what the last one knew: one small file."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from dra_driver.api.meta_v1 import Wire
from dra_driver.devices.model import DeviceName, Health
from dra_driver.errors import StateError, explain_os_error
from dra_driver.file import write_file
from kubeletplugin.health.verdict import Memory

VERSION = 1


class DeviceRecord(Wire, frozen=True, kw_only=True):
    """One device that was ill; times are of the clock that counts from the boot."""

    name: str
    reason: str
    message: str
    illnesses: int = 1
    well_since_s: float | None = None
    is_ill: bool = False


class HealthRecord(Wire, frozen=True, kw_only=True):
    """The file."""

    version: int
    boot_id: str = ""
    devices: tuple[DeviceRecord, ...] = ()


def read_memories(path: Path) -> tuple[dict[DeviceName, Memory], str]:
    """Return what is remembered and the boot in which it was written. No file is nothing. Raises StateError."""
    try:
        if os.path.lexists(path) and not path.is_file():  # a FIFO would keep the reader waiting
            raise StateError(f"{path}: not a file, want the health of devices")
        record = msgspec.json.decode(path.read_bytes(), type=HealthRecord)
    except FileNotFoundError:
        return {}, ""
    except OSError as error:
        raise StateError(f"{path}: {explain_os_error(error)}") from error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise StateError(f"{path}: {error}") from error
    if record.version != VERSION:
        raise StateError(f"{path}: version {record.version}, want {VERSION}")
    return {DeviceName(each.name): _memory(each) for each in record.devices}, record.boot_id


def write_memories(path: Path, memories: dict[DeviceName, Memory], boot_id: str) -> None:
    """Replace the file, while no other plugin of the node does. Raises StateError."""
    devices = tuple(_record(name, memories[name]) for name in sorted(memories))
    data = msgspec.json.encode(HealthRecord(version=VERSION, boot_id=boot_id, devices=devices))
    with _alone_in(path.parent):
        write_file(path, data)


@contextlib.contextmanager
def _alone_in(directory: Path) -> Iterator[None]:
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise StateError(f"{directory}: {explain_os_error(error)}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _memory(record: DeviceRecord) -> Memory:
    return Memory(
        health=Health(reason=record.reason, message=record.message),
        illnesses=max(record.illnesses, 1),
        well_since_s=record.well_since_s,
        is_ill=record.is_ill,
    )


def _record(name: DeviceName, memory: Memory) -> DeviceRecord:
    return DeviceRecord(
        name=name,
        reason=memory.health.reason,
        message=memory.health.message,
        illnesses=memory.illnesses,
        well_since_s=memory.well_since_s,
        is_ill=memory.is_ill,
    )
