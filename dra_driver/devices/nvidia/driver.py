"""The parts of an installed driver that a container needs: libraries, programs, perhaps a toolkit's hook."""

from collections.abc import Iterator
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
    """A library file: its path in the driver's root, and the other names in its folder that lead to it."""

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

    The libraries are those for computing, management and video, of the version that `libcuda.so.1` has; libraries of
    another version, as an update leaves them for a while, do not mix in.
    """
    folders = root.read_library_folders()
    cuda = _find_cuda(root, folders)
    version = _version_of(cuda)
    folders = tuple(dict.fromkeys((cuda.rpartition("/")[0], *folders)))
    libraries: dict[str, Library] = {}
    for folder in (*folders, *(f"{folder}/vdpau" for folder in folders)):
        for library in _read_libraries(root, folder, version):
            libraries.setdefault(library.path.rpartition("/")[2], library)
    programs = (root.find_program(name) for name in PROGRAMS)
    return Driver(
        version=version,
        libraries=tuple(libraries[name] for name in sorted(libraries)),
        programs=tuple(program for program in programs if program is not None),
        hook=next((hook for hook in _HOOKS if root.find_on_host(hook) is not None), None),
    )


def _find_cuda(root: DriverRoot, folders: tuple[str, ...]) -> str:
    for folder in folders:
        path = root.resolve(f"{folder}/{CUDA}")
        if path is not None and "." in _version_of(path) and root.is_loadable(path):
            return path
    raise DeviceError(f"{CUDA}: not below {str(root.path)!r}, want --driver-root to be where the driver is installed")


def _version_of(path: str) -> str:
    return path.rpartition("/")[2].removeprefix("libcuda.so.")


def _read_libraries(root: DriverRoot, folder: str, version: str) -> Iterator[Library]:
    """The libraries of that version, and the links beside them: only names that begin as theirs are followed."""
    names = root.read_folder(folder)
    for name in names:
        stem, _, found = name.partition(".so.")
        if found != version or stem.startswith(_GRAPHICS):
            continue
        path = root.resolve(f"{folder}/{name}")
        if path is not None and root.is_loadable(path):
            others = (each for each in names if each.startswith(f"{stem}.so") and each != name)
            yield Library(path, tuple(each for each in others if root.resolve(f"{folder}/{each}") == path))
