"""What the node has now of a device that is prepared."""

from dra_driver.errors import DeviceError
from kubeletplugin.catalog import Catalog, Entry
from kubeletplugin.prepare.record import PreparedDevice


def find_entry(device: PreparedDevice, catalog: Catalog) -> Entry:
    """Return the device as it is now. Raises DeviceError if it is gone."""
    entry = catalog.find(device.device)
    if entry is None:
        raise DeviceError(f"device {device}: not on this node any more")
    return entry
