"""Spec files of one directory, written so that nobody ever sees half of one.

A container runtime watches the directory and reads every `*.json` and `*.yaml` in it, also those whose name starts
with a dot. So a spec is written to a temporary file that ends otherwise, synced and renamed, and the directory is
synced. The temporary file lies in the same directory, because a rename across directories would not be atomic, and
because the reference library refreshes when a file is renamed away, not when one appears.
"""

import errno
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from cdi.codec import decode_spec, encode_spec
from cdi.errors import InvalidNameError, StoreError
from cdi.file import replace_file, sync_directory
from cdi.filesystem import FileSystem, OsFileSystem
from cdi.spec import Spec
from cdi.validation import require_valid

_SUFFIX: Final = ".json"
_MODE: Final = 0o644
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:+-]*")
_LEFTOVER: Final = re.compile(r"\.(?P<name>[A-Za-z0-9][A-Za-z0-9._:+-]*)\.json\.[0-9a-f]{16}\.tmp")
_NAME_MAX: Final = 255 - len("..json.0123456789abcdef.tmp")

_REASONS: Final = {
    errno.ENOENT: "the directory is missing, want an existing one",
    errno.ENOTDIR: "a file stands in the place of the directory, want a directory",
    errno.EACCES: "no permission, want to run as a user who may use it",
    errno.EPERM: "no permission, want to run as a user who may use it",
    errno.EROFS: "the file system is read-only, want a writable one",
    errno.ENOSPC: "no space left on the file system, want some free",
    errno.EDQUOT: "the disk quota is used up, want some free",
    errno.EISDIR: "a directory stands in the place of the file, want it gone",
    errno.EIO: "the disk reports an error, want a working one",
}


class SpecStore:
    """The spec files in `directory`, which must exist.

    A spec goes by the name of its file without `.json`, for example `build_spec_name(kind, claim_uid)`. Other writers
    may use the directory at the same time, since nothing is touched but the files that are named. All methods block.
    """

    def __init__(self, directory: Path, filesystem: FileSystem | None = None) -> None:
        self.directory = directory
        self._files = filesystem if filesystem is not None else OsFileSystem()

    def write_spec(self, name: str, spec: Spec) -> Path:
        """Write a spec, over an older one of the same name, and return its path. When this returns, it is on the disk.

        If the file holds the same bytes already, it is left alone, so that no runtime reads it anew.
        Raises InvalidNameError, InvalidSpecError, or StoreError; then the older spec is still there, or, if only the
        last sync of the directory went wrong, the new one.
        """
        path = self._path(name)
        require_valid(spec, f"spec {name!r}")
        data = encode_spec(spec)
        with self._mapped(path):
            if self._read(path) != data:
                temporary = self.directory / f".{path.name}.{secrets.token_hex(8)}.tmp"
                replace_file(self._files, path, data, temporary=temporary, mode=_MODE)
            sync_directory(self._files, self.directory)
        return path

    def remove_spec(self, name: str) -> bool:
        """Remove a spec and return whether there was one. When this returns, it is off the disk.

        Without the directory there is no spec either, so that is no error.
        Raises InvalidNameError or StoreError.
        """
        path = self._path(name)
        removed = False
        with self._mapped(path):
            with suppress(FileNotFoundError):
                self._files.remove(path)
                removed = True
            with suppress(FileNotFoundError):
                sync_directory(self._files, self.directory)
        return removed

    def read_spec(self, name: str) -> Spec | None:
        """Read a spec; None if there is none. Raises InvalidNameError, InvalidSpecError or StoreError."""
        path = self._path(name)
        with self._mapped(path):
            data = self._read(path)
        return decode_spec(data, str(path)) if data is not None else None

    def read_names(self, prefix: str = "") -> tuple[str, ...]:
        """Return the names of all specs that start with `prefix`, sorted. Raises StoreError."""
        with self._mapped(self.directory):
            files = self._files.list_names(self.directory)
        names = (file.removesuffix(_SUFFIX) for file in files if file.endswith(_SUFFIX))
        return tuple(sorted(name for name in names if name.startswith(prefix) and not _name_problem(name)))

    def read_leftovers(self, prefix: str = "") -> tuple[str, ...]:
        """Return the names of the specs, of those that start with `prefix`, whose writers were killed or are writing.

        Sorted, each once. Raises StoreError.
        """
        return tuple(sorted({name for name, _ in self._leftovers(prefix)}))

    def remove_leftovers(self, prefix: str = "") -> tuple[str, ...]:
        """Remove the temporary files of writers that were killed, and return their names, sorted.

        `prefix` is that of the names of the specs that were being written. To be called while nobody writes such specs,
        best once at the start: the temporary file of a living writer is removed as well. Raises StoreError.
        """
        removed = []
        for _, file in self._leftovers(prefix):
            with self._mapped(self.directory), suppress(FileNotFoundError):
                self._files.remove(self.directory / file)
                removed.append(file)
        return tuple(removed)

    def _leftovers(self, prefix: str) -> list[tuple[str, str]]:
        """The names of specs, and of the temporary files of each, in the order of the latter."""
        with self._mapped(self.directory):
            files = sorted(self._files.list_names(self.directory))
        matches = (match for file in files if (match := _LEFTOVER.fullmatch(file)) is not None)
        return [(match["name"], match[0]) for match in matches if match["name"].startswith(prefix)]

    def _path(self, name: str) -> Path:
        if problem := _name_problem(name):
            raise InvalidNameError(f"spec name {name!r}", [problem])
        return self.directory / f"{name}{_SUFFIX}"

    def _read(self, path: Path) -> bytes | None:
        try:
            return self._files.read(path)
        except FileNotFoundError:
            return None

    @contextmanager
    def _mapped(self, path: Path) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = _REASONS.get(error.errno or 0, (error.strerror or str(error)).lower())
            raise StoreError(f"{path}: {reason}", errno=error.errno or 0) from error


def _name_problem(name: str) -> str | None:
    if not _NAME.fullmatch(name):
        wanted = "letters, digits, '.', '_', ':', '+' and '-' after a first letter or digit"
        return f"cannot be the name of a file, want {wanted}"
    if name.endswith((".json", ".yaml")):
        return "has an extension, want the name without one"
    if len(name) > _NAME_MAX:
        return f"{len(name)} characters, want at most {_NAME_MAX}"
    return None
