"""The parts of an installed driver that a container needs: libraries, programs, perhaps a toolkit's hook."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dra_driver.devices.nvidia.driver_root import DriverRoot
from dra_driver.errors import DeviceError

CUDA: Final = "libcuda.so.1"

PROGRAMS: Final = ("nvidia-smi", "nvidia-debugdump", "nvidia-cuda-mps-control", "nvidia-cuda-mps-server")
"""What a container may run; what the driver does not have is left out."""

_HOOKS: Final = (
    "/usr/bin/nvidia-cdi-hook",
    "/usr/local/nvidia/toolkit/nvidia-cdi-hook",
    "/usr/bin/nvidia-ctk",
    "/usr/local/nvidia/toolkit/nvidia-ctk",
)

_APART: Final = ("libnvidia-nvvm70",)
"""Libraries of the driver that are numbered in their own way."""

_ASKED_FOR: Final = {"libcuda": "libcuda.so", "libnvidia-opticalflow": "libnvidia-opticalflow.so"}
"""Names that programs ask for and that not every installer makes, by library."""

_GRAPHICS: Final = (
    "libEGL",
    "libGL",
    "libGLX",
    "libXvMC",
    "libnvidia-api",
    "libnvidia-egl",
    "libnvidia-fbc",
    "libnvidia-gl",
    "libnvidia-gtk",
    "libnvidia-ifr",
    "libnvidia-ngx",
    "libnvidia-present",
    "libnvidia-rtcore",
    "libnvidia-tls",
    "libnvidia-vulkan",
    "libnvidia-wayland",
    "libnvidia-xcb",
    "libnvoptix",
)


@dataclass(frozen=True, slots=True)
class Library:
    """A library file: its path in the driver's root, and the other names by which programs ask for it."""

    path: str
    links: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """What is installed. Paths are those of the driver's root, but `hook` is a host path.

    `hook` is the program of a vendor's toolkit that makes links and the loader's cache in a container, if there is one.
    """

    version: str
    libraries: tuple[Library, ...]
    programs: tuple[str, ...] = ()
    hook: str | None = None


def read_driver(root: DriverRoot) -> Driver:
    """Look through the driver's root. Raises DeviceError if there is no driver.

    The libraries are those for computing, management and video, of the version that the kernel module has, else that of
    the first `libcuda.so.1`; libraries of another version, as an update leaves them for a while, do not mix in.
    """
    folders = root.read_library_folders()
    cuda = _find_cuda(root, folders)
    version = _version_of(cuda)
    folders = tuple(dict.fromkeys((_folder(cuda), *folders)))
    programs = (root.find_program(name) for name in PROGRAMS)
    return Driver(
        version=version,
        libraries=_read_libraries(root, (*folders, *(f"{folder}/vdpau" for folder in folders)), version),
        programs=tuple(program for program in programs if program is not None),
        hook=next((hook for hook in _HOOKS if root.has_program(hook)), None),
    )


def _find_cuda(root: DriverRoot, folders: tuple[str, ...]) -> str:
    """The library's file. Beside the driver's there may be that of a package for compatibility, or of an old driver."""
    found = [path for folder in folders if (path := root.resolve(f"{folder}/{CUDA}")) is not None]
    usable = [path for path in found if "." in _version_of(path) and root.is_loadable(path)]
    if not usable:
        raise DeviceError(
            f"{CUDA}: not below {str(root.path)!r}, want --driver-root to be where the driver is installed"
        )
    wanted = root.read_module_version()
    return next((path for path in usable if _version_of(path) == wanted), usable[0])


def _version_of(path: str) -> str:
    return _name(path).removeprefix("libcuda.so.")


def _read_libraries(root: DriverRoot, folders: Sequence[str], version: str) -> tuple[Library, ...]:
    """The libraries of that version by name, and the links to them, which need not be in the same folder."""
    names = [(folder, name) for folder in folders for name in root.read_folder(folder) if ".so" in name]
    found: dict[str, str] = {}
    for folder, name in names:
        if _is_wanted(name, version):
            path = root.resolve(f"{folder}/{name}")
            if path is not None and root.is_loadable(path):
                found.setdefault(_name(path), path)
    stems = frozenset(map(_stem, found))
    links = {path: {_ASKED_FOR[_stem(name)]} if _stem(name) in _ASKED_FOR else set() for name, path in found.items()}
    for folder, name in names:
        path = root.resolve(f"{folder}/{name}") if _stem(name) in stems else None
        if path is not None and path in links and _name(path) != name and _stem(_name(path)) == _stem(name):
            links[path].add(name)
    return tuple(Library(found[name], tuple(sorted(links[found[name]]))) for name in sorted(found))


def _is_wanted(name: str, version: str) -> bool:
    stem, _, found = name.partition(".so.")
    return (found == version or (stem in _APART and bool(found))) and not stem.startswith(_GRAPHICS)


def _stem(name: str) -> str:
    return name.partition(".so")[0]


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _folder(path: str) -> str:
    return path.rpartition("/")[0]
