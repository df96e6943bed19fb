"""What lies between the driver and NVIDIA's library: `pynvml` calls a real shared library, by C's rules.

The library asks the fake that the other tests use, so what is read through it must be what is read without it.
"""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pynvml
import pytest

from dra_driver.devices.model import Device, Inventory, Partition
from dra_driver.devices.nvidia.backend import NvidiaBackend
from dra_driver.devices.partitioning import PartitionMode, PartitionPolicy
from dra_driver.errors import DeviceError
from tests.support.nvml.library import FUNCTIONS
from tests.support.nvml.machine import MACHINES, Fabric, Machine, an_a100_machine, an_h100_machine
from tests.support.nvml.node import NvidiaNode

DYNAMIC = PartitionPolicy(default=PartitionMode.DYNAMIC)


@pytest.fixture(autouse=True)
def real_library() -> Iterator[None]:
    before = pynvml.nvmlLib
    yield
    pynvml.nvmlLib = before
    pynvml._nvmlGetFunctionPointer_cache.clear()


@pytest.fixture
def make(tmp_path: Path, nvml_library: Path) -> Iterator[Callable[..., NvidiaNode]]:
    nodes: list[NvidiaNode] = []

    def make(machine: Machine, *missing: str) -> NvidiaNode:
        folder = tmp_path / f"node-{len(nodes)}"
        del machine.gpus[2:]
        nodes.append(NvidiaNode(folder, machine, library=nvml_library, missing=missing))
        return nodes[-1]

    yield make
    assert [node.native.problems for node in nodes] == [[] for _ in nodes]


@pytest.mark.parametrize("name", MACHINES)
def test_a_machine_is_read_through_the_library_as_without_it(
    tmp_path: Path, make: Callable[..., NvidiaNode], name: str
) -> None:
    node = make(MACHINES[name]())
    through = node.open(DYNAMIC).read_inventory()
    machine = MACHINES[name]()
    del machine.gpus[2:]
    without = NvidiaNode(tmp_path / "without", machine).open(DYNAMIC).read_inventory()
    assert len(through.devices) == len(node.machine.gpus)
    assert through == without


@pytest.mark.parametrize(
    "change",
    [
        {"fabric": Fabric(cluster=bytes(range(16)), clique=7)},
        {"remap_pending": True},
        {"remap_failed": True},
        {"recovery_action": pynvml.NVML_GPU_RECOVERY_ACTION_NODE_REBOOT},
        {"recovery_action": None, "uncorrected": 1 << 40},
        {"remapping": False, "retirement_pending": True},
        {"lost": True},
        {"serial": None, "cores": None, "memory": None},
    ],
    ids=", ".join,
)
def test_a_change_of_a_gpu_is_read_through_the_library_as_without_it(
    tmp_path: Path, make: Callable[..., NvidiaNode], change: dict[str, object]
) -> None:
    machine = an_h100_machine()
    del machine.gpus[2:]
    read: list[Inventory] = []
    for node in (make(an_h100_machine()), NvidiaNode(tmp_path / "without", machine)):
        backend = node.open(DYNAMIC)
        before = backend.read_inventory()
        for name, value in change.items():
            setattr(node.machine.gpus[1], name, value)
        read.append(backend.read_inventory())
        assert read[-1] != before
    assert read[0] == read[1]


@pytest.mark.parametrize("name", ["NVIDIA \udcff\udcfe", "x" * 96], ids=["no text", "too long"])
def test_a_gpu_whose_own_memory_is_damaged_is_left_out_alone(make: Callable[..., NvidiaNode], name: str) -> None:
    node = make(an_h100_machine())
    node.machine.gpus[1].name = name
    inventory = node.open(DYNAMIC).read_inventory()
    assert len(inventory.devices) == 1
    (left_out,) = inventory.left_out
    assert left_out.subject == "GPU 1"


def test_an_xid_comes_through_the_library(make: Callable[..., NvidiaNode]) -> None:
    node = make(an_h100_machine())
    backend = node.open(DYNAMIC)
    backend.read_inventory()
    backend.wait_for_change(0)
    node.nvml.emit(node.machine.gpus[1], 79)
    backend.wait_for_change(10)
    health = [device.health for device in backend.read_inventory().devices]
    assert [each is not None for each in health] == [False, True]
    assert health[1] is not None
    assert "79" in health[1].reason + health[1].message


@pytest.fixture(params=[an_h100_machine, lambda: an_a100_machine(mig=True)], ids=["h100", "a100"])
def machine(request: pytest.FixtureRequest) -> Machine:
    found: Machine = request.param()
    return found


def a_partition(backend: NvidiaBackend) -> tuple[Device, Partition]:
    device = backend.read_inventory().devices[0]
    return device, next(each for each in device.partitions if (each.profile, each.start) == ("2g.20gb", 4))


def live(node: NvidiaNode) -> tuple[list[tuple[str, int, int]], ...]:
    """A whole life of a partition; returns what the GPU had at each step."""
    gpu = node.machine.gpus[0]
    steps = []
    device, partition = a_partition(node.open(DYNAMIC))
    node.open(DYNAMIC).apply_partition(device, partition)
    steps.append(node.nvml.layout(gpu))
    node.open(DYNAMIC).apply_partition(device, partition)
    node.open(DYNAMIC).render_edits(device, partition)
    steps.append(node.nvml.layout(gpu))
    (made,) = (each for each in node.open(DYNAMIC).read_inventory().devices[0].partitions if each.uuid)
    assert (made.profile, made.start, made.permanent) == ("2g.20gb", 4, False)
    node.open(DYNAMIC).undo_partition(device, partition)
    steps.append(node.nvml.layout(gpu))
    return tuple(steps)


