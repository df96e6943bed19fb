"""What this driver made of MIG, and what somebody else did: only the first is ever removed."""

import pytest

from dra_driver.devices.partitioning import PartitionMode
from dra_driver.errors import DeviceError
from tests.support.nvml.mig_bench import MigBench


def test_an_instance_that_was_there_before_is_the_administrators(bench: MigBench) -> None:
    bench.gpu.mig_enabled = bench.gpu.mig_pending = True
    bench.nvml.make(bench.gpu, "3g.40gb", 4)
    device = bench.read()
    assert [(p.profile, p.start, p.permanent) for p in device.partitions] == [("3g.40gb", 4, True)]
    assert not device.offered_whole
    partition = bench.partition("3g.40gb", 4)
    bench.mig.apply(bench.device, partition)
    bench.mig.undo(bench.device, partition)
    assert bench.layout == [("3g.40gb", 4, 1)]
    assert bench.notes() == []
    assert bench.mig.find(bench.device, partition).uuid == partition.uuid


def test_an_instance_that_somebody_else_made_in_its_place_is_not_taken(bench: MigBench) -> None:
    partition = bench.partition()
    bench.gpu.mig_enabled = bench.gpu.mig_pending = True
    bench.nvml.make(bench.gpu, "1g.10gb", 0)
    with pytest.raises(DeviceError, match="this driver did not make"):
        bench.mig.apply(bench.device, partition)
    assert bench.layout == [("1g.10gb", 0, 1)]


def test_an_instance_that_took_the_place_of_ours_is_not_taken_for_ours(a100: MigBench) -> None:
    partition = a100.partition()
    a100.mig.apply(a100.device, partition)
    a100.nvml.remove(a100.gpu)
    for start in (1, 0):
        a100.nvml.make(a100.gpu, "1g.10gb", start)
    assert a100.existing == [("1g.10gb", 0, True, True), ("1g.10gb", 1, True, True)]
    with pytest.raises(DeviceError, match="this driver did not make"):
        a100.mig.apply(a100.device, partition)
    a100.mig.undo(a100.device, partition)
    assert a100.layout == [("1g.10gb", 0, 1), ("1g.10gb", 1, 1)]
    assert a100.notes() == []


def test_ours_that_somebody_removed_is_made_again(bench: MigBench) -> None:
    partition = bench.partition()
    bench.mig.apply(bench.device, partition)
    bench.nvml.remove(bench.gpu)
    bench.mig.apply(bench.device, partition)
    assert bench.layout == [("1g.10gb", 0, 1)]
    bench.nvml.remove(bench.gpu)
    bench.mig.undo(bench.device, partition)
    assert bench.notes() == []


def test_notes_of_another_boot_count_for_nothing(bench: MigBench) -> None:
    partition = bench.partition()
    bench.mig.apply(bench.device, partition)
    bench.reboot()
    bench.gpu.mig_enabled = bench.gpu.mig_pending = True
    bench.nvml.make(bench.gpu, "1g.10gb", 0)
    assert bench.existing == [("1g.10gb", 0, True, True)]
    bench.mig.undo(bench.device, partition)
    assert bench.layout == [("1g.10gb", 0, 1)]


@pytest.mark.parametrize("content", [b"", b"{", b"\xff" * 9, b'{"boot": 1}'])
def test_a_note_that_cannot_be_understood_is_none(bench: MigBench, content: bytes) -> None:
    partition = bench.partition()
    bench.mig.apply(bench.device, partition)
    for path in bench.directory.glob("*.json"):
        path.write_bytes(content)
    assert bench.existing == [("1g.10gb", 0, True, True)]
    bench.mig.undo(bench.device, partition)
    assert bench.layout == [("1g.10gb", 0, 1)]


def test_ours_beside_an_administrators_stays_until_its_claim_ends(a100: MigBench) -> None:
    partition = a100.partition()
    a100.mig.apply(a100.device, partition)
    a100.nvml.make(a100.gpu, "3g.40gb", 4)
    device = a100.read()
    assert a100.existing == [("1g.10gb", 0, False, False), ("3g.40gb", 4, True, True)]
    assert len(device.partitions) == 2
    a100.mig.undo(a100.device, partition)
    assert a100.layout == [("3g.40gb", 4, 1)]


@pytest.mark.parametrize("compute", [(), (1,), (1, 1, 1)], ids=str)
def test_a_gpu_instance_that_is_cut_up_further_is_left_out(a100: MigBench, compute: tuple[int, ...]) -> None:
    a100.nvml.make(a100.gpu, "3g.40gb", 4, compute=compute)
    device, (left_out,) = a100.mig.read(a100.device)
    assert left_out.subject == device.name
    assert left_out.problem == f"GPU instance 13 has {len(compute)} compute instances, want one that has all of it"
    assert device.partitions == ()
    assert not device.offered_whole


@pytest.mark.parametrize("mode", [PartitionMode.STATIC, PartitionMode.NONE])
def test_what_a_change_of_mode_leaves_behind_can_be_removed(a100: MigBench, mode: PartitionMode) -> None:
    partition = a100.partition()
    a100.mig.apply(a100.device, partition)
    a100.mode = mode
    a100.restart()
    assert a100.existing == [("1g.10gb", 0, False, False)]
    a100.mig.undo(a100.device, partition)
    assert (a100.layout, a100.read().partitions) == ([], ())


@pytest.mark.parametrize(
    ("mode", "offered"), [(PartitionMode.STATIC, [("1g.10gb", 0, True, True)]), (PartitionMode.NONE, [])]
)
def test_existing_instances_are_offered_by_the_static_mode(
    a100: MigBench, mode: PartitionMode, offered: list[tuple[str, int, bool, bool]]
) -> None:
    a100.nvml.make(a100.gpu, "1g.10gb", 0)
    a100.mode = mode
    a100.restart()
    assert [each for each in a100.existing if each[3]] == offered
    assert not a100.read().offered_whole


def test_nothing_is_made_while_nobody_can_tell_for_how_long_it_will_be_ours(bench: MigBench) -> None:
    partition = bench.partition()
    bench.boot_id = None
    with pytest.raises(DeviceError, match="boot id: unknown"):
        bench.restart().apply(bench.device, partition)
    assert (bench.layout, bench.notes(), bench.modes) == ([], [], (bench.gpu.mig_needs_reset,) * 2)
