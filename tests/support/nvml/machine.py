"""Machines with NVIDIA GPUs, as the fake of the library has them: what is fixed about a GPU, and what can change.

Figures are those of real machines: the names that NVML gives, bytes of memory, PCI places, links.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import pynvml

MIB: Final = 1 << 20
NO_INSTANCE: Final = 0xFFFFFFFF


@dataclass(frozen=True, slots=True, kw_only=True)
class NvLink:
    """An NVLink of a GPU. `remote` is the PCI address of the other end, None if it is not told."""

    active: bool = True
    remote: str | None = None
    remote_type: int = pynvml.NVML_NVLINK_DEVICE_TYPE_GPU


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabric:
    """What a GPU knows of its fabric. A cluster of zeros is the fabric of a single machine."""

    state: int = pynvml.NVML_GPU_FABRIC_STATE_COMPLETED
    cluster: bytes = bytes(16)
    clique: int = 0


@dataclass(slots=True, kw_only=True)
class Gpu:
    """One GPU. None is what the GPU does not report. Everything may be changed at any time.

    `memory` is in bytes. `mig_profiles` is a key of `MIG_PROFILES`, None for a GPU without MIG; `mig_pending` is the
    mode after the next reset. `processes` compute on the GPU; while it is `monitored`, somebody has it open.
    """

    name: str
    uuid: str
    pci: str
    minor: int
    memory: int | None
    architecture: int
    capability: tuple[int, int]
    cores: int | None
    serial: str | None = None
    pci_root: str | None = None
    numa_node: int | None = None
    links: tuple[NvLink, ...] = ()
    fabric: Fabric | None = None
    mig_profiles: str | None = None
    mig_enabled: bool = False
    mig_pending: bool = False
    mig_needs_reset: bool = False
    processes: list[int] = field(default_factory=list)
    monitored: bool = False
    lost: bool = False
    ecc: bool = True
    uncorrected: int = 0
    remapping: bool = True
    remap_pending: bool = False
    remap_failed: bool = False
    retirement_pending: bool = False
    recovery_action: int | None = 0


@dataclass(slots=True, kw_only=True)
class Machine:
    """A machine: its GPUs in the order of NVML's index, and its driver. `cuda` is as NVML writes it: 12080 is 12.8."""

    gpus: list[Gpu]
    driver: str = "570.195.03"
    cuda: int = 12080
    loaded: bool = True


_HGX_SLOTS: Final = (
    ("0000:1b:00.0", "pci0000:15", 0),
    ("0000:43:00.0", "pci0000:3d", 0),
    ("0000:52:00.0", "pci0000:4c", 0),
    ("0000:61:00.0", "pci0000:5b", 0),
    ("0000:9d:00.0", "pci0000:97", 1),
    ("0000:c3:00.0", "pci0000:bd", 1),
    ("0000:d1:00.0", "pci0000:cb", 1),
    ("0000:df:00.0", "pci0000:d9", 1),
)


def _uuid(index: int, kind: int) -> str:
    return f"GPU-{kind:04x}{index:04x}-dc81-5164-48de-5007ee7e9f15"


def _switched(count: int) -> tuple[NvLink, ...]:
    return tuple(
        NvLink(remote=f"0000:{0x70 + index % 4:02x}:00.0", remote_type=pynvml.NVML_NVLINK_DEVICE_TYPE_SWITCH)
        for index in range(count)
    )


def an_h100_machine() -> Machine:
    """8 x H100 80GB SXM5, joined by NVSwitch."""
    gpus = [
        Gpu(
            name="NVIDIA H100 80GB HBM3",
            uuid=_uuid(index, 0x1637),
            serial=f"165282305432{index}",
            pci=pci,
            pci_root=root,
            numa_node=node,
            minor=index,
            memory=81559 * MIB,
            architecture=pynvml.NVML_DEVICE_ARCH_HOPPER,
            capability=(9, 0),
            cores=132 * 128,
            links=_switched(18),
            fabric=Fabric(),
            mig_profiles="H100-80",
        )
        for index, (pci, root, node) in enumerate(_HGX_SLOTS)
    ]
    return Machine(gpus=gpus)


