"""The contract between the driver and a vendor's devices.

A vendor is added by implementing `Backend` in a folder of its own beside this file; everything else
(slices, claims, CDI files, sockets) is shared. `tests/contract` holds the suite that every backend must pass.
"""

from typing import Protocol

from cdi import ContainerEdits
from dra_driver.api.config_v1alpha1 import Interval
from dra_driver.devices.model import Device, Inventory, Partition


class Backend(Protocol):
    """A source of devices on this node: one vendor's library, for instance. Each device carries its own vendor.

    Methods are synchronous and may block (they run in worker threads), may be called from several threads,
    and never raise anything but `DeviceError`.
    A vendor that is not present on this node is an empty inventory, not an error.
    """

    @property
    def name(self) -> str:
        """What the backend is called in flags, logs and metrics, for instance `nvidia`. Never changes."""
        ...

    def read_inventory(self) -> Inventory:
        """Return what is there now, in physical order (PCI address).

        Called at start and every few seconds after, so it must be cheap and free of side effects.
        The same hardware gives equal inventories, over restarts and reboots too.
        A device that cannot be read is left out alone, with a `LeftOut`; the others are not affected.
        An unhealthy device stays in the inventory, with its `health`. What an event of the hardware told of is
        remembered, over restarts too, as long as it may last: nobody else can.
        """
        ...

    def wait_for_change(self, timeout_s: float) -> None:
        """Return when a new look may show something new, as after an event of the hardware, or when the time is over.

        One thread calls it at a time. Where the hardware reports no events, it waits out the time.
        """
        ...

    def render_edits(self, device: Device, partition: Partition | None) -> ContainerEdits:
        """Return what a container needs to use the device, or that partition of it, and nothing else's.

        Called on every prepare, after `apply_partition` for a partition, again after a restart or a reboot;
        device numbers are read afresh each time. Paths are host paths. The edits are not empty.
        What two devices have in common (a control node, a variable) is equal in both, so that edits can be joined.
        Raises DeviceError if the device or its node is not there, or the partition was not made.
        """
        ...

    def apply_whole(self, device: Device) -> None:
        """Make the device usable whole, for a claim that has it without admin access. Done already is success.

        Called before `render_edits`, when nothing that is prepared stands in its way.
        Raises DeviceError if partitions exist, whoever made them, or if the hardware refuses.
        """
        ...

    def apply_partition(self, device: Device, partition: Partition) -> None:
        """Make the partition exist. Done already is success, so that prepare can be repeated.

        Only called for partitions of the inventory, when nothing that is prepared stands in its way.
        Raises DeviceError, and leaves nothing half made, if the hardware refuses.
        """
        ...

    def undo_partition(self, device: Device, partition: Partition) -> None:
        """Remove a partition that `apply_partition` made. Gone already, or never made, is success.

        A partition that an administrator made is never removed.
        """
        ...

    def apply_time_slice(self, device: Device, interval: Interval) -> None:
        """Let the shares of the device take turns of that length. Done already is success.

        Raises DeviceError if the device knows no turns, or refuses.
        """
        ...

    def undo_time_slice(self, device: Device) -> None:
        """Give the device back its own length of turns. Done already, or never applied, is success."""
        ...

    def apply_exclusive_process(self, device: Device) -> None:
        """Let one process only have contexts on the device, which then is its MPS server. Done already is success.

        Raises DeviceError if the device knows no such mode, or refuses.
        """
        ...

    def undo_exclusive_process(self, device: Device) -> None:
        """Let all processes have contexts again. Done already, or never applied, is success."""
        ...
