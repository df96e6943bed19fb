"""The fake behind a real shared library, so that `pynvml` calls C as it calls NVIDIA's: one description drives both.

The library (`native/`) is made with the machine's C compiler. Its structs are its own, not those of `pynvml`.
"""

import ctypes
import shutil
import subprocess
from collections.abc import Callable, Collection, Mapping, Sequence
from ctypes import POINTER, byref, c_int, c_uint, c_uint64, c_void_p
from pathlib import Path
from typing import Any, Final

import pynvml

from dra_driver.devices.nvidia.library import load_library
from tests.support.nvml.fake import FakeNvml

NATIVE: Final = Path(__file__).parent / "native"
COMPILER: Final = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)

_MOST_HANDLES: Final = 32
_STRUCT_VERSION: Final = 2


class _Answer(ctypes.Structure):
    _fields_ = (("numbers", c_uint64 * 64), ("text", ctypes.c_uint8 * 256))


_Handler = ctypes.CFUNCTYPE(c_int, ctypes.c_char_p, POINTER(c_uint64), POINTER(_Answer))

Arguments = Sequence[int]
Numbers = Sequence[int]
Texts = tuple[Numbers, bytes]


def build_library(path: Path) -> None:
    """Compile the library."""
    assert COMPILER is not None
    flags = ("-std=gnu17", "-Wall", "-Wextra", "-Werror", "-O1", "-fPIC", "-shared", "-fvisibility=hidden")
    subprocess.run((COMPILER, *flags, *sorted(NATIVE.glob("*.c")), "-o", path), check=True)


class NativeNvml:
    """A fake library that is loaded from a file, as by `load_library`. It lacks the functions that are named `missing`.

    What goes wrong in the fake itself, rather than in what it imitates, stands in `problems`.
    """

    def __init__(self, fake: FakeNvml, *, missing: Collection[str] = ()) -> None:
        self.fake = fake
        self.missing = frozenset(missing)
        self.problems: list[Exception] = []
        self._handler = _Handler(self._answer)

    def load(self, path: Path) -> Any:
        """Load the library, and have it ask this fake."""
        nvml = load_library(path)
        pynvml.nvmlLib.fake_set_handler(self._handler)
        pynvml.nvmlLib = _Without(pynvml.nvmlLib, self.missing)
        return nvml

    def _answer(self, function: bytes, arguments: Any, answer: Any) -> int:
        try:
            found = _ANSWERS[function.decode()](self.fake, arguments)
        except pynvml.NVMLError as error:
            return int(error.value)
        except Exception as error:  # noqa: BLE001 - it cannot pass through C
            self.problems.append(error)
            return int(pynvml.NVML_ERROR_UNKNOWN)
        numbers, text = found if isinstance(found, tuple) else (found, b"")
        answer.contents.numbers[: len(numbers)] = numbers
        answer.contents.text[: len(text)] = text
        return int(pynvml.NVML_SUCCESS)


class _Without:
    """A library without some of its functions, as an older driver has it."""

    def __init__(self, library: Any, missing: frozenset[str]) -> None:
        self._library = library
        self._missing = missing

    def __getattr__(self, name: str) -> Any:
        if name in self._missing:
            raise AttributeError(name)
        return getattr(self._library, name)


def _address(handle: Any) -> int:
    return ctypes.cast(handle, c_void_p).value or 0


def _bytes(text: str) -> bytes:
    """A lone surrogate stands for a byte that is no text, as of a GPU whose own memory is damaged."""
    return text.encode("utf-8", "surrogateescape")


def _nothing(_result: Any) -> Numbers:
    return []


def _initialise(fake: FakeNvml, _arguments: Arguments) -> Numbers:
    fake.nvmlInit()
    return []


def _pci(info: Any) -> Texts:
    return [info.domain, info.bus, info.device], _bytes(info.busId)


def _fabric(fake: FakeNvml, gpu: int) -> Texts:
    info = pynvml.c_nvmlGpuFabricInfo_v2_t()
    fake.nvmlDeviceGetGpuFabricInfoV(c_void_p(gpu), byref(info))
    return [info.status, info.cliqueId, info.state], bytes(info.clusterUuid)


def _field(fake: FakeNvml, gpu: int, number: int) -> Numbers:
    (value,) = fake.nvmlDeviceGetFieldValues(c_void_p(gpu), [number])
    return [value.valueType, value.nvmlReturn, value.value.uiVal]


