import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pynvml
import pytest

from dra_driver.devices.model import Device, Inventory, Link
from dra_driver.devices.nvidia.backend import NvidiaBackend
from dra_driver.devices.partitioning import PartitionMode, PartitionPolicy
from dra_driver.errors import DeviceError
from tests.support.nvml.machine import (
    Fabric,
    Gpu,
    NvLink,
    a_t4_machine,
    a_unified_machine,
    an_a100_machine,
    an_h100_machine,
    an_l40s_machine,
)
from tests.support.nvml.node import NvidiaNode

WHOLE_ONLY = PartitionPolicy(default=PartitionMode.NONE)


@pytest.fixture
def node(tmp_path: Path) -> NvidiaNode:
    return NvidiaNode(tmp_path, an_l40s_machine())


@pytest.fixture
def backend(node: NvidiaNode) -> NvidiaBackend:
    return node.open()


def healths(inventory: Inventory) -> list[str | None]:
    return [device.health.reason if device.health else None for device in inventory.devices]


def test_an_h100_is_read_whole(tmp_path: Path) -> None:
    device = NvidiaNode(tmp_path, an_h100_machine()).open(WHOLE_ONLY).read_inventory().devices[4]
    assert replace(device, counters={}) == Device(
        vendor="nvidia",
        type=device.type,
        identity="GPU-16370004-dc81-5164-48de-5007ee7e9f15",
        model="H100",
        family="hopper",
        product_name="NVIDIA H100 80GB HBM3",
        uuid="GPU-16370004-dc81-5164-48de-5007ee7e9f15",
        serial="1652823054324",
        index=4,
        minor=4,
        memory=81559 << 20,
        memory_type="HBM3",
        compute_capability="9.0",
        compute_units=132,
        driver_version="570.195.03",
        runtime_version="12.8",
        link=Link(domain="GPU-16370000-dc81-5164-48de-5007ee7e9f15", type="NVLink", full_mesh=True),
        share_enforcement=device.share_enforcement,
        numa_node=1,
        pcie_root="pci0000:97",
        pci_bus_id="0000:9d:00.0",
    )


def test_what_a_machine_does_not_know_is_absent(tmp_path: Path) -> None:
    [device] = NvidiaNode(tmp_path, a_unified_machine()).open().read_inventory().devices
    assert (device.memory, device.serial, device.numa_node, device.link, device.health) == (None,) * 5
    assert (device.model, device.memory_type, device.pci_bus_id) == ("GB10", "LPDDR5X", "000f:01:00.0")


def test_a_gpu_of_a_processor_has_no_place_on_a_bus(tmp_path: Path) -> None:
    node = NvidiaNode(tmp_path, a_unified_machine())
    for function in ("nvmlDeviceGetPciInfo", "nvmlSystemGetDriverVersion", "nvmlDeviceGetMinorNumber"):
        node.nvml.fail(function, pynvml.NVML_ERROR_NOT_SUPPORTED)
    [device] = node.open().read_inventory().devices
    assert (device.model, device.health) == ("GB10", None)
    assert (device.pci_bus_id, device.pcie_root, device.driver_version, device.minor) == (None,) * 4


def test_a_library_that_is_older_than_a_structure_costs_only_what_the_structure_tells(tmp_path: Path) -> None:
    node = NvidiaNode(tmp_path, an_h100_machine())
    node.nvml.fail("nvmlDeviceGetGpuFabricInfoV", pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH)
    inventory = node.open().read_inventory()
    assert healths(inventory) == [None] * 8
    assert all(device.link is not None for device in inventory.devices)


def test_a_link_that_was_not_built_in_hides_none_after_it(tmp_path: Path) -> None:
    node = NvidiaNode(tmp_path, an_h100_machine())
    for gpu in node.machine.gpus:
        node.nvml.fail("nvmlDeviceGetNvLinkState", pynvml.NVML_ERROR_NOT_SUPPORTED, gpu=gpu, times=1)
    assert all(device.link is not None for device in node.open().read_inventory().devices)


