"""Where the vendor's driver is on the host, and how this process sees the host.

Three namings of one file are kept apart:
- the *driver's* path, as its own links and the loader's cache have it: `/usr/lib64/libcuda.so.1`
- the *host* path, which a CDI spec needs: `/run/nvidia/driver/usr/lib64/libcuda.so.1` where a container has the driver
- the path that *this process* opens: `/host/run/nvidia/driver/usr/lib64/libcuda.so.1` in a Pod with the host at `/host`

Links are followed as the driver's own root would have them: an absolute link does not leave it.
"""

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from dra_driver.devices.nvidia.loader_cache import parse_loader_cache

_ROOT: Final = PurePosixPath("/")
_MOST_LINKS: Final = 40
_ELF_64: Final = b"\x7fELF\x02"
_MODULE_VERSION: Final = re.compile(r"Kernel Module\b.*?\s([0-9]+(?:\.[0-9]+)+)\s")

MACHINE: Final = os.uname().machine
"""The kind of processor, as folders of libraries are named after it."""

LIBRARY_FOLDERS: Final = (
    f"/usr/lib/{MACHINE}-linux-gnu",
    "/usr/lib64",
    f"/lib/{MACHINE}-linux-gnu",
    "/lib64",
    f"/usr/lib/{MACHINE}-linux-gnu/nvidia/current",
    "/usr/local/nvidia/lib64",
    "/usr/local/glibc/usr/lib",
    "/run/opengl-driver/lib",
    "/usr/lib",
)
"""Where drivers are installed, besides the loader's folders. Below the driver root of a cloud it is `/lib64`."""

PROGRAM_FOLDERS: Final = (
    "/usr/bin",
    "/bin",
    "/usr/sbin",
    "/usr/local/bin",
    "/usr/local/nvidia/bin",
    "/opt/bin",
    "/run/current-system/sw/bin",
)
"""Where the driver's programs are installed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverRoot:
    """A driver's root folder.

    `path` is where the host has it (`--driver-root`), `host` is where this process sees the host's root.
    `proc` is any `/proc` of this kernel: the driver's part of it is the same in all of them.
    """

    path: PurePosixPath = _ROOT
    host: Path = Path("/")
    proc: Path = Path("/proc")

    def host_path(self, driver_path: str) -> str:
        """Return the host path of a path of the driver."""
        return str(self.path / driver_path.lstrip("/"))

    def resolve(self, driver_path: str) -> str | None:
        """Return the driver's path with all links followed, None if nothing is there."""
        return _resolve(self._seen(), driver_path)

    def find(self, driver_path: str) -> Path | None:
        """Return the path by which this process opens what is there, with all links followed; None if nothing is."""
        resolved = self.resolve(driver_path)
        return self._seen() / resolved.lstrip("/") if resolved is not None else None

    def has_program(self, host_path: str) -> bool:
        """Whether the host has a program there, below or beside the driver's root."""
        resolved = _resolve(self.host, host_path)
        return resolved is not None and _is_program(self.host / resolved.lstrip("/"))

    def find_library(self, name: str) -> Path | None:
        """Return the path by which this process loads a library (`libnvidia-ml.so.1`), None if it is not there.

        One of the kernel module's version comes before others, which an update leaves for a while.
        """
        found = [self.find(f"{folder}/{name}") for folder in self.read_library_folders()]
        usable = [path for path in found if path is not None and _is_loadable(path)]
        suffix = f".so.{self.read_module_version()}"
        return next((path for path in usable if path.name.endswith(suffix)), next(iter(usable), None))

    def find_program(self, name: str) -> str | None:
        """Return the driver's path of a program with its links followed, None if it is not there."""
        for folder in PROGRAM_FOLDERS:
            if (found := self.find(f"{folder}/{name}")) is not None and _is_program(found):
                return self.resolve(f"{folder}/{name}")
        return None

    def read_library_folders(self) -> tuple[str, ...]:
        """Return the driver's paths of the folders that may have its libraries: the loader's first, then usual ones."""
        cache = self.find("/etc/ld.so.cache")
        try:
            entries = parse_loader_cache(cache.read_bytes()) if cache is not None else ()
        except OSError:
            entries = ()
        known = (
            path.rpartition("/")[0] for name, path in entries if name.startswith(("libcuda.so", "libnvidia-ml.so"))
        )
        resolved = (self.resolve(folder) for folder in (*known, *LIBRARY_FOLDERS))
        return tuple(dict.fromkeys(folder for folder in resolved if folder is not None))

    def read_module_version(self) -> str | None:
        """Return the version of the driver's kernel module (`550.54.15`), None if it is not loaded."""
        try:
            text = (self.proc / "driver/nvidia/version").read_text("ascii", "replace")
        except OSError:
            return None
        found = _MODULE_VERSION.search(text)
        return found.group(1) if found else None

    def read_folder(self, folder: str) -> tuple[str, ...]:
        """Return the names in a folder of the driver, sorted; nothing if it cannot be read."""
        seen = self.find(folder)
        try:
            return tuple(sorted(each.name for each in seen.iterdir())) if seen is not None else ()
        except OSError:
            return ()

    def is_loadable(self, driver_path: str) -> bool:
        """Whether it is a library of this machine's word size."""
        found = self.find(driver_path)
        return found is not None and _is_loadable(found)

    def _seen(self) -> Path:
        """The driver's root as this process sees it. It may itself be a link on the host."""
        resolved = _resolve(self.host, str(self.path))
        return self.host / (resolved if resolved is not None else str(self.path)).lstrip("/")


def _is_program(path: Path) -> bool:
    """Whether it may be run where it stands: this process may see it through a mount that forbids it."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) and bool(mode & 0o111)


def _is_loadable(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_ELF_64)) == _ELF_64
    except OSError:
        return False


def _resolve(root: Path, path: str) -> str | None:
    """Follow links as if `root` were `/`: the whole path without links, or None if nothing is there."""
    done: list[str] = []
    left = path.split("/")[::-1]
    links = 0
    while left:
        part = left.pop()
        if part in {"", "."}:
            continue
        if part == "..":
            done = done[:-1]
            continue
        seen = root.joinpath(*done, part)
        try:
            if not stat.S_ISLNK(seen.lstat().st_mode):
                done.append(part)
                continue
            target = seen.readlink()
        except OSError:
            return None
        links += 1
        if links > _MOST_LINKS:
            return None
        if target.is_absolute():
            done = []
        left += str(target).split("/")[::-1]
    return "/" + "/".join(done)
