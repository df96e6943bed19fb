"""The life of MIG partitions on a card whose mode is switched at will, and on one that needs a reset for it."""

from pathlib import Path

import pynvml
import pytest

from dra_driver.devices.model import Device, Partition
from dra_driver.devices.partitioning import PartitionMode
from dra_driver.errors import DeviceError
from tests.support.nvml.machine import a_t4_machine, an_a100_machine, an_h100_machine
from tests.support.nvml.mig_bench import MigBench


@pytest.fixture
def h100(tmp_path: Path) -> MigBench:
    """MIG mode is off, and can be switched."""
    return MigBench(an_h100_machine(), tmp_path)


@pytest.fixture
def a100(tmp_path: Path) -> MigBench:
    """MIG mode is on, and stays on."""
    return MigBench(an_a100_machine(mig=True), tmp_path)


@pytest.fixture(params=["h100", "a100"])
def bench(request: pytest.FixtureRequest) -> MigBench:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, MigBench)
    return found


def existing(device: Device) -> list[tuple[str, int, bool, bool]]:
    return [(p.profile, p.start, p.permanent, p.offered) for p in device.partitions if p.uuid is not None]


def pending(bench: MigBench) -> tuple[bool, bool]:
    return bench.gpu.mig_enabled, bench.gpu.mig_pending


def test_every_placement_is_a_partition_and_the_card_is_whole_besides(h100: MigBench) -> None:
    device = h100.read()
    assert len(device.partitions) == 25
    assert device.offered_whole
    assert device.counters["compute-slices"] == 7
    assert existing(device) == []
    assert not h100.gpu.mig_enabled


def test_a_card_in_mig_mode_that_needs_a_reset_is_offered_in_partitions_only(a100: MigBench) -> None:
    device = a100.read()
    assert len(device.partitions) == 25
    assert not device.offered_whole


def test_a_card_out_of_mig_mode_that_needs_a_reset_is_offered_whole_only(tmp_path: Path) -> None:
    bench = MigBench(an_a100_machine(), tmp_path)
    device = bench.read()
    assert device.partitions == ()
    assert device.offered_whole


def test_no_card_is_ever_reset(tmp_path: Path) -> None:
    bench = MigBench(an_a100_machine(mig=True), tmp_path)
    partition = bench.partition()
    bench.gpu.mig_enabled = bench.gpu.mig_pending = False
    with pytest.raises(DeviceError, match="would need a reset"):
        bench.mig.apply(bench.card, partition)
    assert bench.nvml.counts["nvmlDeviceSetMigMode"] == 0
    assert bench.notes() == []


def test_a_card_without_mig_is_left_as_it_is(tmp_path: Path) -> None:
    bench = MigBench(a_t4_machine(), tmp_path)
    assert bench.read() == bench.card


def test_a_card_that_an_administrator_switched_stays_in_mig_mode(tmp_path: Path) -> None:
    bench = MigBench(an_h100_machine(), tmp_path)
    bench.gpu.mig_enabled = bench.gpu.mig_pending = True
    assert not bench.read().offered_whole
    partition = bench.partition()
    bench.mig.apply(bench.card, partition)
    bench.mig.undo(bench.card, partition)
    assert bench.gpu.mig_enabled
    with pytest.raises(DeviceError, match="which this driver did not switch on"):
        bench.mig.apply_whole(bench.card)


def test_a_partition_is_made_in_its_place_and_removed(bench: MigBench) -> None:
    before, mode, partition = bench.read(), pending(bench), bench.partition("2g.20gb", 4)
    bench.mig.apply(bench.card, partition)
    assert bench.layout == [("2g.20gb", 4, 1)]
    found = bench.mig.find(bench.card, partition)
    (instance,) = bench.nvml.instances(bench.gpu)
    assert (found.gpu_instance, found.compute_instance) == (instance.id, 0)
    assert found.uuid == instance.compute[0].uuid
    assert bench.partition("2g.20gb", 4).uuid == found.uuid
    assert existing(bench.read()) == [("2g.20gb", 4, False, True)]
    bench.mig.undo(bench.card, partition)
    assert (bench.layout, bench.notes(), pending(bench)) == ([], [], mode)
    assert bench.read() == before


