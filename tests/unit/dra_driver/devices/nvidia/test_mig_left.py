"""Partitions of GPUs that do not answer, or deny what they have: none is ever taken for somebody else's."""

import contextlib
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pynvml
import pytest

from dra_driver.errors import DeviceError
from tests.support.effect import failed_at
from tests.support.nvml.machine import Machine, an_a100_machine, an_h100_machine
from tests.support.nvml.mig_bench import MigBench

DENIALS = (
    pynvml.NVML_ERROR_NOT_FOUND,
    pynvml.NVML_ERROR_NOT_SUPPORTED,
    pynvml.NVML_ERROR_INVALID_ARGUMENT,
)
"""What the library answers for what is not there, and may answer for what is."""


class Absence:
    """Takes a GPU away from the driver, and gives it back."""

    def __init__(self, bench: MigBench, kind: str) -> None:
        self.bench = bench
        self.kind = kind

    def begin(self) -> None:
        if self.kind == "pulled":
            self.bench.nvml.machine.gpus.remove(self.bench.gpu)
        else:
            self.bench.nvml.fail(self.kind, pynvml.NVML_ERROR_NOT_SUPPORTED)

    def end(self) -> None:
        if self.bench.gpu not in self.bench.nvml.machine.gpus:
            self.bench.nvml.machine.gpus.append(self.bench.gpu)
        self.bench.nvml.mend()
        self.bench.restart()


@pytest.fixture(params=["pulled", "nvmlDeviceGetMigMode", "nvmlDeviceGetGpuInstanceProfileInfo"])
def absence(request: pytest.FixtureRequest, bench: MigBench) -> Absence:
    return Absence(bench, request.param)


def sweep(bench: MigBench) -> None:
    """What the plugin does with partitions that no claim has."""
    for partition in bench.read().partitions:
        if partition.uuid is not None and not partition.permanent:
            bench.mig.undo(bench.device, partition)
    if not bench.gpu.mig_needs_reset:
        bench.mig.apply_whole(bench.device)


def test_a_partition_of_a_gpu_that_does_not_answer_can_be_removed(bench: MigBench, absence: Absence) -> None:
    partition = bench.partition()
    bench.mig.apply(bench.device, partition)
    absence.begin()
    bench.restart()
    for _ in range(2):
        bench.mig.undo(bench.device, partition)
    for call in (bench.mig.apply, bench.mig.find):
        with pytest.raises(DeviceError):
            call(bench.device, partition)


def test_a_partition_that_was_there_all_along_is_still_ours_and_is_swept(bench: MigBench, absence: Absence) -> None:
    partition = bench.partition()
    bench.mig.apply(bench.device, partition)
    absence.begin()
    bench.restart().undo(bench.device, partition)
    absence.end()
    assert bench.existing == [("1g.10gb", 0, False, True)]
    sweep(bench)
    assert (bench.layout, bench.notes()) == ([], [])


def test_a_partition_that_was_left_can_be_used_again(bench: MigBench, absence: Absence) -> None:
    partition = bench.partition()
    bench.mig.apply(bench.device, partition)
    before = bench.mig.find(bench.device, partition).uuid
    absence.begin()
    bench.restart().undo(bench.device, partition)
    absence.end()
    bench.mig.apply(bench.device, partition)
    assert bench.mig.find(bench.device, partition).uuid == before
    assert bench.open_notes().find_left(bench.device.name) == frozenset()


def test_what_comes_back_without_a_partition_makes_it_forgotten(bench: MigBench, absence: Absence) -> None:
    """Or else what an administrator makes in its place, with the same numbers, would be taken for ours and removed."""
    partition = bench.partition()
    bench.mig.apply(bench.device, partition)
    absence.begin()
    bench.restart().undo(bench.device, partition)
    bench.nvml.remove(bench.gpu)
    bench.gpu.mig_enabled = bench.gpu.mig_pending = bench.gpu.mig_needs_reset
    absence.end()
    bench.read()
    assert bench.notes() == []
    bench.gpu.mig_enabled = bench.gpu.mig_pending = True
    bench.nvml.make(bench.gpu, "1g.10gb", 0)
    assert bench.existing == [("1g.10gb", 0, True, True)]


def test_a_partition_that_a_claim_has_is_not_forgotten(bench: MigBench) -> None:
    partition = bench.partition()
    bench.mig.apply(bench.device, partition)
    notes = bench.notes()
    bench.nvml.remove(bench.gpu)
    bench.read()
    assert bench.notes() == notes