def an_h200_machine() -> Machine:
    """One H200 that a cloud passes through to a virtual machine: no NVLink, no NUMA."""
    gpu = Gpu(
        name="NVIDIA H200",
        uuid=_uuid(0, 0x2335),
        serial="1653324012345",
        pci="0000:00:05.0",
        pci_root="pci0000:00",
        minor=0,
        memory=143771 * MIB,
        architecture=pynvml.NVML_DEVICE_ARCH_HOPPER,
        capability=(9, 0),
        cores=132 * 128,
        mig_profiles="H200-141",
    )
    return Machine(gpus=[gpu], driver="580.159.04", cuda=13000)


def an_a100_machine(*, mig: bool = False) -> Machine:
    """8 x A100 80GB SXM4, joined by NVSwitch. Their MIG mode changes with a reset only."""
    gpus = [
        Gpu(
            name="NVIDIA A100-SXM4-80GB",
            uuid=_uuid(index, 0x20B2),
            serial=f"156052101234{index}",
            pci=pci,
            pci_root=root,
            numa_node=node,
            minor=index,
            memory=81920 * MIB,
            architecture=pynvml.NVML_DEVICE_ARCH_AMPERE,
            capability=(8, 0),
            cores=108 * 64,
            links=_switched(12),
            mig_profiles="A100-80",
            mig_enabled=mig,
            mig_pending=mig,
            mig_needs_reset=True,
        )
        for index, (pci, root, node) in enumerate(_HGX_SLOTS)
    ]
    return Machine(gpus=gpus)


def an_l40s_machine() -> Machine:
    """4 x L40S, joined by PCIe alone."""
    gpus = [
        Gpu(
            name="NVIDIA L40S",
            uuid=_uuid(index, 0x26B9),
            serial=f"132092301234{index}",
            pci=f"0000:{bus:02x}:00.0",
            pci_root=f"pci0000:{bus - 1:02x}",
            numa_node=index // 2,
            minor=index,
            memory=46068 * MIB,
            architecture=pynvml.NVML_DEVICE_ARCH_ADA,
            capability=(8, 9),
            cores=142 * 128,
        )
        for index, bus in enumerate((0x3D, 0x61, 0xAB, 0xCF))
    ]
    return Machine(gpus=gpus)


def a_t4_machine() -> Machine:
    """One T4 in a virtual machine of a cloud, with a driver that has no recovery action and a platform without NUMA."""
    gpu = Gpu(
        name="Tesla T4",
        uuid=_uuid(0, 0x1EB8),
        serial="1562619008901",
        pci="0000:00:1e.0",
        pci_root="pci0000:00",
        minor=0,
        memory=15360 * MIB,
        architecture=pynvml.NVML_DEVICE_ARCH_TURING,
        capability=(7, 5),
        cores=2560,
        remapping=False,
        recovery_action=None,
    )
    return Machine(gpus=[gpu], driver="535.183.01", cuda=12020)


def a_unified_machine() -> Machine:
    """One GB10, whose memory is the machine's: NVML reports none, and little else."""
    gpu = Gpu(
        name="NVIDIA GB10",
        uuid=_uuid(0, 0x2E12),
        pci="000f:01:00.0",
        pci_root="pci000f:00",
        minor=0,
        memory=None,
        architecture=pynvml.NVML_DEVICE_ARCH_BLACKWELL,
        capability=(12, 1),
        cores=48 * 128,
        ecc=False,
        remapping=False,
        recovery_action=None,
    )
    return Machine(gpus=[gpu], driver="580.95.05", cuda=13000)


MACHINES: Final[Mapping[str, Callable[[], Machine]]] = {
    "h100x8": an_h100_machine,
    "h200": an_h200_machine,
    "a100x8": an_a100_machine,
    "a100x8-mig": lambda: an_a100_machine(mig=True),
    "l40sx4": an_l40s_machine,
    "t4": a_t4_machine,
    "gb10": a_unified_machine,
}
