"""What a kubelet remembers of claims outlives it."""

from pathlib import Path

import pytest

from sandbox.node.claim_record import ClaimRecord, PreparedDevice
from sandbox.node.claim_store import FILE, read_records, write_records
from sandbox.node.error import NodeError

DEVICE = PreparedDevice(requests=("gpu",), pool="node-a", device="gpu-0", cdi_ids=("vendor/claim=gpu-0",))
RECORD = ClaimRecord(uid="uid-1", namespace="default", name="claim", pods=("uid-2",), devices={"driver": (DEVICE,)})


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    assert read_records(tmp_path) == ()
    write_records(tmp_path, (RECORD,))
    assert read_records(tmp_path) == (RECORD,)


def test_a_file_that_no_kubelet_wrote_is_named(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("{")
    with pytest.raises(NodeError, match=f"{FILE}: .*want what a kubelet wrote"):
        read_records(tmp_path)


def test_a_file_that_cannot_be_read_or_written_is_named(tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()
    with pytest.raises(NodeError, match=f"{FILE}: is a directory"):
        read_records(tmp_path)
    with pytest.raises(NodeError, match="is a directory"):
        write_records(tmp_path, (RECORD,))
