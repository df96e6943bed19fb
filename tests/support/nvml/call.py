"""What every call of the fake library goes through: a count, errors on demand, the state of library and GPU."""

import functools
from collections import Counter
from collections.abc import Callable
from ctypes import c_void_p, cast
from dataclasses import dataclass
from threading import RLock
from typing import Any, Concatenate, ParamSpec, TypeVar

import pynvml

from tests.support.nvml.machine import Gpu, Machine

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound="Calls")

_HANDLES = 0x10000


@dataclass(slots=True)
class Fault:
    """An error for calls of one function; of one GPU if `uuid` is given; `times` counts down, None is for ever."""

    function: str
    error: int
    uuid: str | None
    times: int | None


class Calls:
    """The machine, and what is to fail. GPUs are found by handles of the library's own type.

    A handle means a GPU, wherever it stands in the machine's list; one of a GPU that was pulled is lost.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.counts: Counter[str] = Counter()
        self.lock = RLock()
        self.users = 0
        self._faults: list[Fault] = []
        self._handles: dict[int, Gpu] = {}

    def fail(self, function: str, error: int, *, gpu: Gpu | None = None, times: int | None = None) -> None:
        """Let calls of a function raise an NVMLError: of one GPU, that many times."""
        with self.lock:
            self._faults.append(Fault(function, error, gpu.uuid if gpu is not None else None, times))

    def mend(self) -> None:
        """Let nothing fail any more."""
        with self.lock:
            self._faults.clear()

    def find(self, handle: Any) -> Gpu:
        """The GPU of a handle."""
        gpu = self._handles.get(cast(handle, c_void_p).value or 0)
        if gpu is None:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        return gpu

    def handle(self, gpu: Gpu) -> Any:
        """The handle of a GPU: always the same one."""
        address = next((key for key, value in self._handles.items() if value is gpu), None)
        if address is None:
            address = _HANDLES + len(self._handles)
            self._handles[address] = gpu
        return cast(c_void_p(address), pynvml.c_nvmlDevice_t)

    def enter(self, function: str, gpu: Gpu | None) -> None:
        """Count a call, and raise what it is to fail with."""
        self.counts[function] += 1
        self.refuse(function, gpu)

    def refuse(self, function: str, gpu: Gpu | None) -> None:
        """Raise what a call is to fail with: of one GPU, or because that is gone."""
        for fault in self._faults:
            if fault.function == function and fault.uuid in {None, gpu.uuid if gpu else None} and fault.times != 0:
                if fault.times is not None:
                    fault.times -= 1
                raise pynvml.NVMLError(fault.error)
        if gpu is not None and (gpu.lost or gpu not in self.machine.gpus):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)


def system_call(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Make a method a function of the library that needs it initialised."""

    @functools.wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.lock:
            self.enter(method.__name__, None)
            _require_ready(self)
            return method(self, *args, **kwargs)

    return call


def device_call(method: Callable[Concatenate[S, Gpu, P], R]) -> Callable[Concatenate[S, Any, P], R]:
    """Make a method a function of the library whose first argument is a GPU's handle."""

    @functools.wraps(method)
    def call(self: S, handle: Any, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.lock:
            _require_ready(self)
            gpu = self.find(handle)
            self.enter(method.__name__, gpu)
            return method(self, gpu, *args, **kwargs)

    return call


def require(value: R | None) -> R:
    """Raise what the library raises for what a GPU does not have."""
    if value is None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
    return value


def _require_ready(calls: Calls) -> None:
    if calls.users == 0:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_UNINITIALIZED)
    if not calls.machine.loaded:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_UNKNOWN)
