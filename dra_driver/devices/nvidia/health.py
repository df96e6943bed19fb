"""Whether a card says of itself that it should not be used: what NVML counts and recommends, looked at each time.

Events (XIDs) are another source, `event`. Only what needs a reset, a reboot or another card counts: errors that the
hardware corrected, or dealt with by itself, do not.
"""

from typing import Any, Final

import pynvml

from dra_driver.devices.model import Health

_RECOVERIES: Final = {
    pynvml.NVML_GPU_RECOVERY_ACTION_GPU_RESET: ("needs-reset", "the driver wants the GPU reset"),
    pynvml.NVML_GPU_RECOVERY_ACTION_NODE_REBOOT: ("needs-reboot", "the driver wants the node rebooted"),
    pynvml.NVML_GPU_RECOVERY_ACTION_DRAIN_P2P: ("needs-drain", "the driver wants users of peer-to-peer traffic ended"),
    pynvml.NVML_GPU_RECOVERY_ACTION_DRAIN_AND_RESET: ("needs-drain", "the driver wants the GPU drained and reset"),
}
"""Reason and message, by what the driver recommends."""

RESET_REASONS: Final = frozenset({"needs-reset", "row-remap-pending", "page-retirement-pending"})
"""What only a reset ends: a card that has it no more was reset."""

_GONE: Final = (pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_RESET_REQUIRED)


def read_health(nvml: Any, handle: Any) -> Health | None:
    """What is wrong with a card, the worst of it; None if nothing is. Raises NVMLError if the card is lost."""
    remapped = _read(lambda: nvml.nvmlDeviceGetRemappedRows(handle))
    if remapped is not None and remapped[3]:
        return Health(reason="row-remap-failed", message="a row of memory cannot be remapped; want the GPU replaced")
    action = _read_recovery_action(nvml, handle)
    if action is not None and action != pynvml.NVML_GPU_RECOVERY_ACTION_NONE:
        reason, message = _RECOVERIES.get(action, ("needs-recovery", f"the driver recommends recovery action {action}"))
        return Health(reason=reason, message=message)
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
    """What can be read; None for what cannot, as long as the card answers."""
    try:
        return read()
    except pynvml.NVMLError as error:
        if error.value in _GONE:
            raise
        return None
