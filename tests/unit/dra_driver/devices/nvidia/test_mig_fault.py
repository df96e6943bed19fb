"""Every call of the library fails in its turn, and the process is killed before each: nothing is lost or leaked.

The points are not listed but counted, in a run in which nothing goes wrong.
"""

from collections.abc import Callable
from pathlib import Path

import pynvml
import pytest

from dra_driver.devices.model import Partition
from dra_driver.errors import DeviceError
from tests.support.effect import Effects, Killed, Stop, failed_at, killed_at
from tests.support.nvml.machine import Machine, an_a100_machine, an_h100_machine
from tests.support.nvml.mig_bench import MigBench

MACHINES: dict[str, Callable[[], Machine]] = {"h100": an_h100_machine, "a100": lambda: an_a100_machine(mig=True)}
ADMINISTRATORS = ("2g.20gb", 4)


class Trial:
    """A GPU with a partition that is made or removed, beside one of ours that must not be touched."""

    def __init__(self, machine: Callable[[], Machine], directory: Path, *, made: bool, beside: bool) -> None:
        self.bench = MigBench(machine(), directory)
        self.device = self.bench.device
        self.partition = self.bench.partition("1g.10gb", 0)
        self.neighbour = self.bench.partition("3g.40gb", 4)
        self.beside = beside
        if beside:
            self.bench.mig.apply(self.device, self.neighbour)
        if made:
            self.bench.mig.apply(self.device, self.partition)

    def apply(self) -> None:
        self.bench.mig.apply(self.device, self.partition)

    def undo(self) -> None:
        self.bench.mig.undo(self.device, self.partition)

    def require(self, *, made: bool) -> None:
        """The GPU and the notes are as if nothing had ever gone wrong."""
        kept = [("3g.40gb", 4, 1)] if self.beside else []
        assert self.bench.layout == ([("1g.10gb", 0, 1)] if made else []) + kept
        parts = [self.device.partition_name(each) for each in self._there(made=made)]
        switched = [self.device.name] if parts and not self.bench.gpu.mig_needs_reset else []
        assert self.bench.notes() == sorted(f"{name}.json" for name in parts + switched)
        enabled = self.bench.gpu.mig_enabled
        assert enabled == (self.bench.gpu.mig_needs_reset or bool(parts))
        assert self.bench.gpu.mig_pending == enabled
        device = self.bench.read()
        assert len(device.partitions) == 25
        assert [p.permanent for p in device.partitions if p.uuid] == [False] * len(parts)

    def _there(self, *, made: bool) -> list[Partition]:
        return ([self.partition] if made else []) + ([self.neighbour] if self.beside else [])


def unknown_at(number: int) -> Stop:
    """Let one call of the library fail in a way that nobody knows."""
    return failed_at(number, pynvml.NVMLError(pynvml.NVML_ERROR_UNKNOWN))


@pytest.fixture(params=tuple(MACHINES))
def machine(request: pytest.FixtureRequest) -> Callable[[], Machine]:
    return MACHINES[request.param]


def count_effects(machine: Callable[[], Machine], directory: Path, name: str, *, beside: bool) -> Effects:
    trial = Trial(machine, directory / "count", made=name == "undo", beside=beside)
    effects = trial.bench.run(getattr(trial, name))
    trial.require(made=name == "apply")
    return effects


def trials(
    machine: Callable[[], Machine], directory: Path, name: str, *, beside: bool = False
) -> list[tuple[int, str, Trial]]:
    """A fresh trial for each point of an operation."""
    reached = count_effects(machine, directory, name, beside=beside)
    assert len(reached.seen) > 10
    return [
        (point, effect, Trial(machine, directory / str(point), made=name == "undo", beside=beside))
        for point, effect in enumerate(reached.seen)
    ]


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside another"])
def test_whatever_fails_while_a_partition_is_made_leaves_nothing(
    machine: Callable[[], Machine], tmp_path: Path, *, beside: bool
) -> None:
    failed = 0
    for point, effect, trial in trials(machine, tmp_path, "apply", beside=beside):
        if effect.startswith("note"):
            continue
        try:
            trial.bench.run(trial.apply, unknown_at(point))
        except DeviceError:
            failed += 1
            trial.require(made=False)
        trial.apply()
        trial.require(made=True)
    assert failed > 10


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside another"])
def test_whatever_fails_while_a_partition_is_removed_is_made_up_for_by_the_next_try(
    machine: Callable[[], Machine], tmp_path: Path, *, beside: bool
) -> None:
    for point, effect, trial in trials(machine, tmp_path, "undo", beside=beside):
        if effect.startswith("note"):
            continue
        try:
            trial.bench.run(trial.undo, unknown_at(point))
        except DeviceError:
            trial.undo()
        if not beside and not trial.bench.gpu.mig_needs_reset:
            trial.bench.mig.apply_whole(trial.device)
        trial.require(made=False)


@pytest.mark.parametrize("after", ["apply", "undo"])
@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside another"])
@pytest.mark.parametrize("name", ["apply", "undo"])
def test_a_process_that_is_killed_anywhere_is_made_up_for_by_the_next(
    machine: Callable[[], Machine], tmp_path: Path, name: str, after: str, *, beside: bool
) -> None:
    for point, effect, trial in trials(machine, tmp_path, name, beside=beside):
        with pytest.raises(Killed):
            trial.bench.run(getattr(trial, name), killed_at(point))
        device = trial.bench.read()
        assert not any(each.permanent for each in device.partitions), (point, effect)
        assert device.offered_whole == (not trial.bench.gpu.mig_needs_reset), (point, effect)
        getattr(trial, after)()
        if after == "undo" and not beside and not trial.bench.gpu.mig_needs_reset:
            trial.bench.mig.apply_whole(trial.device)
        trial.require(made=after == "apply")


def test_what_is_half_made_and_has_no_claim_any_more_can_be_found(
    machine: Callable[[], Machine], tmp_path: Path
) -> None:
    """The sweep of the plugin goes by what exists: a GPU instance without a compute instance is there, too."""
    found = 0
    for point, _effect, trial in trials(machine, tmp_path, "apply"):
        with pytest.raises(Killed):
            trial.bench.run(trial.apply, killed_at(point))
        exists = bool(trial.bench.layout)
        assert [p.start for p in trial.bench.read().partitions if p.uuid] == ([0] if exists else [])
        found += trial.bench.layout == [("1g.10gb", 0, 0)]
    assert found > 0


def test_an_administrators_instance_outlives_everything(tmp_path: Path) -> None:
    reached = count_effects(MACHINES["a100"], tmp_path, "apply", beside=False)
    for point, effect in enumerate(reached.seen):
        for stop in (killed_at, unknown_at) if not effect.startswith("note") else (killed_at,):
            trial = Trial(MACHINES["a100"], tmp_path / f"{point}-{stop.__name__}", made=False, beside=False)
            trial.bench.nvml.make(trial.bench.gpu, *ADMINISTRATORS)
            with pytest.raises((Killed, DeviceError)):
                trial.bench.run(trial.apply, stop(point))
            trial.undo()
            assert trial.bench.layout == [(*ADMINISTRATORS, 1)]