def test_the_compute_instance_has_all_of_its_gpu_instance(bench: MigBench) -> None:
    for profile in ("1g.10gb+me", "3g.40gb", "7g.80gb"):
        partition = bench.partition(profile)
        bench.mig.apply(bench.card, partition)
        (instance,) = bench.nvml.instances(bench.gpu)
        assert [each.slices for each in instance.compute] == [instance.profile.compute_slices]
        bench.mig.undo(bench.card, partition)


def test_a_slice_does_not_change_while_partitions_come_and_go(h100: MigBench) -> None:
    h100.mig.apply(h100.card, h100.partition())
    device = h100.read()
    assert device.offered_whole
    assert len(device.partitions) == 25


def test_made_twice_and_removed_twice_is_success(bench: MigBench) -> None:
    partition = bench.partition()
    for _ in range(2):
        bench.mig.apply(bench.card, partition)
        bench.restart()
    assert bench.layout == [("1g.10gb", 0, 1)]
    for _ in range(2):
        bench.mig.undo(bench.card, partition)
        bench.restart()
    assert bench.layout == []


def test_partitions_of_one_card_do_not_touch_each_other(bench: MigBench) -> None:
    one, other = bench.partition("3g.40gb", 4), bench.partition("4g.40gb", 0)
    bench.mig.apply(bench.card, one)
    bench.mig.apply(bench.card, other)
    bench.mig.undo(bench.card, one)
    assert bench.layout == [("4g.40gb", 0, 1)]
    assert bench.gpu.mig_enabled
    assert bench.mig.find(bench.card, other).uuid


def test_hardware_refuses_what_overlaps_and_nothing_is_left(bench: MigBench) -> None:
    bench.mig.apply(bench.card, bench.partition("3g.40gb", 0))
    notes = bench.notes()
    with pytest.raises(DeviceError, match="no room on the card"):
        bench.mig.apply(bench.card, bench.partition("4g.40gb", 0))
    assert bench.layout == [("3g.40gb", 0, 1)]
    assert bench.notes() == notes


def test_a_partition_that_does_not_exist_has_no_instance(bench: MigBench) -> None:
    with pytest.raises(DeviceError, match="does not exist"):
        bench.mig.find(bench.card, bench.partition())


def test_a_partition_in_use_is_not_removed_and_goes_later(bench: MigBench) -> None:
    partition = bench.partition()
    bench.mig.apply(bench.card, partition)
    (compute,) = bench.nvml.instances(bench.gpu)[0].compute
    compute.busy = True
    with pytest.raises(DeviceError, match="in use by a process, want it ended first"):
        bench.mig.undo(bench.card, partition)
    assert bench.layout == [("1g.10gb", 0, 1)]
    compute.busy = False
    bench.mig.undo(bench.card, partition)
    assert (bench.layout, bench.notes()) == ([], [])


def test_an_instance_that_was_there_before_is_the_administrators(bench: MigBench) -> None:
    bench.gpu.mig_enabled = bench.gpu.mig_pending = True
    bench.nvml.make(bench.gpu, "3g.40gb", 4)
    device = bench.read()
    assert [(p.profile, p.start, p.permanent) for p in device.partitions] == [("3g.40gb", 4, True)]
    assert not device.offered_whole
    partition = bench.partition("3g.40gb", 4)
    bench.mig.apply(bench.card, partition)
    bench.mig.undo(bench.card, partition)
    assert bench.layout == [("3g.40gb", 4, 1)]
    assert bench.notes() == []
    assert bench.mig.find(bench.card, partition).uuid == partition.uuid


def test_an_instance_that_somebody_else_made_in_its_place_is_not_taken(bench: MigBench) -> None:
    partition = bench.partition()
    bench.gpu.mig_enabled = bench.gpu.mig_pending = True
    bench.nvml.make(bench.gpu, "1g.10gb", 0)
    with pytest.raises(DeviceError, match="this driver did not make"):
        bench.mig.apply(bench.card, partition)
    assert bench.layout == [("1g.10gb", 0, 1)]


def test_an_instance_that_took_the_place_of_ours_is_not_taken_for_ours(a100: MigBench) -> None:
    partition = a100.partition()
    a100.mig.apply(a100.card, partition)
    a100.nvml.remove(a100.gpu)
    for start in (1, 0):
        a100.nvml.make(a100.gpu, "1g.10gb", start)
    assert existing(a100.read()) == [("1g.10gb", 0, True, True), ("1g.10gb", 1, True, True)]
    with pytest.raises(DeviceError, match="this driver did not make"):
        a100.mig.apply(a100.card, partition)
    a100.mig.undo(a100.card, partition)
    assert a100.layout == [("1g.10gb", 0, 1), ("1g.10gb", 1, 1)]
    assert a100.notes() == []


