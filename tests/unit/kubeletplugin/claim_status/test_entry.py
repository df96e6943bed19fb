import msgspec
import pytest

from dra_driver.api.resource_v1 import AllocatedDeviceStatus
from dra_driver.devices.model import Device, Health
from kubeletplugin.catalog import Entry
from kubeletplugin.claim_status.entry import (
    Readiness,
    build_entry,
    build_failed_entries,
    explain_readiness,
    is_stored,
    keep_times,
    key_of,
    render_data,
)
from kubeletplugin.prepare.record import Consumed, PreparedDevice
from tests.support.builder import (
    DRIVER,
    NODE,
    FakeBackend,
    a_claim,
    a_device,
    a_partitionable_device,
    a_result,
    a_share,
)

PREPARED = PreparedDevice(request="main", pool=NODE, device="gpu-0")
READY = Readiness(ready=True, reason="Prepared")
ILL = Readiness(ready=False, reason="DeviceUnhealthy", message="xid-79: fell off the bus")


def an_entry(device: Device) -> Entry:
    return Entry(FakeBackend((device,)), device)


def a_status(readiness: Readiness = READY, time: str = "") -> AllocatedDeviceStatus:
    entry = build_entry(DRIVER, PREPARED, readiness, {"model": "H100"})
    return keep_times([entry], {}, time)[0] if time else entry


@pytest.mark.parametrize(
    ("entry", "readiness"),
    [
        (an_entry(a_device()), READY),
        (an_entry(a_device(health=Health(reason="xid-79", message="fell off the bus"))), ILL),
        (None, Readiness(ready=False, reason="DeviceGone", message="not on this node any more")),
    ],
    ids=["well", "ill", "gone"],
)
def test_readiness_follows_the_device(entry: Entry | None, readiness: Readiness) -> None:
    assert explain_readiness(entry) == readiness


def test_data_tell_what_was_given() -> None:
    device = a_device("GPU-7", uuid="GPU-7", driver_version="550.54.15", product_name=None)
    prepared = PreparedDevice(
        request="gpu/big", pool=NODE, device=device.name, consumed=Consumed(memory=1 << 30, slots=1)
    )
    data = render_data(prepared, an_entry(device), ["/dev/nvidia0"])
    assert data["request"] == "gpu/big"
    assert (data["uuid"], data["driverVersion"]) == ("GPU-7", "550.54.15")
    assert data["consumed"] == {"memory": 1 << 30, "slots": 1}
    assert data["deviceNodes"] == ["/dev/nvidia0"]
    assert "productName" not in data


def test_a_partition_is_told_by_its_own_uuid_and_its_parents() -> None:
    device = a_partitionable_device("GPU-P")
    partition = device.partitions[0]
    data = render_data(PREPARED, Entry(FakeBackend((device,)), device, partition), [])
    assert data["partitionProfile"] == partition.profile
    assert data.get("parentUUID") == device.uuid
    assert data.get("uuid") == partition.uuid


def test_data_stay_within_what_the_api_takes() -> None:
    data = render_data(PREPARED, an_entry(a_device()), [f"/dev/node-{number}" for number in range(2000)])
    assert "deviceNodes" not in data
    assert data["request"] == "main"


def test_a_failure_is_told_of_this_drivers_devices_on_this_node_alone() -> None:
    claim = a_claim(
        a_result("gpu-0"),
        a_result("gpu-0", request="monitor"),
        a_share("gpu-1", "share-1"),
        a_result("nic-0", driver="net.example.com"),
        a_result("gpu-2", pool="node-b"),
    )
    entries = build_failed_entries(claim, DRIVER, NODE, "PrepareFailed", "x" * 5000)
    assert [(entry.device, entry.share_id) for entry in entries] == [("gpu-0", None), ("gpu-1", "share-1")]
    condition = entries[0].conditions[0]
    assert (condition.type, condition.status, condition.reason) == ("Ready", "False", "PrepareFailed")
    assert len(condition.message) == 1024


def test_a_condition_keeps_its_time_until_its_status_changes() -> None:
    stored = {key_of(each): each for each in [a_status(time="2026-01-01T00:00:00Z")]}
    (same,) = keep_times([a_status()], stored, "2026-02-02T00:00:00Z")
    assert same.conditions[0].last_transition_time == "2026-01-01T00:00:00Z"
    (other,) = keep_times([a_status(ILL)], stored, "2026-02-02T00:00:00Z")
    assert other.conditions[0].last_transition_time == "2026-02-02T00:00:00Z"


def test_what_others_add_to_an_entry_makes_no_difference() -> None:
    wanted = a_status(time="2026-01-01T00:00:00Z")
    more = msgspec.structs.replace(
        wanted, conditions=(*wanted.conditions, msgspec.structs.replace(wanted.conditions[0], type="Other"))
    )
    assert is_stored([wanted], {key_of(more): more})
    assert not is_stored([], {key_of(more): more})
    assert not is_stored([wanted], {})
    assert not is_stored([wanted], {key_of(wanted): msgspec.structs.replace(wanted, data={})})
