import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from dra_driver.api.config_v1alpha1 import Policy, Strategy
from dra_driver.errors import StateError
from kubeletplugin.prepare.record import (
    ClaimRecord,
    ClaimRef,
    ClaimState,
    Consumed,
    NewerRecordError,
    PreparedDevice,
    decode_record,
    encode_record,
    read_ref,
)

GOLDEN = Path(__file__).parent / "testdata"
"""Files as drivers wrote them, or will: what was released must be read for ever, byte by byte."""

RECORD = ClaimRecord(
    namespace="default",
    name="claim-1",
    uid="uid-1",
    state=ClaimState.COMPLETED,
    devices=(
        PreparedDevice(request="main/big", pool="node-a", device="gpu-1-1g-0", parent="gpu-1"),
        PreparedDevice(
            request="other",
            pool="node-a",
            device="gpu-2",
            share_id="share-1",
            consumed=Consumed(memory=1 << 33, cores=30, slots=1),
            shim_policy=Policy.BURST,
        ),
    ),
)


def test_a_record_survives_the_disk() -> None:
    assert decode_record(encode_record(RECORD)) == RECORD


def test_equal_records_are_equal_bytes() -> None:
    assert encode_record(RECORD) == encode_record(decode_record(encode_record(RECORD)))


def test_fields_of_a_newer_minor_version_are_ignored() -> None:
    record = b'{"namespace":"d","name":"n","uid":"u","state":"started","colour":"blue"}'
    envelope = b'{"version":1,"checksum":"sha256:%s","claim":%s}' % (
        hashlib.sha256(record).hexdigest().encode(),
        record,
    )
    assert decode_record(envelope).uid == "u"


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        pytest.param(lambda _: b"", "not a claim record", id="empty"),
        pytest.param(lambda data: data[:-20], "not a claim record", id="truncated"),
        pytest.param(lambda data: data.replace(b"uid-1", b"uid-2"), "checksum does not match", id="changed"),
        pytest.param(lambda data: data.replace(b'"version":1', b'"version":2'), "version 2 is newer", id="newer"),
        pytest.param(lambda _: b'{"claims":{}}', "not a claim record", id="something else"),
        pytest.param(lambda data: b"\0" * len(data), "not a claim record", id="zeros"),
    ],
)
def test_a_damaged_record_is_refused(damage: Callable[[bytes], bytes], problem: str) -> None:
    with pytest.raises(StateError, match=problem):
        decode_record(damage(encode_record(RECORD)))


@pytest.mark.parametrize("text", [b"[" * 200_000, b'{"version":1,"checksum":"","claim":' + b"[" * 200_000])
def test_a_record_that_is_nested_too_deeply_is_no_record(text: bytes) -> None:
    with pytest.raises(StateError, match="not a claim record"):
        decode_record(text)


def test_a_record_of_the_first_release_is_read() -> None:
    record = decode_record((GOLDEN / "record_first.json").read_bytes())
    partition, share, monitor = record.devices
    assert (record.state, record.boot_id) == (ClaimState.COMPLETED, None)
    assert (partition.parent, partition.device) == ("gpu-1", "gpu-1-1g-10gb-0")
    assert share.consumed == Consumed(memory=1 << 33, cores=30, slots=1)
    assert (share.shim_policy, share.sharing) == (Policy.BURST, Strategy.SHIM)
    assert monitor.admin_access


def test_records_are_written_as_they_were() -> None:
    data = (GOLDEN / "record_now.json").read_bytes()
    assert encode_record(decode_record(data)) == data


def test_a_record_with_fields_of_a_newer_driver_is_read_without_them() -> None:
    newer, now = (decode_record((GOLDEN / f"record_{name}.json").read_bytes()) for name in ("newer_fields", "now"))
    assert newer == now


def test_a_record_of_a_newer_version_says_so_whatever_it_holds() -> None:
    with pytest.raises(NewerRecordError, match="version 2 is newer than this driver, want at most 1"):
        decode_record((GOLDEN / "record_newer_version.json").read_bytes())


@pytest.mark.parametrize("kept", [170, 400])
def test_the_name_can_be_made_out_of_what_is_left_of_a_record(kept: int) -> None:
    found = read_ref((GOLDEN / "record_now.json").read_bytes()[:kept], "uid-1")
    assert found == ClaimRef("default", "claim-1", "uid-1")


@pytest.mark.parametrize(
    "data", [b"", b"\0" * 500, b'{"namespace":"../x","name":"y"}', b'{"namespace":"d","name":"N\n"}']
)
def test_no_name_is_made_out_of_what_is_none(data: bytes) -> None:
    assert read_ref(data, "uid-1") is None
