"""The files of a prepared claim besides its record: the CDI spec for the container runtime, and what it mounts."""

import contextlib
from collections.abc import Container, Iterator
from pathlib import Path

import cdi
from dra_driver.errors import DeviceError, StateError
from dra_driver.file import ensure_directory, read_names, remove_directory, write_file
from kubeletplugin.catalog import Catalog, Entry
from kubeletplugin.prepare.entry import find_entry
from kubeletplugin.prepare.lock import StateLocks, claim_key
from kubeletplugin.prepare.lost import LostClaim
from kubeletplugin.prepare.metadata import MetadataFiles
from kubeletplugin.prepare.record import ClaimRecord, PreparedDevice, is_claim_uid
from kubeletplugin.prepare.spec import Names, build_spec, read_claim, render_shim_config
from kubeletplugin.sharing.mps_edits import MpsFolders, build_mps_edits


class Artifacts:
    """Writes and removes them. What it writes depends on the record and the devices alone, so it can be repeated."""

    def __init__(
        self,
        *,
        names: Names,
        cdi_dir: Path,
        shim_dir: Path,
        mps: MpsFolders | None = None,
        metadata: MetadataFiles | None = None,
    ) -> None:
        self._names = names
        self._specs = cdi.SpecStore(cdi_dir)
        self._cdi_dir = cdi_dir
        self._shim_dir = shim_dir
        self._mps = mps
        self._metadata = metadata

    def ensure_directories(self, locks: StateLocks | None = None) -> None:
        """Make the directories, and clear away what a killed writer left. Raises StateError if one cannot be used.

        With `locks`, what another process is writing just now stays.
        """
        ensure_directory(self._cdi_dir)
        ensure_directory(self._shim_dir)
        with _store_errors():
            if locks is None:
                self._specs.remove_leftovers(self._names.spec_prefix)
            else:
                self._remove_leftovers(locks)

    def _remove_leftovers(self, locks: StateLocks) -> None:
        for name in self._specs.read_leftovers(self._names.spec_prefix):
            with locks.try_hold(claim_key(name.removeprefix(self._names.spec_prefix))) as held:
                if held:
                    self._specs.remove_leftovers(name)

    def write(self, record: ClaimRecord, catalog: Catalog) -> None:
        """Write shim configs and device metadata, then the CDI spec that mounts them.

        A spec that is right already is left alone.
        Raises DeviceError if a device is gone, StateError if a file cannot be written.
        """
        folder = self._shim_dir / record.uid
        for device in record.devices:
            if device.shim_policy is not None and device.consumed is not None:
                ensure_directory(folder)
                identity = find_entry(device, catalog).device.identity
                text = render_shim_config(record.uid, identity, device.consumed, device.shim_policy)
                write_file(folder / self._names.device(record.uid, device), text.encode())
        if self._metadata is not None:
            self._metadata.write(record, catalog)
        if record.devices:
            ensure_directory(self._cdi_dir)
            spec = build_spec(
                record.ref,
                record.devices,
                names=self._names,
                edits=lambda device: self._build_edits(record, device, catalog),
                shim_dir=folder,
            )
            with _store_errors():
                self._specs.write_spec(self._names.spec(record.uid), spec)

    def _build_edits(self, record: ClaimRecord, device: PreparedDevice, catalog: Catalog) -> cdi.ContainerEdits:
        edits = self._render_edits(device, find_entry(device, catalog))
        return edits if self._metadata is None else cdi.merge_edits(edits, self._metadata.build_edits(record, device))

    def _render_edits(self, device: PreparedDevice, entry: Entry) -> cdi.ContainerEdits:
        edits = entry.backend.render_edits(entry.device, entry.partition)
        if device.mps is None or self._mps is None:
            return edits
        return cdi.merge_edits(edits, build_mps_edits(device.device, device.mps, self._mps))

    def is_complete(self, record: ClaimRecord) -> bool:
        """Whether all files are there; a reboot takes those of the CDI directory. Contents are not looked at."""
        shims = (
            self._shim_dir / record.uid / self._names.device(record.uid, device)
            for device in record.devices
            if device.shim_policy is not None
        )
        spec = self._cdi_dir / f"{self._names.spec(record.uid)}.json"
        metadata = self._metadata is None or self._metadata.is_complete(record)
        return metadata and (not record.devices or spec.exists()) and all(path.exists() for path in shims)

    def read_unrecorded(self, recorded: Container[str]) -> dict[str, LostClaim]:
        """Return what the CDI specs tell, by claim UID, of claims that are not among `recorded`.

        A spec is there no longer than its record, so `recorded` is asked after the directory was read.
        A spec that cannot be read counts for nothing, and so does a directory that is gone. Raises StateError.
        """
        if not self._cdi_dir.is_dir():
            return {}
        with _store_errors():
            specs = self._specs.read_names(self._names.spec_prefix)
        uids = (name.removeprefix(self._names.spec_prefix) for name in specs)
        found = {uid: self.read_lost(uid) for uid in uids if uid not in recorded}
        return {uid: lost for uid, lost in found.items() if lost is not None}

    def read_lost(self, uid: str) -> LostClaim | None:
        """Return what the CDI spec of a claim tells of it; None without a spec that can be read."""
        try:
            spec = self._specs.read_spec(self._names.spec(uid))
        except cdi.CdiError:
            return None
        if spec is None or not spec.devices:
            return None
        return LostClaim(tuple(device.name for device in spec.devices), read_claim(spec, uid))

    def read_claims(self) -> tuple[str, ...]:
        """Return the UIDs of the claims that have a folder of shim configs or device metadata. Raises StateError."""
        metadata = self._metadata.read_claims() if self._metadata is not None else frozenset()
        return tuple(sorted(filter(is_claim_uid, read_names(self._shim_dir) | metadata)))

    def remove(self, uid: str) -> None:
        """Remove the CDI spec first, then what it mounts. What is gone already is success."""
        with _store_errors():
            self._specs.remove_spec(self._names.spec(uid))
        remove_directory(self._shim_dir / uid)
        if self._metadata is not None:
            self._metadata.remove(uid)


@contextlib.contextmanager
def _store_errors() -> Iterator[None]:
    """Tell whose error it is: the driver's if a spec cannot be written, the backend's if it is not valid."""
    try:
        yield
    except cdi.StoreError as error:
        raise StateError(str(error)) from error
    except cdi.CdiError as error:
        raise DeviceError(str(error)) from error