@pytest.mark.parametrize("address", ["", "N/A"])
def test_the_other_end_of_a_link_may_have_no_place(tmp_path: Path, address: str) -> None:
    node = NvidiaNode(tmp_path, an_l40s_machine())
    links = (NvLink(remote="0000:1b:00.0"),)
    node.machine.gpus[0].links = links
    node.nvml.nvmlDeviceGetNvLinkRemotePciInfo = lambda *_: pynvml.nvmlPciInfo_t(busId=address.encode())  # type: ignore[method-assign]
    assert healths(node.open().read_inventory()) == [None] * 4


def test_a_serial_number_that_is_no_text_is_none(node: NvidiaNode) -> None:
    def read_damaged(_: object) -> str:
        return b"\xff\xfe".decode()

    node.nvml.nvmlDeviceGetSerial = read_damaged  # type: ignore[method-assign]
    assert [device.serial for device in node.open().read_inventory().devices] == [None] * 4


def test_a_gpu_in_a_fabric_beyond_the_node_names_its_clique(tmp_path: Path) -> None:
    machine = an_h100_machine()
    for gpu in machine.gpus:
        gpu.fabric = Fabric(cluster=bytes(range(16)), clique=7)
    machine.gpus[0].fabric = Fabric(cluster=bytes(range(16)), state=pynvml.NVML_GPU_FABRIC_STATE_IN_PROGRESS)
    first, second, *_ = NvidiaNode(tmp_path, machine).open().read_inventory().devices
    assert first.fabric_domain is None
    assert second.fabric_domain == "00010203-0405-0607-0809-0a0b0c0d0e0f.7"
    assert second.link is not None
    assert second.link.domain == second.fabric_domain


def test_a_node_without_nvidia_has_no_devices_and_no_complaint(tmp_path: Path) -> None:
    machine = an_l40s_machine()
    machine.gpus.clear()
    assert NvidiaNode(tmp_path, machine, installed=False).open().read_inventory() == Inventory()


def test_gpus_without_a_driver_are_named_and_found_once_it_is_installed(tmp_path: Path) -> None:
    node = NvidiaNode(tmp_path, a_t4_machine(), installed=False)
    backend = node.open()
    [left_out] = backend.read_inventory().left_out
    assert left_out.subject == "0000:00:1e.0"
    assert left_out.problem.startswith("libnvidia-ml.so.1: not below '/'")
    node.install()
    inventory = backend.read_inventory()
    assert [device.model for device in inventory.devices] == ["T4"]
    assert inventory.left_out == ()


@pytest.mark.parametrize(
    "function",
    [
        "nvmlDeviceGetHandleByIndex",
        "nvmlDeviceGetUUID",
        "nvmlDeviceGetName",
        "nvmlDeviceGetPciInfo",
        "nvmlDeviceGetMemoryInfo",
        "nvmlDeviceGetSerial",
    ],
)
def test_a_gpu_that_cannot_be_read_is_left_out_alone(node: NvidiaNode, function: str) -> None:
    gpu = node.machine.gpus[1]
    node.nvml.fail(function, pynvml.NVML_ERROR_UNKNOWN, gpu=gpu)
    inventory = node.open().read_inventory()
    assert [device.index for device in inventory.devices] == [0, 2, 3]
    assert [(each.subject, each.problem) for each in inventory.left_out] == [("GPU 1", "NVML: unknown error")]


def test_a_gpu_that_stops_answering_stays_unwell_and_its_links_stay(tmp_path: Path) -> None:
    node = NvidiaNode(tmp_path, an_h100_machine())
    backend = node.open()
    before = backend.read_inventory()
    node.machine.gpus[0].lost = True
    after = backend.read_inventory()
    assert healths(after) == ["gpu-lost"] + [None] * 7
    assert [device.link for device in after.devices] == [device.link for device in before.devices]
    assert after.left_out == ()
    node.machine.gpus[0].lost = False
    assert backend.read_inventory() == before


def test_a_silent_gpu_is_known_though_the_library_numbers_the_gpus_anew(
    node: NvidiaNode, backend: NvidiaBackend
) -> None:
    """A GPU was taken out, so each after it has another index."""
    first, second, *_ = backend.read_inventory().devices
    node.remove(first)
    node.machine.gpus[0].lost = True
    after = backend.read_inventory()
    assert [device.identity for device in after.devices] == [gpu.uuid for gpu in node.machine.gpus]
    assert (healths(after), after.left_out) == (["gpu-lost", None, None], ())
    assert after.devices[0].name == second.name


