"""What a vendor's devices look like from inside a container: names of device nodes, and variables.

The names are those that the vendors' own drivers use, so that a simulated container looks like a real one.
"""

from dataclasses import dataclass
from string import Template


@dataclass(frozen=True, slots=True)
class Flavour:
    """Names below `/dev`; `$minor` is the vendor's number of a device, `$render` its DRM number, `$slot` a partition's.

    `control` are the nodes that all devices of the vendor share. `env` keeps the vendor's own container runtime, which
    looks at the same variables, from adding devices once more.
    """

    control: tuple[str, ...]
    device: str
    partition: str
    env: tuple[str, ...] = ()

    def device_node(self, minor: int, position: int) -> str:
        """The name of a whole device's node."""
        return Template(self.device).substitute(minor=minor, render=128 + position)

    def partition_node(self, slot: int) -> str:
        """The name of a partition's own node; `slot` is unique on the node."""
        return Template(self.partition).substitute(slot=slot)


_GENERIC = Flavour(("accelctl",), "accel/accel$minor", "accel/partition$slot")

_FLAVOURS = {
    "nvidia": Flavour(
        ("nvidiactl", "nvidia-uvm"), "nvidia$minor", "nvidia-caps/nvidia-cap$slot", ("NVIDIA_VISIBLE_DEVICES=void",)
    ),
    "huawei": Flavour(
        ("davinci_manager", "devmm_svm", "hisi_hdc"), "davinci$minor", "vdavinci$slot", ("ASCEND_VISIBLE_DEVICES=void",)
    ),
    "amd": Flavour(("kfd",), "dri/renderD$render", "dri/partition$slot", ("AMD_VISIBLE_DEVICES=void",)),
    "hygon": Flavour(("kfd", "mkfd"), "dri/renderD$render", "dri/partition$slot", ("HCU_VISIBLE_DEVICES=void",)),
    "cambricon": Flavour(("cambricon_ctl",), "cambricon_dev$minor", "cambricon-caps/cap$slot"),
    "mthreads": Flavour(("sgpu-km",), "mtgpu.$minor", "mtgpu-caps/cap$slot"),
    "iluvatar": Flavour(("itrctl",), "iluvatar$minor", "iluvatar-caps/cap$slot"),
    "enflame": Flavour(("gcuctl",), "gcu$minor", "gcu-caps/cap$slot"),
    "metax": Flavour(("mxcd",), "dri/renderD$render", "dri/partition$slot"),
}


def find_flavour(vendor: str) -> Flavour:
    """The vendor's flavour, a generic one for vendors that are not known."""
    return _FLAVOURS.get(vendor, _GENERIC)


def control_number(name: str) -> int:
    """The number of a control node, unique among all vendors', below 64."""
    names = sorted({control for flavour in (*_FLAVOURS.values(), _GENERIC) for control in flavour.control})
    return names.index(name)
