"""What becomes of an XID: NVML tells of it once, and it counts until the GPU was reset."""

from pathlib import Path

import pynvml
import pytest

from dra_driver.devices.nvidia.backend import NvidiaBackend
from tests.support.nvml.machine import an_l40s_machine
from tests.support.nvml.node import NvidiaNode


@pytest.fixture
def node(tmp_path: Path) -> NvidiaNode:
    return NvidiaNode(tmp_path, an_l40s_machine())


def first_health(backend: NvidiaBackend) -> str | None:
    health = backend.read_inventory().devices[0].health
    return health.reason if health else None


def ail(node: NvidiaNode, xid: int = 48) -> NvidiaBackend:
    """Open a backend, and let it hear of an XID of the first GPU."""
    backend = node.open()
    backend.read_inventory()
    backend.wait_for_change(0)
    node.nvml.emit(node.machine.gpus[0], xid)
    backend.wait_for_change(30)
    assert first_health(backend) == f"xid-{xid}"
    return backend


def test_the_next_process_knows_of_it(node: NvidiaNode) -> None:
    ail(node)
    assert first_health(node.open()) == "xid-48"


def test_two_processes_that_hear_of_it_both_note_it_once(node: NvidiaNode) -> None:
    other = node.open()
    other.read_inventory()
    other.wait_for_change(0)
    backend = ail(node)
    other.wait_for_change(30)
    assert first_health(other) == "xid-48"
    node.bind(node.machine.gpus[0])
    assert first_health(other) is None
    assert first_health(backend) is None


def test_the_next_process_passes_over_it_where_it_is_to_be_ignored(node: NvidiaNode) -> None:
    ail(node)
    assert first_health(node.open(ignored_xids=frozenset({48}))) is None
    assert first_health(node.open()) == "xid-48"


def test_it_is_over_once_the_kernel_took_the_gpu_on_anew(node: NvidiaNode) -> None:
    backend = ail(node)
    node.bind(node.machine.gpus[1])
    assert first_health(backend) == "xid-48"
    node.bind(node.machine.gpus[0])
    assert first_health(backend) is None


def test_it_is_over_if_the_kernel_took_the_gpu_on_anew_while_no_plugin_ran(node: NvidiaNode) -> None:
    ail(node)
    node.bind(node.machine.gpus[0])
    assert first_health(node.open()) is None


def test_it_is_not_over_while_the_driver_is_away(node: NvidiaNode) -> None:
    ail(node)
    gpu = node.machine.gpus[0]
    (node.sysfs / "bus/pci/devices" / gpu.pci / "driver").unlink()
    assert first_health(node.open()) == "xid-48"


def test_a_gpu_without_a_place_on_the_bus_goes_by_the_module(node: NvidiaNode) -> None:
    modules = node.sysfs / "module"
    (modules / "nvidia").mkdir(parents=True)
    node.nvml.fail("nvmlDeviceGetPciInfo", pynvml.NVML_ERROR_NOT_SUPPORTED)
    backend = ail(node)
    (modules / "fresh").mkdir()
    (modules / "nvidia").rmdir()
    (modules / "fresh").rename(modules / "nvidia")
    assert first_health(backend) is None


def test_it_is_over_after_a_boot(node: NvidiaNode) -> None:
    ail(node)
    node.boot_id = "boot-2"
    assert first_health(node.open()) is None


@pytest.mark.parametrize(
    "action",
    [
        pynvml.NVML_GPU_RECOVERY_ACTION_GPU_RESET,
        pynvml.NVML_GPU_RECOVERY_ACTION_DRAIN_AND_RESET,
        pynvml.NVML_GPU_RECOVERY_ACTION_BUS_RESET,
    ],
)
def test_it_is_over_if_the_reset_that_the_driver_wanted_came_while_no_plugin_ran(node: NvidiaNode, action: int) -> None:
    backend = ail(node)
    gpu = node.machine.gpus[0]
    gpu.recovery_action = action
    assert str(first_health(backend)).startswith("needs-")
    gpu.recovery_action = pynvml.NVML_GPU_RECOVERY_ACTION_NONE
    assert first_health(node.open()) is None


def test_it_is_not_over_since_traffic_ended_that_the_driver_wanted_ended(node: NvidiaNode) -> None:
    backend = ail(node)
    gpu = node.machine.gpus[0]
    gpu.recovery_action = pynvml.NVML_GPU_RECOVERY_ACTION_DRAIN_P2P
    assert first_health(backend) == "needs-drain"
    gpu.recovery_action = pynvml.NVML_GPU_RECOVERY_ACTION_NONE
    assert first_health(backend) == "xid-48"


def test_a_gpu_that_does_not_answer_until_it_is_reset_says_so_and_is_well_after(node: NvidiaNode) -> None:
    backend = ail(node)
    node.nvml.fail("nvmlDeviceGetUUID", pynvml.NVML_ERROR_RESET_REQUIRED, gpu=node.machine.gpus[0])
    assert first_health(backend) == "needs-reset"
    node.nvml.mend()
    assert first_health(backend) is None


def test_an_operator_who_knows_better_removes_the_note(node: NvidiaNode) -> None:
    backend = ail(node)
    name = backend.read_inventory().devices[0].name
    (node.folder / "state/xid" / f"{name}.json").unlink()
    assert first_health(backend) is None
