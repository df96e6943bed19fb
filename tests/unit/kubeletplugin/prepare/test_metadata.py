import json
from pathlib import Path

import pytest

from dra_driver.errors import DeviceError
from kubeletplugin.catalog import build_catalog
from kubeletplugin.prepare.metadata import MetadataFiles
from kubeletplugin.prepare.record import ClaimRecord, ClaimState, PreparedDevice
from tests.support.builder import DRIVER, NODE, FakeBackend, a_device

FIRST, SECOND = a_device("GPU-0"), a_device("GPU-1")
FOLDER = "/var/run/kubernetes.io/dra-device-attributes/resourceclaims/claim-1"
BACKEND = FakeBackend((FIRST, SECOND))
CATALOG = build_catalog([(BACKEND, BACKEND.read_inventory())])


def a_prepared(device: str, request: str = "main", share_id: str | None = None) -> PreparedDevice:
    return PreparedDevice(request=request, pool=NODE, device=device, share_id=share_id)


def a_record(*devices: PreparedDevice) -> ClaimRecord:
    return ClaimRecord(namespace="default", name="claim-1", uid="uid-1", state=ClaimState.STARTED, devices=devices)


@pytest.fixture
def files(tmp_path: Path) -> MetadataFiles:
    return MetadataFiles(DRIVER, tmp_path / "metadata", enabled=True)


def mounts(files: MetadataFiles, record: ClaimRecord, index: int = 0) -> dict[str, Path]:
    edits = files.build_edits(record, record.devices[index])
    return {mount.container_path: Path(mount.host_path) for mount in edits.mounts}


def test_a_request_has_one_file_which_its_first_device_mounts(files: MetadataFiles) -> None:
    record = a_record(a_prepared(FIRST.name, "gpus/big"), a_prepared(SECOND.name, "gpus/big"))
    files.write(record, CATALOG)
    ((path, file),) = mounts(files, record).items()
    assert path == f"{FOLDER}/gpus/{DRIVER}-metadata.json"
    assert mounts(files, record, 1) == {}
    newest = json.loads(file.read_text().splitlines()[0])
    assert newest["metadata"] == {"name": "claim-1", "namespace": "default", "uid": "uid-1", "generation": 1}
    (request,) = newest["requests"]
    assert request["name"] == "gpus/big"
    assert [device["name"] for device in request["devices"]] == [FIRST.name, SECOND.name]
    assert request["devices"][0]["attributes"]["model"] == {"string": FIRST.model}


def test_a_device_that_two_requests_have_mounts_the_files_of_both(files: MetadataFiles) -> None:
    record = a_record(a_prepared(FIRST.name, "use"), a_prepared(FIRST.name, "watch"))
    assert set(mounts(files, record)) == {f"{FOLDER}/{name}/{DRIVER}-metadata.json" for name in ("use", "watch")}


def test_two_shares_of_a_device_are_told_apart(files: MetadataFiles) -> None:
    record = a_record(a_prepared(FIRST.name, "a", "share-1"), a_prepared(FIRST.name, "b", "share-2"))
    assert set(mounts(files, record, 1)) == {f"{FOLDER}/b/{DRIVER}-metadata.json"}


def test_files_that_are_missing_are_noticed_and_all_go_at_the_end(files: MetadataFiles, tmp_path: Path) -> None:
    record = a_record(a_prepared(FIRST.name, "a"), a_prepared(SECOND.name, "b"))
    assert not files.is_complete(record)
    files.write(record, CATALOG)
    assert files.is_complete(record)
    for path in mounts(files, record).values():
        path.unlink()
    assert not files.is_complete(record)
    for _ in range(2):
        files.remove("uid-1")
    assert list((tmp_path / "metadata").iterdir()) == []


def test_a_device_that_is_gone_is_named(files: MetadataFiles) -> None:
    with pytest.raises(DeviceError, match="device node-a/gpu-gone: not on this node any more"):
        files.write(a_record(a_prepared("gpu-gone")), CATALOG)


def test_switched_off_nothing_is_written_and_what_was_is_removed(files: MetadataFiles, tmp_path: Path) -> None:
    record = a_record(a_prepared(FIRST.name))
    files.write(record, CATALOG)
    off = MetadataFiles(DRIVER, tmp_path / "metadata", enabled=False)
    assert off.is_complete(record)
    assert mounts(off, record) == {}
    off.remove("uid-1")
    off.write(record, CATALOG)
    assert list((tmp_path / "metadata").iterdir()) == []
