"""What the library refuses, as the one error of a backend, with what a person can do about it."""

import contextlib
from collections.abc import Iterator
from typing import Final

import pynvml

from dra_driver.errors import DeviceError, DraError, StateError

_PLAIN: Final = {
    pynvml.NVML_ERROR_IN_USE: "in use by a process, want it ended first",
    pynvml.NVML_ERROR_INSUFFICIENT_RESOURCES: "no room on the GPU beside the MIG instances that are there",
    pynvml.NVML_ERROR_NO_PERMISSION: "not permitted, want to run as root and with /dev/nvidia-caps",
    pynvml.NVML_ERROR_NOT_FOUND: "not on this node",
    pynvml.NVML_ERROR_GPU_IS_LOST: "the GPU is lost, want the node rebooted",
    pynvml.NVML_ERROR_RESET_REQUIRED: "the GPU needs a reset",
}


def explain_nvml_error(error: pynvml.NVMLError) -> str:
    """Say in one line what the library meant."""
    return _PLAIN.get(error.value) or f"NVML: {str(error).rstrip('.').lower()}"


def explain_error(error: pynvml.NVMLError | DraError) -> str:
    """Say in one line what went wrong, in the library or in this driver."""
    return str(error) if isinstance(error, DraError) else explain_nvml_error(error)


@contextlib.contextmanager
def device_errors(subject: str) -> Iterator[None]:
    """Turn errors of the library and of files into `DeviceError`, which begins with the subject."""
    try:
        yield
    except pynvml.NVMLError as error:
        raise DeviceError(f"{subject}: {explain_nvml_error(error)}") from error
    except StateError as error:
        raise DeviceError(f"{subject}: {error}") from error
