from dataclasses import replace
from typing import Any

import pytest

from dra_driver.api.config_v1alpha1 import Strategy
from dra_driver.devices.model import Device, Inventory, Partition
from dra_driver.devices.partitioning import PartitionMode, plan_partitions
from kubeletplugin.advice import Advice, explain_settings
from kubeletplugin.setting import Settings
from tests.support.builder import a_device

GPU = a_device("GPU-1", uuid="GPU-1", compute_capability="9.0")
OLD = a_device("GPU-2", uuid="GPU-2", compute_capability="6.1")
NPU = a_device("NPU-1", uuid="NPU-1", vendor="huawei")
PARTITION = Partition(profile="1g.10gb", start=0, size=1, memory=1 << 30, counters={})
CUT = replace(GPU, partitions=(PARTITION,))


def settings(**fields: Any) -> Settings:
    return Settings(node_name="node-a", **fields)


@pytest.mark.parametrize(
    ("fields", "devices", "problems"),
    [
        pytest.param({}, (GPU, NPU), [], id="nothing set"),
        pytest.param({"partitions_of": ("GPU-9=none",)}, (), [], id="no devices yet"),
        pytest.param({"partitions_of": ("GPU-9=none",)}, (GPU,), ["--partitions-of: 'GPU-9': no device"], id="no such"),
        pytest.param({"partitions_of": ("GPU-1=dynamic",)}, (CUT,), [], id="can be cut"),
        pytest.param(
            {"partitions_of": ("GPU-1=dynamic",)},
            (GPU,),
            [f"--partitions-of: device {GPU.name}: it has no partitions"],
            id="cannot be cut",
        ),
        pytest.param({"partitions_of": ("GPU-1=none",)}, (GPU,), [], id="is not to be cut"),
        pytest.param(
            {"partitions_of": ("GPU-1=dynamic",)},
            (replace(GPU, partitions=(replace(PARTITION, uuid="MIG-1", permanent=True),)),),
            ["an administrator has made partitions"],
            id="is cut",
        ),
        pytest.param(
            {"sharing_strategy_of": ("GPU-9=Shim",)}, (GPU,), ["--sharing-strategy-of: 'GPU-9'"], id="no such to share"
        ),
        pytest.param(
            {"sharing_strategy_of": ("GPU-2=MPS",)},
            (GPU, OLD),
            [f"device {OLD.name}: compute capability 6.1"],
            id="old",
        ),
        pytest.param({"sharing_strategy": Strategy.MPS}, (GPU, OLD), [], id="some know it"),
        pytest.param(
            {"sharing_strategy": Strategy.MPS},
            (OLD, NPU),
            ["--sharing-strategy: no device of this"],
            id="none knows it",
        ),
        pytest.param(
            {"sharing_strategy": Strategy.TIME_SLICING}, (GPU,), ["want --share-unenforced"], id="unlimited, not shared"
        ),
        pytest.param(
            {"sharing_strategy": Strategy.TIME_SLICING, "share_unenforced": True}, (GPU,), [], id="unlimited, shared"
        ),
        pytest.param(
            {"sharing_strategy_of": ("GPU-1=None",)}, (GPU, OLD), ["None limits no shares"], id="one unlimited"
        ),
    ],
)
def test_what_comes_to_nothing_is_said(
    fields: dict[str, Any], devices: tuple[Device, ...], problems: list[str]
) -> None:
    said = list(explain_settings(settings(**fields), Inventory(devices=devices)))
    assert len(said) == len(problems)
    for text, part in zip(said, problems, strict=True):
        assert part in text


def test_a_mode_that_leaves_a_device_no_partitions_is_no_reason_to_complain() -> None:
    device = plan_partitions(CUT, PartitionMode.STATIC)
    assert not list(explain_settings(settings(partitions_of=("GPU-1=static",)), Inventory(devices=(device,))))


def test_each_thing_is_told_once_until_it_ends() -> None:
    told: list[str] = []
    advice = Advice(settings(partitions_of=("GPU-9=none",)), lambda _, message: told.append(message))
    for devices in ((GPU,), (GPU,), (GPU, a_device("GPU-9", uuid="GPU-9")), (GPU,)):
        advice.tell(Inventory(devices=devices))
    assert len(told) == 2
