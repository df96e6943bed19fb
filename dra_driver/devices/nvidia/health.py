"""Whether a GPU says of itself that it should not be used: what NVML counts and recommends, looked at each time.

Events (XIDs) are another source, `event`. Only what needs a reset, a reboot or another GPU counts: errors that the
hardware corrected, or dealt with by itself, do not.
"""

from typing import Any, Final

import pynvml

from dra_driver.devices.model import Health

NEEDS_RESET: Final = Health(reason="needs-reset", message="the driver wants the GPU reset")

_RECOVERIES: Final = {
    pynvml.NVML_GPU_RECOVERY_ACTION_GPU_RESET: NEEDS_RESET,
    pynvml.NVML_GPU_RECOVERY_ACTION_NODE_REBOOT: Health(
        reason="needs-reboot", message="the driver wants the node rebooted"
    ),
    pynvml.NVML_GPU_RECOVERY_ACTION_DRAIN_P2P: Health(
        reason="needs-drain", message="the driver wants users of peer-to-peer traffic ended"
    ),
    pynvml.NVML_GPU_RECOVERY_ACTION_DRAIN_AND_RESET: Health(
        reason="needs-drain-and-reset", message="the driver wants the GPU drained and reset"
    ),
    pynvml.NVML_GPU_RECOVERY_ACTION_RECOVER_IMEX_DOMAIN: Health(
        reason="needs-imex-recovery", message="the driver wants the IMEX domain of the node recovered"
    ),
    pynvml.NVML_GPU_RECOVERY_ACTION_BUS_RESET: Health(
        reason="needs-bus-reset", message="the driver wants the PCIe bus of the GPU reset"
    ),
    pynvml.NVML_GPU_RECOVERY_ACTION_SYSTEM_REBOOT: Health(
        reason="needs-system-reboot", message="the driver wants the whole system rebooted"
    ),
}
"""What the driver recommends (`nvmlDeviceGpuRecoveryAction_t`)."""

RESET_REASONS: Final = frozenset(
    {"needs-reset", "needs-drain-and-reset", "needs-bus-reset", "row-remap-pending", "page-retirement-pending"}
)
"""What only a reset ends: a GPU that has it no more was reset."""

_GONE: Final = (pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_RESET_REQUIRED)


def read_health(nvml: Any, handle: Any) -> Health | None:
    """What is wrong with a GPU, the worst of it; None if nothing is. Raises NVMLError if the GPU is lost."""
    remapped = _read(lambda: nvml.nvmlDeviceGetRemappedRows(handle))
    if remapped is not None and remapped[3]:
        return Health(reason="row-remap-failed", message="a row of memory cannot be remapped; want the GPU replaced")
    action = _read_recovery_action(nvml, handle)
    if action is not None and action != pynvml.NVML_GPU_RECOVERY_ACTION_NONE:
        unknown = Health(reason="needs-recovery", message=f"the driver recommends recovery action {action}")
        return _RECOVERIES.get(action, unknown)
    if remapped is not None and remapped[2]:
        return Health(reason="row-remap-pending", message="a row of memory is to be remapped; want the GPU reset")
    if _read(lambda: nvml.nvmlDeviceGetRetiredPagesPendingStatus(handle)):
        return Health(reason="page-retirement-pending", message="memory pages are to be retired; want the GPU reset")
    if action is None and (count := _read_uncorrected(nvml, handle)):
        return Health(reason="ecc-uncorrected", message=f"{count} memory errors not corrected; want the GPU reset")
    return None


def _read_recovery_action(nvml: Any, handle: Any) -> int | None:
    values = _read(lambda: nvml.nvmlDeviceGetFieldValues(handle, [pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION]))
    if values is None or values[0].nvmlReturn != pynvml.NVML_SUCCESS:
        return None
    return int(values[0].value.uiVal)


def _read_uncorrected(nvml: Any, handle: Any) -> int | None:
    """Uncorrected errors since the last reset. Where the driver recommends actions, it has weighed them already."""
    kind, counter = pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC
    count: int | None = _read(lambda: nvml.nvmlDeviceGetTotalEccErrors(handle, kind, counter))
    return count


def _read(read: Any) -> Any:
    """What can be read; None for what cannot, as long as the GPU answers."""
    try:
        return read()
    except pynvml.NVMLError as error:
        if error.value in _GONE:
            raise
        return None
