from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.api_server.protobuf import read_protobuf
from sandbox.api_server.refusal import Refusal


def field(number: int, content: bytes) -> bytes:
    assert len(content) < 128
    return bytes((number << 3 | 2, len(content))) + content


def message(kind: bytes, raw: bytes) -> bytes:
    return b"k8s\x00" + field(1, field(1, b"v1") + field(2, kind)) + field(2, raw) + field(4, b"")


def test_a_config_map_is_read() -> None:
    entry = field(1, b"k") + field(2, b"v")
    metadata = field(1, b"m") + field(11, field(1, b"a") + field(2, b"b")) + field(14, b"x.y/z") + field(8, b"")
    body = message(b"ConfigMap", field(1, metadata) + field(2, entry) + field(3, field(1, b"b") + field(2, b"\xff")))
    assert read_protobuf(body) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "m", "labels": {"a": "b"}, "finalizers": ["x.y/z"]},
        "data": {"k": "v"},
        "binaryData": {"b": "/w=="},
    }


def test_options_of_a_deletion_are_read() -> None:
    raw = b"\x08\x05" + field(2, field(1, b"u")) + b"\x18\x01" + field(5, b"All")
    assert read_protobuf(message(b"DeleteOptions", raw)) == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "gracePeriodSeconds": 5,
        "preconditions": {"uid": "u"},
        "orphanDependents": True,
        "dryRun": ["All"],
    }
    minus_one = b"\x08" + b"\xff" * 9 + b"\x01"
    assert read_protobuf(message(b"DeleteOptions", minus_one))["gracePeriodSeconds"] == -1


def test_another_kind_is_wanted_as_json() -> None:
    with pytest.raises(Refusal) as caught:
        read_protobuf(message(b"Pod", b""))
    assert caught.value.code == 415


@given(st.binary(max_size=60), st.sampled_from([b"", b"k8s\x00", message(b"Namespace", b"")]))
def test_whatever_comes_is_read_or_refused(data: bytes, before: bytes) -> None:
    with suppress(Refusal):
        assert isinstance(read_protobuf(before + data), dict)
