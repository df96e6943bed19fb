"""Opens NVIDIA's management library (NVML) from where the driver is, and keeps it open.

The module `pynvml` looks for the library in the loader's path alone, which lacks it where a container or a managed
cloud brings the driver. It keeps the library in a global of its own; it is set here and nowhere else.
"""

import ctypes
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pynvml
import structlog

from dra_driver.devices.nvidia.driver_root import DriverRoot
from dra_driver.devices.nvidia.nvml_error import explain_nvml_error
from dra_driver.errors import DeviceError

log = structlog.get_logger(__name__)

NVML: Final = "libnvidia-ml.so.1"

_MISMATCH: Final = (
    f"{NVML}: its version is not that of the kernel module, as after an update of the driver; want the node rebooted, "
    "or the kernel module loaded anew"
)

Load = Callable[[Path], Any]
"""Loads the library at a path and returns the module of its functions. Raises OSError if it cannot be loaded."""


def load_library(path: Path) -> Any:
    """Let `pynvml` call the library at this path, whatever it called before. Raises OSError if it is unusable."""
    library = ctypes.CDLL(str(path))
    with pynvml.libLoadLock:
        pynvml.nvmlLib = library
        pynvml._nvmlGetFunctionPointer_cache.clear()  # noqa: SLF001 - functions of the library before
    return pynvml


class NvmlLibrary:
    """The library below a driver's root. It is opened when it is first needed, and looked for again until it is there.

    Methods may be called from several threads.
    """

    def __init__(self, root: DriverRoot, *, load: Load = load_library) -> None:
        self._root = root
        self._load = load
        self._lock = threading.Lock()
        self._nvml: Any = None
        self._absence: str | None = None

    @property
    def absence(self) -> str | None:
        """Why there is no library, as the last try found; None if there is one."""
        return self._absence

    def open(self) -> Any:
        """Return the module of the library's functions, ready for calls; None where no driver is installed or loaded.

        Raises DeviceError if there is a driver that cannot be used.
        """
        with self._lock:
            if self._nvml is not None:
                return self._nvml
            path = self._root.find_library(NVML)
            if path is None:
                return self._miss(f"{NVML}: not below {str(self._root.path)!r}, want the NVIDIA driver installed there")
            nvml = self._load_from(path)
            try:
                nvml.nvmlInit()
            except pynvml.NVMLError as error:
                if error.value == pynvml.NVML_ERROR_DRIVER_NOT_LOADED:
                    return self._miss(f"{NVML}: the kernel module 'nvidia' is not loaded")
                if error.value == pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH:
                    raise DeviceError(_MISMATCH) from error
                raise DeviceError(f"{NVML}: {explain_nvml_error(error)}") from error
            self._nvml, self._absence = nvml, None
            log.info("library opened", library=str(path))
            return nvml

    def close(self) -> None:
        """Close the library, so that the next call opens it anew: after the driver was unloaded or updated, say."""
        with self._lock:
            if self._nvml is None:
                return
            nvml, self._nvml = self._nvml, None
            try:
                nvml.nvmlShutdown()
            except pynvml.NVMLError as error:
                log.warning("library not closed", error=explain_nvml_error(error))

    def _load_from(self, path: Path) -> Any:
        try:
            return self._load(path)
        except OSError as error:
            raise DeviceError(f"{path}: {error}, want a library for this machine and its C library") from error

    def _miss(self, why: str) -> None:
        if why != self._absence:
            log.info("no NVIDIA devices", reason=why)
        self._absence = why
