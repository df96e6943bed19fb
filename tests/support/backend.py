"""The backends that the contract suite runs against: a new backend adds a line to `BENCHES`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from dra_driver.devices.backend import Backend
from dra_driver.devices.model import Device
from dra_driver.devices.simulated import SimulatedBackend, profile_names, read_profile
from dra_driver.devices.simulated.node import CharacterDevices
from tests.support.nvml.machine import MACHINES, Machine
from tests.support.nvml.node import NvidiaNode


@dataclass(frozen=True)
class Bench:
    """A node with hardware. `open` makes a new backend on it, as a restarted process would; `remove` pulls a device."""

    open: Callable[[], Backend]
    remove: Callable[[Device], None]


def refuse_mknod(path: str, mode: int = 0, device: int = 0) -> None:
    raise PermissionError(1, "Operation not permitted", path)


def a_simulated_bench(directory: Path, profile: str = "h100x8", *, privileged: bool = True) -> Bench:
    overrides = directory / "overrides.yaml"

    def open_backend() -> Backend:
        nodes = None if privileged else CharacterDevices(directory / "dev", mknod=refuse_mknod)
        return SimulatedBackend(
            read_profile(profile),
            "node-a",
            dev_dir=directory / "dev",
            state_dir=directory / "state",
            overrides_path=overrides,
            nodes=nodes,
        )

    def remove(device: Device) -> None:
        overrides.write_text(f"removed: [{device.name}]")

    return Bench(open_backend, remove)


def _simulated(profile: str, *, privileged: bool = True) -> Callable[[Path], Bench]:
    return lambda directory: a_simulated_bench(directory, profile, privileged=privileged)


def _nvidia(machine: Callable[[], Machine]) -> Callable[[Path], Bench]:
    def build(directory: Path) -> Bench:
        node = NvidiaNode(directory, machine())
        return Bench(node.open, node.remove)

    return build


BENCHES: Mapping[str, Callable[[Path], Bench]] = {
    **{f"simulated-{profile}": _simulated(profile) for profile in profile_names()},
    "simulated-a100x8-unprivileged": _simulated("a100x8", privileged=False),
    **{f"nvidia-{name}": _nvidia(machine) for name, machine in MACHINES.items()},
}