def test_ours_that_somebody_removed_is_made_again(bench: MigBench) -> None:
    partition = bench.partition()
    bench.mig.apply(bench.card, partition)
    bench.nvml.remove(bench.gpu)
    bench.mig.apply(bench.card, partition)
    assert bench.layout == [("1g.10gb", 0, 1)]
    bench.nvml.remove(bench.gpu)
    bench.mig.undo(bench.card, partition)
    assert bench.notes() == []


def test_notes_of_another_boot_count_for_nothing(bench: MigBench) -> None:
    partition = bench.partition()
    bench.mig.apply(bench.card, partition)
    bench.reboot()
    bench.gpu.mig_enabled = bench.gpu.mig_pending = True
    bench.nvml.make(bench.gpu, "1g.10gb", 0)
    assert existing(bench.read()) == [("1g.10gb", 0, True, True)]
    bench.mig.undo(bench.card, partition)
    assert bench.layout == [("1g.10gb", 0, 1)]


def test_after_a_reboot_a_partition_is_made_again(bench: MigBench) -> None:
    partition = bench.partition()
    bench.mig.apply(bench.card, partition)
    bench.reboot()
    bench.mig.apply(bench.card, partition)
    assert bench.layout == [("1g.10gb", 0, 1)]
    bench.mig.undo(bench.card, partition)
    assert (bench.layout, bench.notes()) == ([], [])


@pytest.mark.parametrize("content", [b"", b"{", b"\xff" * 9, b'{"boot": 1}'])
def test_a_note_that_cannot_be_understood_is_none(bench: MigBench, content: bytes) -> None:
    partition = bench.partition()
    bench.mig.apply(bench.card, partition)
    for path in bench.directory.glob("*.json"):
        path.write_bytes(content)
    assert existing(bench.read()) == [("1g.10gb", 0, True, True)]
    bench.mig.undo(bench.card, partition)
    assert bench.layout == [("1g.10gb", 0, 1)]


def test_ours_beside_an_administrators_stays_until_its_claim_ends(a100: MigBench) -> None:
    partition = a100.partition()
    a100.mig.apply(a100.card, partition)
    a100.nvml.make(a100.gpu, "3g.40gb", 4)
    device = a100.read()
    assert existing(device) == [("1g.10gb", 0, False, False), ("3g.40gb", 4, True, True)]
    assert len(device.partitions) == 2
    a100.mig.undo(a100.card, partition)
    assert a100.layout == [("3g.40gb", 4, 1)]


@pytest.mark.parametrize("compute", [(), (1,), (1, 1, 1)], ids=str)
def test_a_gpu_instance_that_is_cut_up_further_is_left_out(a100: MigBench, compute: tuple[int, ...]) -> None:
    a100.nvml.make(a100.gpu, "3g.40gb", 4, compute=compute)
    device, (left_out,) = a100.mig.read(a100.card)
    assert left_out.subject == device.name
    assert left_out.problem == f"GPU instance 13 has {len(compute)} compute instances, want one that has all of it"
    assert device.partitions == ()
    assert not device.offered_whole


@pytest.mark.parametrize("mode", [PartitionMode.STATIC, PartitionMode.NONE])
def test_what_a_change_of_mode_leaves_behind_can_be_removed(a100: MigBench, mode: PartitionMode) -> None:
    partition = a100.partition()
    a100.mig.apply(a100.card, partition)
    a100.mode = mode
    a100.restart()
    assert existing(a100.read()) == [("1g.10gb", 0, False, False)]
    a100.mig.undo(a100.card, partition)
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
    assert [each for each in existing(a100.read()) if each[3]] == offered
    assert not a100.read().offered_whole


def test_a_card_that_is_computed_on_is_not_switched(h100: MigBench) -> None:
    h100.gpu.processes.append(4711)
    with pytest.raises(DeviceError, match="in use by a process"):
        h100.mig.apply(h100.card, h100.partition())
    assert pending(h100) == (False, False)
    assert h100.notes() == []