def test_a_gpu_that_tells_its_uuid_alone_is_taken_for_no_other(node: NvidiaNode, backend: NvidiaBackend) -> None:
    before = backend.read_inventory()
    first, *_, last = node.machine.gpus
    node.machine.gpus.reverse()
    first.lost = True
    node.nvml.fail("nvmlDeviceGetMemoryInfo", pynvml.NVML_ERROR_UNKNOWN, gpu=last)
    after = backend.read_inventory()
    assert [device.name for device in after.devices] == [device.name for device in before.devices]
    assert (healths(after), after.left_out) == (["gpu-lost", None, None, "unreadable"], ())


def test_a_gpu_that_never_could_be_read_takes_the_place_of_none(node: NvidiaNode) -> None:
    node.nvml.fail("nvmlDeviceGetName", pynvml.NVML_ERROR_UNKNOWN, gpu=node.machine.gpus[0])
    node.machine.gpus[1].lost = True
    backend = node.open()
    assert len(backend.read_inventory().devices) == 2
    node.machine.gpus[3].lost = True
    after = backend.read_inventory()
    assert [device.index for device in after.devices] == [2, 3]
    assert healths(after) == [None, "gpu-lost"]
    assert [each.subject for each in after.left_out] == ["GPU 0", "GPU 1"]


def test_a_gpu_that_answers_nonsense_is_unwell(node: NvidiaNode, backend: NvidiaBackend) -> None:
    backend.read_inventory()
    node.nvml.fail("nvmlDeviceGetMemoryInfo", pynvml.NVML_ERROR_UNKNOWN, gpu=node.machine.gpus[2], times=1)
    assert healths(backend.read_inventory()) == [None, None, "unreadable", None]
    assert healths(backend.read_inventory()) == [None] * 4


def _remap_failed(gpu: Gpu) -> None:
    gpu.remap_failed = True


def _remap_pending(gpu: Gpu) -> None:
    gpu.remap_pending = True


def _weighed_errors(gpu: Gpu) -> None:
    gpu.uncorrected = 3


def _old_driver_with_errors(gpu: Gpu) -> None:
    gpu.uncorrected, gpu.recovery_action = 3, None


def _pages_to_retire(gpu: Gpu) -> None:
    gpu.remapping, gpu.retirement_pending = False, True


@pytest.mark.parametrize(
    ("ail", "reason"),
    [
        (_remap_failed, "row-remap-failed"),
        (_remap_pending, "row-remap-pending"),
        (_weighed_errors, None),
        (_old_driver_with_errors, "ecc-uncorrected"),
        (_pages_to_retire, "page-retirement-pending"),
    ],
)
def test_a_gpu_says_of_itself_that_it_is_unwell(
    node: NvidiaNode, backend: NvidiaBackend, ail: Callable[[Gpu], None], reason: str | None
) -> None:
    ail(node.machine.gpus[1])
    assert healths(backend.read_inventory()) == [None, reason, None, None]


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        (pynvml.NVML_GPU_RECOVERY_ACTION_NONE, None),
        (pynvml.NVML_GPU_RECOVERY_ACTION_GPU_RESET, "needs-reset"),
        (pynvml.NVML_GPU_RECOVERY_ACTION_NODE_REBOOT, "needs-reboot"),
        (pynvml.NVML_GPU_RECOVERY_ACTION_DRAIN_P2P, "needs-drain"),
        (pynvml.NVML_GPU_RECOVERY_ACTION_DRAIN_AND_RESET, "needs-drain-and-reset"),
        (pynvml.NVML_GPU_RECOVERY_ACTION_RECOVER_IMEX_DOMAIN, "needs-imex-recovery"),
        (pynvml.NVML_GPU_RECOVERY_ACTION_BUS_RESET, "needs-bus-reset"),
        (pynvml.NVML_GPU_RECOVERY_ACTION_SYSTEM_REBOOT, "needs-system-reboot"),
        (99, "needs-recovery"),
    ],
)
def test_each_action_that_the_driver_recommends_has_a_reason_of_its_own(
    node: NvidiaNode, backend: NvidiaBackend, action: int, reason: str | None
) -> None:
    node.machine.gpus[1].recovery_action = action
    assert healths(backend.read_inventory()) == [None, reason, None, None]