def _event(event: Any) -> Numbers:
    return [_address(event.device), event.eventType, event.eventData, event.gpuInstanceId, event.computeInstanceId]


def _profile(info: Any) -> Texts:
    engines = [info.copyEngineCount, info.decoderCount, info.encoderCount, info.jpegCount, info.ofaCount]
    fixed = [info.id, info.sliceCount, info.instanceCount, info.multiprocessorCount]
    return [*fixed, *engines, info.memorySizeMB], _bytes(getattr(info, "name", ""))


def _placements(fake: FakeNvml, gpu: int, profile_id: int) -> Numbers:
    placements, count = (pynvml.c_nvmlGpuInstancePlacement_t * _MOST_HANDLES)(), c_uint(_MOST_HANDLES)
    fake.nvmlDeviceGetGpuInstancePossiblePlacements(c_void_p(gpu), profile_id, placements, byref(count))
    return [count.value, *(number for each in placements[: count.value] for number in (each.start, each.size))]


def _create(fake: FakeNvml, gpu: int, profile_id: int, start: int, size: int) -> Numbers:
    placement = pynvml.c_nvmlGpuInstancePlacement_t(start, size)
    return [_address(fake.nvmlDeviceCreateGpuInstanceWithPlacement(c_void_p(gpu), profile_id, byref(placement)))]


def _instance(info: Any) -> Numbers:
    return [_address(info.device), info.id, info.profileId, info.placement.start, info.placement.size]


def _compute_profile(fake: FakeNvml, instance: int, profile: int, engines: int) -> Numbers:
    info = fake.nvmlGpuInstanceGetComputeInstanceProfileInfo(c_void_p(instance), profile, engines)
    return [info.id, info.sliceCount, info.instanceCount]


def _handles(read: Callable[..., Any], kind: Any, owner: int, profile_id: int) -> Numbers:
    array, count = (kind * _MOST_HANDLES)(), c_uint(_MOST_HANDLES)
    read(c_void_p(owner), profile_id, array, byref(count))
    return [count.value, *(_address(each) for each in array[: count.value])]


def _of_handle(name: str, render: Callable[[Any], Numbers | Texts]) -> Callable[[FakeNvml, Arguments], Numbers | Texts]:
    """A function whose first argument is a handle, with as many numbers after it as the fake's takes."""

    def answer(fake: FakeNvml, arguments: Arguments) -> Numbers | Texts:
        function = getattr(fake, name)
        count = function.__wrapped__.__code__.co_argcount - 2
        return render(function(c_void_p(arguments[0]), *arguments[1 : 1 + count]))

    return answer


def _text(value: str) -> Texts:
    return [], _bytes(value)


def _number(value: int) -> Numbers:
    return [value]


def _of_handles(render: Callable[[Any], Numbers | Texts], *names: str) -> dict[str, Any]:
    return {name: _of_handle(name, render) for name in names}