def test_a_switch_that_does_not_take_hold_is_taken_back(h100: MigBench) -> None:
    h100.gpu.monitored = True
    with pytest.raises(DeviceError, match="in use by a process"):
        h100.mig.apply(h100.card, h100.partition())
    assert pending(h100) == (False, False)
    assert h100.notes() == []


def test_the_drivers_own_watch_does_not_keep_a_card_from_being_switched(h100: MigBench) -> None:
    partition = h100.partition()
    h100.watch()
    h100.mig.apply(h100.card, partition)
    assert pending(h100) == (True, True)
    h100.mig.undo(h100.card, partition)
    assert pending(h100) == (False, False)


def test_the_minor_number_is_read_afresh(h100: MigBench) -> None:
    h100.gpu.minor = 5
    assert h100.mig.read_minor(h100.card).minor == 5


def test_a_card_that_cannot_be_switched_back_at_once_is_before_it_is_used_whole(h100: MigBench) -> None:
    partition = h100.partition()
    h100.mig.apply(h100.card, partition)
    h100.gpu.monitored = True
    h100.mig.undo(h100.card, partition)
    assert pending(h100) == (True, True)
    assert h100.read().offered_whole
    with pytest.raises(DeviceError, match="in use by a process"):
        h100.mig.apply_whole(h100.card)
    h100.gpu.monitored = False
    h100.mig.apply_whole(h100.card)
    assert pending(h100) == (False, False)
    assert h100.notes() == []
    h100.mig.apply_whole(h100.card)


def test_a_card_is_not_made_whole_while_it_has_a_partition(h100: MigBench) -> None:
    h100.mig.apply(h100.card, h100.partition())
    with pytest.raises(DeviceError, match=f"has {h100.card.partition_name(h100.partition())}, want it removed first"):
        h100.mig.apply_whole(h100.card)
    assert h100.layout == [("1g.10gb", 0, 1)]
    assert h100.gpu.mig_enabled


def test_a_card_with_an_instance_of_somebody_else_is_not_made_whole(h100: MigBench) -> None:
    h100.mig.apply(h100.card, h100.partition())
    h100.nvml.make(h100.gpu, "3g.40gb", 4)
    with pytest.raises(DeviceError, match="that this driver did not make"):
        h100.mig.apply_whole(h100.card)


@pytest.fixture(params=["lost", "pulled"])
def gone(request: pytest.FixtureRequest, bench: MigBench) -> tuple[MigBench, Partition]:
    partition = bench.partition()
    bench.mig.apply(bench.card, partition)
    if request.param == "lost":
        bench.gpu.lost = True
    else:
        bench.nvml.machine.gpus.remove(bench.gpu)
    return bench, partition


def test_a_partition_of_a_card_that_is_gone_can_be_removed(gone: tuple[MigBench, Partition]) -> None:
    bench, partition = gone
    bench.mig.undo(bench.card, partition)
    assert not any("1g-10gb" in name for name in bench.notes())
    for call in (bench.mig.apply, bench.mig.find):
        with pytest.raises(DeviceError):
            call(bench.card, partition)


def test_a_driver_that_tells_no_names_is_understood(bench: MigBench) -> None:
    names = {(p.profile, p.start) for p in bench.read().partitions}

    class Old:
        def __getattr__(self, name: str) -> object:
            return getattr(bench.nvml, name)

        def nvmlDeviceGetGpuInstanceProfileInfo(self, card: object, number: int, version: int) -> object:  # noqa: N802
            if version == 2:
                raise pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
            return bench.nvml.nvmlDeviceGetGpuInstanceProfileInfo(card, number, version)

    bench.mig._nvml = Old()
    bench.mig._cards.clear()
    assert {(p.profile, p.start) for p in bench.read().partitions} == names


def test_without_permission_it_is_said_what_is_wanted(bench: MigBench) -> None:
    partition = bench.partition()
    bench.nvml.fail("nvmlDeviceCreateGpuInstanceWithPlacement", pynvml.NVML_ERROR_NO_PERMISSION)
    with pytest.raises(DeviceError, match="not permitted, want to run as root"):
        bench.mig.apply(bench.card, partition)
    assert bench.notes() == []


def test_the_directory_may_not_be_there_and_must_be_writable(bench: MigBench) -> None:
    partition = bench.partition()
    bench.directory.rmdir()
    bench.directory.write_text("a file")
    with pytest.raises(DeviceError):
        bench.mig.apply(bench.card, partition)
    assert bench.layout == []
