"""Device metadata files (KEP-5304): a claim's containers read there what they got, without asking an API server."""

from collections.abc import Iterator
from pathlib import Path

import cdi
from dra_driver.api.device_metadata import (
    GROUP,
    VERSIONS,
    DeviceMetadata,
    DeviceMetadataRequest,
    MetadataDevice,
    encode_metadata,
    render_container_path,
)
from dra_driver.api.meta_v1 import ObjectMeta
from dra_driver.devices.attribute import render_attributes
from dra_driver.file import ensure_directory, read_names, remove_directory, write_file
from kubeletplugin.catalog import Catalog
from kubeletplugin.prepare.entry import find_entry
from kubeletplugin.prepare.record import ClaimRecord, PreparedDevice

_READ_ONLY = ("ro", "nosuid", "nodev", "noexec", "bind")


class MetadataFiles:
    """One folder a claim below `directory`, one file a request in it. Without `enabled`, they are only removed."""

    def __init__(self, driver: str, directory: Path, *, enabled: bool) -> None:
        self._driver = driver
        self._directory = directory
        self._enabled = enabled

    def write(self, record: ClaimRecord, catalog: Catalog) -> None:
        """Write the files of a claim. Raises DeviceError if a device is gone, StateError if one cannot be written."""
        for request, devices in self._requests(record).items():
            path = self._path(record, request)
            ensure_directory(path.parent)
            write_file(path, encode_metadata(build_metadata(self._driver, record, devices, catalog)))

    def is_complete(self, record: ClaimRecord) -> bool:
        """Whether all files of a claim are there."""
        return all(self._path(record, request).exists() for request in self._requests(record))

    def remove(self, uid: str) -> None:
        """Remove the files of a claim. Gone already is success. Raises StateError."""
        remove_directory(self._directory / uid)

    def read_claims(self) -> frozenset[str]:
        """Return the UIDs of the claims that have files. Raises StateError."""
        return read_names(self._directory)

    def build_edits(self, record: ClaimRecord, device: PreparedDevice) -> cdi.ContainerEdits:
        """Build what mounts the files: those of the requests whose first device this is, so that each comes once."""
        return cdi.ContainerEdits(mounts=tuple(self._mounts(record, device)))

    def _mounts(self, record: ClaimRecord, device: PreparedDevice) -> Iterator[cdi.Mount]:
        for request, (first, *_) in self._requests(record).items():
            if (first.device, first.share_id) == (device.device, device.share_id):
                yield cdi.Mount(
                    host_path=str(self._path(record, request)),
                    container_path=render_container_path(self._driver, record.name, record.pod_claim_name, request),
                    options=_READ_ONLY,
                )

    def _requests(self, record: ClaimRecord) -> dict[str, list[PreparedDevice]]:
        """The devices of each request, without subrequest, in the order of the results."""
        found: dict[str, list[PreparedDevice]] = {}
        for device in record.devices if self._enabled else ():
            found.setdefault(device.request.partition("/")[0], []).append(device)
        return found

    def _path(self, record: ClaimRecord, request: str) -> Path:
        return self._directory / record.uid / f"{request}.json"


def build_metadata(driver: str, record: ClaimRecord, devices: list[PreparedDevice], catalog: Catalog) -> DeviceMetadata:
    """Build what is told of the devices of one request. Raises DeviceError if one is gone."""
    return DeviceMetadata(
        api_version=f"{GROUP}/{VERSIONS[0]}",
        metadata=ObjectMeta(name=record.name, namespace=record.namespace, uid=record.uid, generation=1),
        pod_claim_name=record.pod_claim_name,
        requests=(
            DeviceMetadataRequest(
                name=devices[0].request, devices=tuple(_build_device(driver, device, catalog) for device in devices)
            ),
        ),
    )


def _build_device(driver: str, device: PreparedDevice, catalog: Catalog) -> MetadataDevice:
    entry = find_entry(device, catalog)
    attributes = render_attributes(entry.device, entry.partition)
    return MetadataDevice(driver=driver, pool=device.pool, name=device.device, attributes=attributes)