def test_an_xid_of_the_gpu_ends_the_wait_and_makes_it_unwell_until_it_was_reset(
    node: NvidiaNode, backend: NvidiaBackend
) -> None:
    backend.read_inventory()
    backend.wait_for_change(0)
    gpu = node.machine.gpus[3]
    node.nvml.emit(gpu, 48)
    backend.wait_for_change(30)
    assert healths(backend.read_inventory()) == [None, None, None, "xid-48"]
    gpu.lost = True
    backend.read_inventory()
    gpu.lost = False
    assert healths(backend.read_inventory()) == [None] * 4


def test_a_gpu_that_wanted_a_reset_and_wants_none_any_more_was_reset(node: NvidiaNode, backend: NvidiaBackend) -> None:
    gpu = node.machine.gpus[3]
    backend.read_inventory()
    backend.wait_for_change(0)
    node.nvml.emit(gpu, 119)
    backend.wait_for_change(30)
    gpu.recovery_action = pynvml.NVML_GPU_RECOVERY_ACTION_GPU_RESET
    assert healths(backend.read_inventory())[3] == "needs-reset"
    gpu.recovery_action = pynvml.NVML_GPU_RECOVERY_ACTION_NONE
    assert healths(backend.read_inventory())[3] is None


def test_a_hiccup_does_not_end_what_an_xid_told(node: NvidiaNode, backend: NvidiaBackend) -> None:
    gpu = node.machine.gpus[3]
    backend.read_inventory()
    backend.wait_for_change(0)
    node.nvml.emit(gpu, 48)
    backend.wait_for_change(30)
    node.nvml.fail("nvmlDeviceGetMemoryInfo", pynvml.NVML_ERROR_TIMEOUT, gpu=gpu, times=1)
    assert healths(backend.read_inventory())[3] == "unreadable"
    assert healths(backend.read_inventory())[3] == "xid-48"


def test_an_xid_that_comes_during_the_wait_ends_it(node: NvidiaNode, backend: NvidiaBackend) -> None:
    backend.read_inventory()
    backend.wait_for_change(0)
    waiter = threading.Thread(target=backend.wait_for_change, args=(50,))
    waiter.start()
    node.nvml.emit(node.machine.gpus[0], 79)
    waiter.join(30)
    assert not waiter.is_alive()
    assert healths(backend.read_inventory())[0] == "xid-79"


def test_a_wait_that_goes_wrong_leaves_nothing_open(node: NvidiaNode, backend: NvidiaBackend) -> None:
    """What is open keeps a GPU's mode as it is, and is never closed by anybody else."""
    backend.read_inventory()
    node.nvml.fail("nvmlEventSetWait", pynvml.NVML_ERROR_UNKNOWN)
    for _ in range(2):
        with pytest.raises(DeviceError):
            backend.wait_for_change(0)
    assert node.nvml.counts["nvmlEventSetCreate"] == node.nvml.counts["nvmlEventSetFree"] == 2


@pytest.mark.parametrize("xid", [13, 31, 43, 45, 63, 94, 154])
def test_an_xid_of_a_program_leaves_the_gpu_well(node: NvidiaNode, backend: NvidiaBackend, xid: int) -> None:
    backend.read_inventory()
    backend.wait_for_change(0)
    node.nvml.emit(node.machine.gpus[0], xid)
    backend.wait_for_change(30)
    assert healths(backend.read_inventory()) == [None] * 4


def test_an_ignored_xid_does_not_hide_one_that_is_not(tmp_path: Path) -> None:
    node = NvidiaNode(tmp_path, an_l40s_machine())
    backend = node.open(ignored_xids=frozenset({74}))
    backend.read_inventory()
    backend.wait_for_change(0)
    for xid, health in ((74, None), (48, "xid-48"), (74, "xid-48"), (13, "xid-48")):
        node.nvml.emit(node.machine.gpus[0], xid)
        backend.wait_for_change(30)
        assert healths(backend.read_inventory())[0] == health


