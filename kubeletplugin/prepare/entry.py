"""What the node has now of a device that is prepared."""

from dra_driver.errors import DeviceError
from kubeletplugin.catalog import Catalog, Entry
from kubeletplugin.prepare.record import ClaimRecord, PreparedDevice


def find_entry(device: PreparedDevice, catalog: Catalog) -> Entry:
    """Return the device as it is now. Raises DeviceError if it is gone."""
    entry = catalog.find(device.device)
    if entry is None:
        raise DeviceError(f"device {device}: not on this node any more")
    return entry


def lacks_partition(record: ClaimRecord, catalog: Catalog) -> bool:
    """Whether a claim has a partition that does not exist, as after a reset of its GPU. The catalog may be old."""
    partitions = (entry.partition for device in record.devices if (entry := catalog.find(device.device)) is not None)
    return any(partition is not None and partition.uuid is None for partition in partitions)