def fresh(machine: Machine, directory: Path, *, made: bool) -> MigBench:
    bench = MigBench(machine, directory)
    directory.mkdir()
    bench.partition()
    if made:
        bench.mig.apply(bench.device, bench.partition())
    return bench


def call(bench: MigBench, name: str) -> Callable[[], object]:
    """An operation on the first partition."""
    partition = bench.partition()
    return lambda: getattr(bench.mig, name)(bench.device, partition)


def denials(name: str, directory: Path) -> Iterator[tuple[str, MigBench]]:
    """Every call of an operation answers once that there is no such thing; yields what comes of it."""
    for kind, make in (("h100", an_h100_machine), ("a100", lambda: an_a100_machine(mig=True))):
        counted = fresh(make(), directory / kind, made=name == "undo")
        names = counted.run(call(counted, name)).seen
        for error, (point, effect) in itertools.product(DENIALS, enumerate(names)):
            if effect.startswith("note"):
                continue
            bench = fresh(make(), directory / f"{kind}-{error}-{point}", made=name == "undo")
            with contextlib.suppress(DeviceError):
                bench.run(call(bench, name), failed_at(point, pynvml.NVMLError(error)))
            yield f"{kind}: {effect} answers {error}", bench


@pytest.mark.parametrize("name", ["apply", "undo"])
def test_whatever_is_denied_once_nothing_is_lost_to_an_administrator(tmp_path: Path, name: str) -> None:
    count = 0
    for denial, bench in denials(name, tmp_path):
        count += 1
        assert not any(permanent for _, _, permanent, _ in bench.existing), denial
        sweep(bench)
        assert (bench.layout, bench.read().offered_whole, bench.notes()) == (
            [],
            not bench.gpu.mig_needs_reset,
            [],
        ), denial
    assert count > 100


def test_what_a_gpu_has_that_was_lost_is_not_ours(bench: MigBench) -> None:
    """It comes back from a reset only, and so without what we made."""
    partition = bench.partition()
    bench.mig.apply(bench.device, partition)
    bench.gpu.lost = True
    for _ in range(2):
        bench.mig.undo(bench.device, partition)
    for call in (bench.mig.apply, bench.mig.find):
        with pytest.raises(DeviceError):
            call(bench.device, partition)
    bench.nvml.remove(bench.gpu)
    bench.gpu.lost, bench.gpu.mig_enabled, bench.gpu.mig_pending = False, True, True
    assert bench.existing == []
    bench.nvml.make(bench.gpu, "1g.10gb", 0)
    assert bench.existing == [("1g.10gb", 0, True, True)]
    sweep(bench) if bench.gpu.mig_needs_reset else None
    assert bench.layout == [("1g.10gb", 0, 1)]


def test_a_gpu_that_is_lost_is_no_reason_to_forget_what_another_one_has(bench: MigBench) -> None:
    """The library may refuse each by its UUID while any is lost."""
    partition = bench.partition()
    bench.mig.apply(bench.device, partition)
    bench.nvml.fail("nvmlDeviceGetHandleByUUID", pynvml.NVML_ERROR_GPU_IS_LOST)
    bench.nvml.machine.gpus[1].lost = True
    assert bench.existing == [("1g.10gb", 0, False, True)]
    bench.nvml.machine.gpus[:2] = bench.nvml.machine.gpus[1::-1]
    bench.mig.undo(bench.device, partition)
    assert (bench.layout, bench.notes()) == ([], [])


def test_what_a_gpu_has_after_the_kernels_driver_took_it_on_anew_is_not_ours(bench: MigBench) -> None:
    """The module was loaded again, say, to update the driver, and somebody made the same partitions as before."""
    partition = bench.partition()
    bench.binding = 1
    bench.mig.apply(bench.device, partition)
    bench.restart()
    assert bench.existing == [("1g.10gb", 0, False, True)]
    bench.binding = 2
    assert bench.existing == [("1g.10gb", 0, True, True)]
    assert bench.notes() == []
    bench.mig.undo(bench.device, partition)
    assert bench.layout == [("1g.10gb", 0, 1)]


def test_a_gpu_that_cannot_tell_its_binding_keeps_what_is_noted(bench: MigBench) -> None:
    partition = bench.partition()
    bench.binding = 1
    bench.mig.apply(bench.device, partition)
    bench.binding = None
    assert bench.existing == [("1g.10gb", 0, False, True)]
    bench.binding = 1
    assert bench.existing == [("1g.10gb", 0, False, True)]
