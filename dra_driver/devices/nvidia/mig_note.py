"""What this driver made of MIG on the node: one small file each, written before the hardware is touched.

NVML has no labels, so nothing on a GPU tells whose an instance is. An instance of which there is no note was made by
somebody else, and is theirs. The name of a file is the partition's, or a whole GPU's that was switched to MIG mode.
Instances end with a reboot, so notes of another boot count for nothing: by then somebody else may have made the same.
They end when the kernel's driver lets go of a GPU, too, as when its module is loaded again: so what is noted of a GPU
ends with its *binding*, a number that is another one each time the driver takes the GPU on.

A note goes only when the GPU was seen without the instance. One that is to be removed while the GPU does not answer,
or denies what it had, is kept, marked as left: should the instance be there after all, it is still known for ours.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from dra_driver.errors import StateError, explain_os_error
from dra_driver.file import hold_directory, read_names, remove_file, write_file

T = TypeVar("T")

_SUFFIX: Final = ".json"
_BINDING_SUFFIX: Final = ".binding"


class MigNote(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`uuid` is the MIG device's once it was made whole; None before, and for a GPU's mode.

    `left` is what nobody uses any more, and what the GPU was not seen without yet.
    """

    boot: str
    uuid: str | None = None
    left: bool = False


class _Binding(msgspec.Struct, frozen=True, kw_only=True):
    boot: str
    number: int


class MigNotes:
    """Notes in a directory, of one boot. Raises StateError if the directory cannot be read or written.

    Where the boot is not known (None) there are no notes, and none can be written: nothing could tell whose they are.
    """

    def __init__(self, directory: Path, *, boot_id: str | None) -> None:
        self._directory = directory
        self._boot_id = boot_id

    @contextlib.contextmanager
    def locked(self, device: str) -> Iterator[None]:
        """Hold other threads and other processes off what is noted of a device: one that hangs holds up no other."""
        with hold_directory(self._directory, device):
            yield

    def find(self, name: str) -> MigNote | None:
        """The note of that name; None if there is none of this boot, or it cannot be understood."""
        note = _read(self._path(name), MigNote)
        return note if note is not None and note.boot == self._boot_id else None

    def write(self, name: str, uuid: str | None = None) -> None:
        """Note that something is made, or about to be; once this returns it outlives a power cut."""
        if self._boot_id is None:
            raise StateError("boot id: unknown, want it readable, since what is made of MIG ends with the boot")
        self._write(name, MigNote(boot=self._boot_id, uuid=uuid))

    def leave(self, name: str) -> None:
        """Keep the note of what nobody uses any more, until the GPU is seen without it. None there is success."""
        if (note := self.find(name)) is not None and not note.left:
            self._write(name, msgspec.structs.replace(note, left=True))

    def find_left(self, prefix: str) -> frozenset[str]:
        """The names, of those that begin so, whose notes are left."""
        files = (file for file in read_names(self._directory) if file.startswith(prefix) and file.endswith(_SUFFIX))
        notes = ((file.removesuffix(_SUFFIX), self.find(file.removesuffix(_SUFFIX))) for file in files)
        return frozenset(name for name, note in notes if note is not None and note.left)

    def is_current(self, device: str, binding: int | None) -> bool:
        """Whether nothing is noted of a device from before this binding, as far as that is known."""
        known = _read(self._binding_path(device), _Binding)
        return binding is None or known is None or known.boot != self._boot_id or known.number == binding

    def renew(self, device: str, binding: int | None) -> None:
        """Forget what was noted of a device before this binding. Callers hold the lock."""
        if binding is None or self._boot_id is None:
            return
        if not self.is_current(device, binding):
            for file in read_names(self._directory):
                if file == f"{device}{_SUFFIX}" or (file.startswith(f"{device}-") and file.endswith(_SUFFIX)):
                    remove_file(self._directory / file)
        wanted = _Binding(boot=self._boot_id, number=binding)
        if _read(self._binding_path(device), _Binding) != wanted:
            write_file(self._binding_path(device), msgspec.json.encode(wanted), mode=0o600)

    def remove(self, name: str) -> None:
        """Forget it. Gone already is success."""
        remove_file(self._path(name))

    def _write(self, name: str, note: MigNote) -> None:
        write_file(self._path(name), msgspec.json.encode(note), mode=0o600)

    def _path(self, name: str) -> Path:
        return self._directory / f"{name}{_SUFFIX}"

    def _binding_path(self, device: str) -> Path:
        return self._directory / f"{device}{_BINDING_SUFFIX}"


def _read(path: Path, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StateError(f"{path}: {explain_os_error(error)}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None  # never half written but by a power cut, and that ended the instance, too
