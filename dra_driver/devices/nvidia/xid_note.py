"""The XIDs of GPUs on disk: one small file a GPU, so that a plugin that starts knows what NVML told the last one.

NVML tells of an XID once. What it told counts until the GPU was reset, as far as that can be seen: the node was booted,
the kernel's driver took the GPU on anew (the module was loaded again, or the GPU was unbound or removed in between), or
the GPU was lost or wanted a reset, and answers and wants none. Whoever knows better removes the file.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec
import structlog

from dra_driver.devices.model import DeviceName
from dra_driver.errors import StateError, explain_os_error
from dra_driver.file import hold_directory, read_names, remove_file, write_file

log = structlog.get_logger(__name__)

_SUFFIX: Final = ".json"


class XidNote(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known of one GPU since it was reset last.

    `boot` is None if that was not known: then nobody can tell that there was another one. `xids` are in the order in
    which they came, each once. `binding` tells apart the times that the kernel's driver took
    the GPU on, in one boot; None until it was read. `wanted_reset` says that the GPU was lost or wanted a reset since.
    """

    boot: str | None
    xids: tuple[int, ...]
    binding: int | None = None
    wanted_reset: bool = False


def plan_note(note: XidNote, *, boot: str | None, binding: int | None, wants_reset: bool | None) -> XidNote | None:
    """Return what is to be remembered after a look at the GPU; None if it was reset. Pure.

    `wants_reset` is None while nobody can tell, since the GPU does not answer.
    """
    known = note.binding if note.binding is not None else binding
    if _is_of_another(note, boot) or (binding is not None and binding != known):
        return None
    if note.wanted_reset and wants_reset is False:
        return None
    wanted_reset = note.wanted_reset or bool(wants_reset)
    return msgspec.structs.replace(note, boot=note.boot or boot, binding=known, wanted_reset=wanted_reset)


class XidNotes:
    """Notes in a directory. Any thread may call; another process may write there, too.

    What cannot be written is kept in memory and written later; what cannot be read is as none. Both are logged once.
    """

    def __init__(self, directory: Path, *, boot_id: str | None) -> None:
        self._directory = directory
        self._boot_id = boot_id
        self._lock = threading.Lock()
        self._unwritten: dict[DeviceName, tuple[int, ...]] = {}
        self._told: set[str] = set()

    def add(self, name: DeviceName, *xids: int) -> None:
        """Note XIDs of a GPU; once this returns they outlive a power cut, unless the disk refuses."""
        with self._lock:
            xids = (*self._unwritten.pop(name, ()), *xids)
            try:
                with hold_directory(self._directory):
                    self._write(name, _with_xids(self._find(name), xids, self._boot_id))
            except StateError as error:
                self._unwritten[name] = xids
                self._tell("XID not written", error)

    def read(self) -> dict[DeviceName, XidNote]:
        """Return all notes, also those of earlier boots. What could not be written before is tried again."""
        for name in tuple(self._unwritten):
            self.add(name)
        try:
            files = sorted(read_names(self._directory))
        except StateError as error:
            self._tell("XIDs not readable", error)
            files = []
        names = [DeviceName(each.removesuffix(_SUFFIX)) for each in files if _is_note(each)]
        with self._lock:
            found = {name: self._find_whole(name) for name in dict.fromkeys((*names, *self._unwritten))}
        return {name: note for name, note in found.items() if note is not None}

    def update(self, name: DeviceName, plan: Callable[[XidNote], XidNote | None]) -> None:
        """Let `plan` say what remains of a note, and write that. Nobody else changes it meanwhile."""
        with self._lock, self._refusals("XIDs not updated"), hold_directory(self._directory):
            note = self._find_whole(name)
            if note is None or (planned := plan(note)) == note:
                return
            if planned is None:
                remove_file(self._path(name))
            else:
                self._write(name, planned)
            self._unwritten.pop(name, None)

    def _find_whole(self, name: DeviceName) -> XidNote | None:
        """The note on the disk, with what could not be written there."""
        note, xids = self._find(name), self._unwritten.get(name)
        return _with_xids(note, xids, self._boot_id) if xids is not None else note

    def _find(self, name: DeviceName) -> XidNote | None:
        path = self._path(name)
        try:
            return msgspec.json.decode(path.read_bytes(), type=XidNote)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._tell("XIDs not readable", StateError(f"{path}: {explain_os_error(error)}"))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            self._tell("XIDs not readable", StateError(f"{path}: {error}"))
        return None

    def _write(self, name: DeviceName, note: XidNote) -> None:
        write_file(self._path(name), msgspec.json.encode(note), mode=0o600)

    def _path(self, name: DeviceName) -> Path:
        return self._directory / f"{name}{_SUFFIX}"

    @contextlib.contextmanager
    def _refusals(self, event: str) -> Iterator[None]:
        try:
            yield
        except StateError as error:
            self._tell(event, error)

    def _tell(self, event: str, error: StateError) -> None:
        if str(error) not in self._told:
            self._told.add(str(error))
            log.warning(event, error=str(error))


def _is_note(file: str) -> bool:
    return file.endswith(_SUFFIX) and not file.startswith(".")


def _is_of_another(note: XidNote, boot: str | None) -> bool:
    return None not in {note.boot, boot} and note.boot != boot


def _with_xids(note: XidNote | None, xids: tuple[int, ...], boot: str | None) -> XidNote:
    if note is None or _is_of_another(note, boot):
        return XidNote(boot=boot, xids=tuple(dict.fromkeys(xids)))
    return msgspec.structs.replace(note, xids=tuple(dict.fromkeys((*note.xids, *xids))))