_ANSWERS: Final[Mapping[str, Callable[[FakeNvml, Arguments], Numbers | Texts]]] = {
    "nvmlInitWithFlags": _initialise,
    "nvmlShutdown": lambda fake, _: _nothing(fake.nvmlShutdown()),
    "nvmlSystemGetDriverVersion": lambda fake, _: _text(fake.nvmlSystemGetDriverVersion()),
    "nvmlSystemGetCudaDriverVersion_v2": lambda fake, _: [fake.nvmlSystemGetCudaDriverVersion_v2()],
    "nvmlDeviceGetCount_v2": lambda fake, _: [fake.nvmlDeviceGetCount()],
    "nvmlDeviceGetHandleByIndex_v2": lambda fake, given: [_address(fake.nvmlDeviceGetHandleByIndex(given[0]))],
    "nvmlDeviceGetHandleByUUID": lambda fake, given: [
        _address(fake.nvmlDeviceGetHandleByUUID(ctypes.string_at(given[0]).decode()))
    ],
    "nvmlDeviceGetPciInfo_v3": _of_handle("nvmlDeviceGetPciInfo", _pci),
    "nvmlDeviceGetNvLinkRemotePciInfo_v2": _of_handle("nvmlDeviceGetNvLinkRemotePciInfo", _pci),
    "nvmlDeviceGetMemoryInfo": _of_handle("nvmlDeviceGetMemoryInfo", lambda memory: [memory.total, memory.free, 0]),
    "nvmlDeviceGetGpuFabricInfoV": lambda fake, given: _fabric(fake, given[0]),
    "nvmlDeviceGetFieldValues": lambda fake, given: _field(fake, given[0], given[1]),
    "nvmlDeviceGetComputeRunningProcesses_v3": _of_handle(
        "nvmlDeviceGetComputeRunningProcesses_v3", lambda found: [len(found), *(each.pid for each in found)]
    ),
    **_of_handles(_text, "nvmlDeviceGetName", "nvmlDeviceGetUUID", "nvmlDeviceGetSerial"),
    **_of_handles(
        _number,
        "nvmlDeviceGetMinorNumber",
        "nvmlDeviceGetArchitecture",
        "nvmlDeviceGetNumGpuCores",
        "nvmlDeviceGetRetiredPagesPendingStatus",
        "nvmlDeviceGetNvLinkState",
        "nvmlDeviceGetNvLinkRemoteDeviceType",
        "nvmlDeviceGetTotalEccErrors",
        "nvmlDeviceGetMaxMigDeviceCount",
        "nvmlDeviceGetGpuInstanceId",
        "nvmlDeviceGetComputeInstanceId",
        "nvmlDeviceSetMigMode",
    ),
    **_of_handles(list, "nvmlDeviceGetCudaComputeCapability", "nvmlDeviceGetRemappedRows", "nvmlDeviceGetMigMode"),
    **_of_handles(_nothing, "nvmlGpuInstanceDestroy", "nvmlComputeInstanceDestroy", "nvmlEventSetFree"),
    "nvmlEventSetCreate": lambda fake, _: [fake.nvmlEventSetCreate().value],
    "nvmlDeviceRegisterEvents": lambda fake, given: _nothing(
        fake.nvmlDeviceRegisterEvents(c_void_p(given[0]), given[1], c_void_p(given[2]))
    ),
    "nvmlEventSetWait_v2": _of_handle("nvmlEventSetWait", _event),
    "nvmlDeviceGetGpuInstanceProfileInfo": lambda fake, given: _profile(
        fake.nvmlDeviceGetGpuInstanceProfileInfo(c_void_p(given[0]), given[1], 1)
    ),
    "nvmlDeviceGetGpuInstanceProfileInfoV": lambda fake, given: _profile(
        fake.nvmlDeviceGetGpuInstanceProfileInfo(c_void_p(given[0]), given[1], _STRUCT_VERSION)
    ),
    "nvmlDeviceGetGpuInstancePossiblePlacements_v2": lambda fake, given: _placements(fake, *given[:2]),
    "nvmlDeviceGetGpuInstances": lambda fake, given: _handles(
        fake.nvmlDeviceGetGpuInstances, pynvml.c_nvmlGpuInstance_t, *given[:2]
    ),
    "nvmlDeviceCreateGpuInstanceWithPlacement": lambda fake, given: _create(fake, *given[:4]),
    "nvmlGpuInstanceGetInfo": _of_handle("nvmlGpuInstanceGetInfo", _instance),
    "nvmlGpuInstanceGetComputeInstanceProfileInfo": lambda fake, given: _compute_profile(fake, *given[:3]),
    "nvmlGpuInstanceGetComputeInstanceProfileInfoV": lambda fake, given: _compute_profile(fake, *given[:3]),
    "nvmlGpuInstanceCreateComputeInstance": _of_handle(
        "nvmlGpuInstanceCreateComputeInstance", lambda made: [_address(made)]
    ),
    "nvmlGpuInstanceGetComputeInstances": lambda fake, given: _handles(
        fake.nvmlGpuInstanceGetComputeInstances, pynvml.c_nvmlComputeInstance_t, *given[:2]
    ),
    "nvmlDeviceGetMigDeviceHandleByIndex": _of_handle(
        "nvmlDeviceGetMigDeviceHandleByIndex", lambda found: [_address(found)]
    ),
    "nvmlDeviceGetAttributes_v2": _of_handle(
        "nvmlDeviceGetAttributes_v2",
        lambda found: [found.gpuInstanceSliceCount, found.computeInstanceSliceCount],
    ),
}

FUNCTIONS: Final = tuple(sorted({*_ANSWERS, "nvmlErrorString"}))
"""All that the library has."""
