"""The life of MIG partitions on a GPU whose mode is switched at will, and on one that needs a reset for it."""

from pathlib import Path

import pynvml
import pytest

from dra_driver.errors import DeviceError
from tests.support.nvml.machine import a_t4_machine, an_a100_machine
from tests.support.nvml.mig_bench import MigBench


def test_every_placement_is_a_partition_and_the_gpu_is_whole_besides(h100: MigBench) -> None:
    device = h100.read()
    assert len(device.partitions) == 25
    assert device.offered_whole
    assert device.counters["compute-slices"] == 7
    assert h100.existing == []
    assert not h100.gpu.mig_enabled


def test_a_gpu_in_mig_mode_that_needs_a_reset_is_offered_in_partitions_only(a100: MigBench) -> None:
    device = a100.read()
    assert len(device.partitions) == 25
    assert not device.offered_whole


def test_a_gpu_out_of_mig_mode_that_needs_a_reset_is_offered_whole_only(tmp_path: Path) -> None:
    bench = MigBench(an_a100_machine(), tmp_path)
    device = bench.read()
    assert device.partitions == ()
    assert device.offered_whole


def test_a_gpu_without_mig_is_left_as_it_is(tmp_path: Path) -> None:
    bench = MigBench(a_t4_machine(), tmp_path)
    assert bench.read() == bench.device


def test_a_partition_is_made_in_its_place_and_removed(bench: MigBench) -> None:
    before, mode, partition = bench.read(), bench.modes, bench.partition("2g.20gb", 4)
    bench.mig.apply(bench.device, partition)
    assert bench.layout == [("2g.20gb", 4, 1)]
    found = bench.mig.find(bench.device, partition)
    (instance,) = bench.nvml.instances(bench.gpu)
    assert (found.gpu_instance, found.compute_instance) == (instance.id, 0)
    assert found.uuid == instance.compute[0].uuid
    assert bench.partition("2g.20gb", 4).uuid == found.uuid
    assert bench.existing == [("2g.20gb", 4, False, True)]
    bench.mig.undo(bench.device, partition)
    assert (bench.layout, bench.notes(), bench.modes) == ([], [], mode)
    assert bench.read() == before


def test_the_compute_instance_has_all_of_its_gpu_instance(bench: MigBench) -> None:
    for profile in ("1g.10gb+me", "3g.40gb", "7g.80gb"):
        partition = bench.partition(profile)
        bench.mig.apply(bench.device, partition)
        (instance,) = bench.nvml.instances(bench.gpu)
        assert [each.slices for each in instance.compute] == [instance.profile.compute_slices]
        bench.mig.undo(bench.device, partition)


def test_a_slice_does_not_change_while_partitions_come_and_go(h100: MigBench) -> None:
    h100.mig.apply(h100.device, h100.partition())
    device = h100.read()
    assert device.offered_whole
    assert len(device.partitions) == 25


def test_made_twice_and_removed_twice_is_success(bench: MigBench) -> None:
    partition = bench.partition()
    for _ in range(2):
        bench.mig.apply(bench.device, partition)
        bench.restart()
    assert bench.layout == [("1g.10gb", 0, 1)]
    for _ in range(2):
        bench.mig.undo(bench.device, partition)
        bench.restart()
    assert bench.layout == []


def test_partitions_of_one_gpu_do_not_touch_each_other(bench: MigBench) -> None:
    one, other = bench.partition("3g.40gb", 4), bench.partition("4g.40gb", 0)
    bench.mig.apply(bench.device, one)
    bench.mig.apply(bench.device, other)
    bench.mig.undo(bench.device, one)
    assert bench.layout == [("4g.40gb", 0, 1)]
    assert bench.gpu.mig_enabled
    assert bench.mig.find(bench.device, other).uuid


def test_hardware_refuses_what_overlaps_and_nothing_is_left(bench: MigBench) -> None:
    bench.mig.apply(bench.device, bench.partition("3g.40gb", 0))
    notes = bench.notes()
    with pytest.raises(DeviceError, match="no room on the GPU"):
        bench.mig.apply(bench.device, bench.partition("4g.40gb", 0))
    assert bench.layout == [("3g.40gb", 0, 1)]
    assert bench.notes() == notes


def test_a_partition_that_does_not_exist_has_no_instance(bench: MigBench) -> None:
    with pytest.raises(DeviceError, match="does not exist"):
        bench.mig.find(bench.device, bench.partition())


def test_a_partition_in_use_is_not_removed_and_goes_later(bench: MigBench) -> None:
    partition = bench.partition()
    bench.mig.apply(bench.device, partition)
    (compute,) = bench.nvml.instances(bench.gpu)[0].compute
    compute.busy = True
    with pytest.raises(DeviceError, match="in use by a process, want it ended first"):
        bench.mig.undo(bench.device, partition)
    assert bench.layout == [("1g.10gb", 0, 1)]
    compute.busy = False
    bench.mig.undo(bench.device, partition)
    assert (bench.layout, bench.notes()) == ([], [])


def test_after_a_reboot_a_partition_is_made_again(bench: MigBench) -> None:
    partition = bench.partition()
    bench.mig.apply(bench.device, partition)
    bench.reboot()
    bench.mig.apply(bench.device, partition)
    assert bench.layout == [("1g.10gb", 0, 1)]
    bench.mig.undo(bench.device, partition)
    assert (bench.layout, bench.notes()) == ([], [])


def test_the_minor_number_is_read_afresh(h100: MigBench) -> None:
    h100.gpu.minor = 5
    assert h100.mig.read_minor(h100.device).minor == 5


def test_a_driver_that_tells_no_names_is_understood(bench: MigBench) -> None:
    names = {(p.profile, p.start) for p in bench.read().partitions}

    class Old:
        def __getattr__(self, name: str) -> object:
            return getattr(bench.nvml, name)

        def nvmlDeviceGetGpuInstanceProfileInfo(self, device: object, number: int, version: int) -> object:  # noqa: N802
            if version == 2:
                raise pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
            return bench.nvml.nvmlDeviceGetGpuInstanceProfileInfo(device, number, version)

    bench.mig._nvml = Old()
    bench.mig._gpus.clear()
    assert {(p.profile, p.start) for p in bench.read().partitions} == names


def test_without_permission_it_is_said_what_is_wanted(bench: MigBench) -> None:
    partition = bench.partition()
    bench.nvml.fail("nvmlDeviceCreateGpuInstanceWithPlacement", pynvml.NVML_ERROR_NO_PERMISSION)
    with pytest.raises(DeviceError, match="not permitted, want to run as root"):
        bench.mig.apply(bench.device, partition)
    assert bench.notes() == []


def test_the_directory_may_not_be_there_and_must_be_writable(bench: MigBench) -> None:
    partition = bench.partition()
    bench.directory.rmdir()
    bench.directory.write_text("a file")
    with pytest.raises(DeviceError):
        bench.mig.apply(bench.device, partition)
    assert bench.layout == []