def test_a_gpu_that_reports_no_events_does_not_keep_the_others_from_it(node: NvidiaNode) -> None:
    node.nvml.fail("nvmlDeviceRegisterEvents", pynvml.NVML_ERROR_NOT_SUPPORTED, gpu=node.machine.gpus[0])
    backend = node.open()
    backend.read_inventory()
    backend.wait_for_change(0)
    node.nvml.emit(node.machine.gpus[1], 79)
    backend.wait_for_change(30)
    assert healths(backend.read_inventory())[1] == "xid-79"


def test_waiting_on_a_node_without_a_driver_is_no_error(tmp_path: Path) -> None:
    backend = NvidiaNode(tmp_path, a_t4_machine(), installed=False).open()
    backend.wait_for_change(0)


def test_a_driver_that_is_loaded_anew_is_followed(node: NvidiaNode, backend: NvidiaBackend) -> None:
    before = backend.read_inventory()
    backend.wait_for_change(0)
    node.machine.loaded = False
    with pytest.raises(DeviceError):
        backend.read_inventory()
    unloaded = backend.read_inventory()
    assert healths(unloaded) == ["no-driver"] * 4
    assert [replace(device, health=None) for device in unloaded.devices] == list(before.devices)
    node.machine.loaded = True
    assert backend.read_inventory() == before
    node.nvml.emit(node.machine.gpus[0], 79)
    backend.wait_for_change(0)
    assert backend.read_inventory() == before


def test_an_a100_outside_mig_mode_is_offered_whole_only(tmp_path: Path) -> None:
    for device in NvidiaNode(tmp_path, an_a100_machine()).open().read_inventory().devices:
        assert device.offered_whole
        assert device.partitions == ()


def test_a_gpu_whose_partitions_cannot_be_read_is_left_out_alone(tmp_path: Path) -> None:
    node = NvidiaNode(tmp_path, an_a100_machine(mig=True))
    node.nvml.fail("nvmlDeviceGetMigMode", pynvml.NVML_ERROR_UNKNOWN, gpu=node.machine.gpus[0])
    inventory = node.open().read_inventory()
    assert len(inventory.devices) == 7
    assert len(inventory.left_out) == 1


def test_a_gpu_that_falls_off_the_bus_keeps_its_partitions(tmp_path: Path) -> None:
    node = NvidiaNode(tmp_path, an_a100_machine(mig=True))
    backend = node.open()
    before = backend.read_inventory()
    node.machine.gpus[0].lost = True
    after = backend.read_inventory()
    assert healths(after) == ["gpu-lost"] + [None] * 7
    assert after.devices[0].partitions == before.devices[0].partitions != ()


def test_a_hiccup_while_partitions_are_read_costs_a_gpu_nothing_but_its_health(tmp_path: Path) -> None:
    node = NvidiaNode(tmp_path, an_a100_machine(mig=True))
    backend = node.open()
    before = backend.read_inventory()
    node.nvml.fail("nvmlDeviceGetMigMode", pynvml.NVML_ERROR_UNKNOWN, gpu=node.machine.gpus[0], times=1)
    assert healths(backend.read_inventory()) == ["unreadable"] + [None] * 7
    assert backend.read_inventory() == before


def test_a_program_of_the_driver_that_is_not_there_is_named(backend: NvidiaBackend) -> None:
    [device, *_] = backend.read_inventory().devices
    with pytest.raises(DeviceError, match="nvidia-smi: not below '/'"):
        backend.undo_time_slice(device)


def test_admin_access_sees_a_gpu_in_the_mode_that_it_is_in(tmp_path: Path) -> None:
    node = NvidiaNode(tmp_path, an_h100_machine())
    gpu = node.machine.gpus[0]
    gpu.mig_enabled = gpu.mig_pending = True
    backend = node.open()
    device = backend.read_inventory().devices[0]
    assert backend.render_edits(device, None).device_nodes
    assert gpu.mig_enabled
    with pytest.raises(DeviceError, match="which this driver did not switch on"):
        backend.apply_whole(device)
