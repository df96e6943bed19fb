import hashlib
from collections.abc import Callable

import pytest

from dra_driver.api.config_v1alpha1 import Policy
from dra_driver.errors import StateError
from kubeletplugin.prepare.record import (
    ClaimRecord,
    ClaimState,
    Consumed,
    PreparedDevice,
    decode_record,
    encode_record,
)

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
