"""What is known of one device for one request, whatever else is allocated."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from controller.allocator.capacity import Demand
from dra_driver.api.quantity import Quantity


class Misfit(StrEnum):
    """Why a device can never serve a request."""

    BINDING_CONDITIONS = "BindingConditionsOff"
    CLASS_SELECTOR = "ClassSelectorFalse"
    REQUEST_SELECTOR = "RequestSelectorFalse"
    OTHER_NODE = "DeviceOfOtherNode"
    CAPACITY = "CapacityTooSmall"
    NODE_OPERATIONS = "NodeOperationsNotSkippable"
    PARTITIONS_OFF = "PartitionableDevicesOff"
    TAINT = "TaintNotTolerated"


UNLISTED: Final = frozenset(
    {
        Misfit.BINDING_CONDITIONS,
        Misfit.CLASS_SELECTOR,
        Misfit.REQUEST_SELECTOR,
        Misfit.OTHER_NODE,
        Misfit.CAPACITY,
    }
)
"""What takes a device out of what `All` asks for; other misfits make `All` fail."""


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """Either `misfit` is set, or the device would do; then it takes `demand` of its capacities."""

    misfit: Misfit | None = None
    quantities: dict[str, Quantity] | None = None
    demand: tuple[tuple[str, int], ...] = ()


FIT: Final = Cell()
MISFITS: Final = {misfit: Cell(misfit) for misfit in Misfit}


def fitting_cell(demand: Demand) -> Cell:
    """Make the cell of a device that would do."""
    return Cell(None, dict(demand.quantities), demand.nanos)