def test_a_partition_lives_and_dies_through_the_library(make: Callable[..., NvidiaNode], machine: Machine) -> None:
    node = make(machine)
    enabled = machine.gpus[0].mig_enabled
    assert live(node) == ([("2g.20gb", 4, 1)], [("2g.20gb", 4, 1)], [])
    assert machine.gpus[0].mig_enabled == enabled


@pytest.mark.parametrize(
    "missing",
    [
        ("nvmlDeviceGetGpuInstanceProfileInfoV", "nvmlGpuInstanceGetComputeInstanceProfileInfoV"),
        ("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetGpuFabricInfoV", "nvmlDeviceGetNumGpuCores"),
    ],
    ids=["second versions", "newer ones"],
)
def test_a_partition_lives_and_dies_with_an_older_driver(
    make: Callable[..., NvidiaNode], machine: Machine, missing: tuple[str, ...]
) -> None:
    assert live(make(machine, *missing))[-1] == []


def test_an_administrators_instance_is_read_through_the_library(make: Callable[..., NvidiaNode]) -> None:
    node = make(an_a100_machine(mig=True))
    node.nvml.make(node.machine.gpus[0], "3g.40gb", 4)
    node.nvml.make(node.machine.gpus[1], "3g.40gb", 4, compute=(1, 1))
    inventory = node.open(DYNAMIC).read_inventory()
    (partition,) = inventory.devices[0].partitions
    assert (partition.profile, partition.start, partition.permanent) == ("3g.40gb", 4, True)
    (left_out,) = inventory.left_out
    assert "has 2 compute instances" in left_out.problem


def test_a_gpu_that_is_computed_on_is_not_switched(make: Callable[..., NvidiaNode]) -> None:
    node = make(an_h100_machine())
    device, partition = a_partition(node.open(DYNAMIC))
    node.machine.gpus[0].processes += [4711, 4712]
    with pytest.raises(DeviceError, match="in use by a process"):
        node.open(DYNAMIC).apply_partition(device, partition)
    assert node.nvml.counts["nvmlDeviceSetMigMode"] == 0


NEEDED = {
    "nvmlInitWithFlags",
    "nvmlDeviceGetCount_v2",
    "nvmlDeviceGetHandleByIndex_v2",
    "nvmlDeviceGetHandleByUUID",
    "nvmlDeviceGetName",
    "nvmlDeviceGetUUID",
}
"""What every driver has that ever ran a container."""

MIG = {name for name in FUNCTIONS if "Instance" in name or "Mig" in name} | {"nvmlDeviceGetAttributes_v2"}


@pytest.mark.parametrize("missing", FUNCTIONS)
def test_a_function_that_an_older_driver_lacks_takes_no_gpu_away(make: Callable[..., NvidiaNode], missing: str) -> None:
    node = make(an_a100_machine(), missing)
    backend = node.open(DYNAMIC)
    if missing in NEEDED:
        with pytest.raises(DeviceError, match="function not found"):
            raise DeviceError("; ".join(each.problem for each in backend.read_inventory().left_out))
        return
    inventory = backend.read_inventory()
    assert [device.offered_whole for device in inventory.devices] == [True] * 2
    assert [device.health for device in inventory.devices] == [None] * 2
    assert inventory.left_out == ()


@pytest.mark.parametrize("missing", sorted(MIG))
def test_a_function_that_is_missing_leaves_no_partition_behind_that_is_not_known_for_ours(
    make: Callable[..., NvidiaNode], machine: Machine, missing: str
) -> None:
    """With the driver that lacks it nothing else than a refusal comes of it, and the next driver tidies up."""
    node = make(machine)
    device, partition = a_partition(node.open(DYNAMIC))
    node.native.missing = frozenset({missing})
    older = node.open(DYNAMIC)
    for call in (older.apply_partition, older.undo_partition):
        with contextlib.suppress(DeviceError):
            call(device, partition)
    node.native.missing = frozenset()
    newer = node.open(DYNAMIC)
    assert not any(each.permanent for each in newer.read_inventory().devices[0].partitions)
    newer.undo_partition(device, partition)
    assert node.nvml.layout(machine.gpus[0]) == []


ERRORS = (
    pynvml.NVML_ERROR_INVALID_ARGUMENT,
    pynvml.NVML_ERROR_NOT_SUPPORTED,
    pynvml.NVML_ERROR_NO_PERMISSION,
    pynvml.NVML_ERROR_NOT_FOUND,
    pynvml.NVML_ERROR_INSUFFICIENT_SIZE,
    pynvml.NVML_ERROR_GPU_IS_LOST,
    pynvml.NVML_ERROR_UNKNOWN,
    12345,
)


@pytest.mark.parametrize("error", ERRORS)
def test_whatever_a_function_answers_is_an_error_of_the_driver_or_of_one_gpu(
    make: Callable[..., NvidiaNode], machine: Machine, error: int
) -> None:
    node = make(machine)
    del machine.gpus[2:]
    node.nvml.make(machine.gpus[1], "3g.40gb", 4) if machine.gpus[1].mig_enabled else None
    device, partition = a_partition(node.open(DYNAMIC))
    node.open(DYNAMIC).apply_partition(device, partition)
    for function in sorted(node.nvml.counts):
        node.nvml.fail(function, error)
        backend = node.open(DYNAMIC)
        for call in (
            backend.read_inventory,
            lambda backend=backend: backend.wait_for_change(0),
            lambda backend=backend: backend.render_edits(device, partition),
            lambda backend=backend: backend.apply_partition(device, partition),
        ):
            with contextlib.suppress(DeviceError):
                call()
        node.nvml.mend()
