"""When a GPU's MIG mode is switched, and that it is never at a price for somebody else."""

from pathlib import Path

import pytest

from dra_driver.errors import DeviceError
from tests.support.nvml.machine import an_a100_machine, an_h100_machine
from tests.support.nvml.mig_bench import MigBench


def test_no_gpu_is_ever_reset(tmp_path: Path) -> None:
    bench = MigBench(an_a100_machine(mig=True), tmp_path)
    partition = bench.partition()
    bench.gpu.mig_enabled = bench.gpu.mig_pending = False
    with pytest.raises(DeviceError, match="would need a reset"):
        bench.mig.apply(bench.device, partition)
    assert bench.nvml.counts["nvmlDeviceSetMigMode"] == 0
    assert bench.notes() == []


def test_a_gpu_that_an_administrator_switched_stays_in_mig_mode(tmp_path: Path) -> None:
    bench = MigBench(an_h100_machine(), tmp_path)
    bench.gpu.mig_enabled = bench.gpu.mig_pending = True
    assert not bench.read().offered_whole
    partition = bench.partition()
    bench.mig.apply(bench.device, partition)
    bench.mig.undo(bench.device, partition)
    assert bench.gpu.mig_enabled
    with pytest.raises(DeviceError, match="which this driver did not switch on"):
        bench.mig.apply_whole(bench.device)


def test_a_gpu_that_is_computed_on_is_not_switched(h100: MigBench) -> None:
    h100.gpu.processes.append(4711)
    with pytest.raises(DeviceError, match="in use by a process"):
        h100.mig.apply(h100.device, h100.partition())
    assert h100.modes == (False, False)
    assert h100.notes() == []


def test_a_switch_that_does_not_take_hold_is_taken_back(h100: MigBench) -> None:
    h100.gpu.monitored = True
    with pytest.raises(DeviceError, match="in use by a process"):
        h100.mig.apply(h100.device, h100.partition())
    assert h100.modes == (False, False)
    assert h100.notes() == []


def test_the_drivers_own_watch_does_not_keep_a_gpu_from_being_switched(h100: MigBench) -> None:
    partition = h100.partition()
    h100.watch()
    h100.mig.apply(h100.device, partition)
    assert h100.modes == (True, True)
    h100.mig.undo(h100.device, partition)
    assert h100.modes == (False, False)


def test_a_gpu_that_cannot_be_switched_back_at_once_is_before_it_is_used_whole(h100: MigBench) -> None:
    partition = h100.partition()
    h100.mig.apply(h100.device, partition)
    h100.gpu.monitored = True
    h100.mig.undo(h100.device, partition)
    assert h100.modes == (True, True)
    assert h100.read().offered_whole
    with pytest.raises(DeviceError, match="in use by a process"):
        h100.mig.apply_whole(h100.device)
    h100.gpu.monitored = False
    h100.mig.apply_whole(h100.device)
    assert h100.modes == (False, False)
    assert h100.notes() == []
    h100.mig.apply_whole(h100.device)


def test_a_gpu_is_not_made_whole_while_it_has_a_partition(h100: MigBench) -> None:
    h100.mig.apply(h100.device, h100.partition())
    with pytest.raises(DeviceError, match=f"has {h100.device.partition_name(h100.partition())}, want it removed first"):
        h100.mig.apply_whole(h100.device)
    assert h100.layout == [("1g.10gb", 0, 1)]
    assert h100.gpu.mig_enabled


def test_a_gpu_with_an_instance_of_somebody_else_is_not_made_whole(h100: MigBench) -> None:
    h100.mig.apply(h100.device, h100.partition())
    h100.nvml.make(h100.gpu, "3g.40gb", 4)
    with pytest.raises(DeviceError, match="that this driver did not make"):
        h100.mig.apply_whole(h100.device)
