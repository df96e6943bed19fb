"""A machine with MIG, the driver's side of it, and a count of everything that it does to the outside."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from dra_driver.devices.model import Device, DeviceType, Partition
from dra_driver.devices.nvidia.mig import Mig
from dra_driver.devices.nvidia.mig_note import MigNote, MigNotes
from dra_driver.devices.partitioning import PartitionMode, PartitionPolicy
from tests.support.effect import Effects, Stop, go_on
from tests.support.nvml.fake import FakeNvml
from tests.support.nvml.machine import Gpu, Machine


class CountedNvml(FakeNvml):
    def __init__(self, machine: Machine, effects: Effects) -> None:
        super().__init__(machine)
        self.effects = effects

    def enter(self, function: str, gpu: Gpu | None) -> None:
        self.effects.reach(function)
        super().enter(function, gpu)


class CountedNotes(MigNotes):
    """Notes whose writes can be the last thing that the process did not do. They do not fail: the disk is fine.

    They are not synced: it is processes that end here, not machines.
    """

    def __init__(self, directory: Path, boot_id: str | None, effects: Effects) -> None:
        super().__init__(directory, boot_id=boot_id)
        self.effects = effects
        self.directory = directory
        self.boot_id = boot_id

    def leave(self, name: str) -> None:
        self.effects.reach("note leave")
        super().leave(name)

    def write(self, name: str, uuid: str | None = None) -> None:
        self.effects.reach("note write")
        if self.boot_id is None:
            super().write(name, uuid)
            return
        content = msgspec.json.encode(MigNote(boot=self.boot_id, uuid=uuid))
        (self.directory / f"{name}.json").write_bytes(content)

    def remove(self, name: str) -> None:
        self.effects.reach("note remove")
        (self.directory / f"{name}.json").unlink(missing_ok=True)


class MigBench:
    """One GPU of a machine, as the driver sees it. `restart` makes the driver anew, as another process would."""

    def __init__(self, machine: Machine, directory: Path, mode: PartitionMode = PartitionMode.DYNAMIC) -> None:
        self.gpu = machine.gpus[0]
        self.nvml = CountedNvml(machine, Effects())
        self.nvml.nvmlInit()
        self.directory = directory
        self.boot_id: str | None = "boot-1"
        self.binding: int | None = None
        self.mode = mode
        self.watches = False
        self.mig = self.restart()

    @property
    def device(self) -> Device:
        """The GPU without its partitions, as it is before MIG is looked at."""
        return Device(
            vendor="nvidia",
            type=DeviceType.GPU,
            identity=self.gpu.uuid,
            uuid=self.gpu.uuid,
            model="H100",
            memory=self.gpu.memory,
            compute_capability="{}.{}".format(*self.gpu.capability),
        )

    @property
    def layout(self) -> list[tuple[str, int, int]]:
        return self.nvml.layout(self.gpu)

    @property
    def existing(self) -> list[tuple[str, int, bool, bool]]:
        """The partitions that there are, as the driver reads them: whether permanent, whether offered."""
        return [(p.profile, p.start, p.permanent, p.offered) for p in self.read().partitions if p.uuid is not None]

    @property
    def modes(self) -> tuple[bool, bool]:
        """Whether the GPU is in MIG mode, and whether it will be after a reset."""
        return self.gpu.mig_enabled, self.gpu.mig_pending

    def restart(self) -> Mig:
        self.mig = Mig(
            self.nvml,
            self.open_notes(),
            PartitionPolicy(default=self.mode),
            pause=self._pause,
            read_binding=lambda _device: self.binding,
        )
        return self.mig

    def watch(self) -> None:
        """Have the GPU open in the driver's own process, as it is while it waits for events."""
        self.watches = self.gpu.monitored = True

    @contextlib.contextmanager
    def _pause(self) -> Iterator[None]:
        watched, self.gpu.monitored = self.gpu.monitored, self.gpu.monitored and not self.watches
        yield
        self.gpu.monitored = watched

    def open_notes(self) -> MigNotes:
        return CountedNotes(self.directory, self.boot_id, self.nvml.effects)

    def reboot(self) -> None:
        self.nvml.remove(self.gpu)
        if not self.gpu.mig_needs_reset:
            self.gpu.mig_enabled = self.gpu.mig_pending = False
        self.boot_id = "boot-2"
        self.restart()

    def read(self) -> Device:
        return self.mig.read(self.device)[0]

    def partition(self, profile: str = "1g.10gb", start: int = 0) -> Partition:
        found = [each for each in self.read().partitions if (each.profile, each.start) == (profile, start)]
        assert found, f"{profile} at {start}"
        return found[0]

    def notes(self) -> list[str]:
        return sorted(path.name for path in self.directory.glob("*.json"))

    def run(self, call: Callable[[], Any], stop: Stop = go_on) -> Effects:
        """Do something that is stopped at an effect: a call of the library, or a note; returns what was reached."""
        effects = self.nvml.effects = Effects(stop)
        self.restart()
        try:
            call()
        finally:
            self.nvml.effects = Effects()
            self.restart()
        return effects
