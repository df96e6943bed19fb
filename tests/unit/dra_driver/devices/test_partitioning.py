from dataclasses import replace

import pytest

from dra_driver.devices.model import Device, DeviceType, Partition
from dra_driver.devices.partitioning import (
    PartitionMode,
    PartitionPolicy,
    parse_partition_policy,
    plan_partitions,
)
from dra_driver.errors import SettingError

GPU = Device(vendor="nvidia", type=DeviceType.GPU, identity="GPU-1", model="H100", uuid="GPU-1", serial="1652823054321")


def test_every_possible_partition_is_offered_unless_somebody_says_otherwise() -> None:
    assert PartitionPolicy().find_mode(GPU) is PartitionMode.DYNAMIC


@pytest.mark.parametrize("key", [GPU.name, "GPU-1", "1652823054321"])
def test_a_device_is_named_by_name_uuid_or_serial(key: str) -> None:
    policy = parse_partition_policy(PartitionMode.NONE, [f"{key}=static", "GPU-2=dynamic"])
    assert policy.find_mode(GPU) is PartitionMode.STATIC


def test_other_devices_have_the_mode_of_the_node() -> None:
    policy = parse_partition_policy(PartitionMode.NONE, ["GPU-2=dynamic"])
    assert policy.find_mode(GPU) is PartitionMode.NONE


def test_the_name_counts_before_the_uuid() -> None:
    policy = parse_partition_policy(PartitionMode.NONE, ["GPU-1=dynamic", f"{GPU.name}=static"])
    assert policy.find_mode(GPU) is PartitionMode.STATIC


def test_everything_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(SettingError) as caught:
        parse_partition_policy(
            PartitionMode.NONE,
            [
                "dynamic",
                "=static",
                "GPU-3=none,GPU-4=static",
                "GPU-1=dinamic",
                "GPU-2=none",
                "GPU-2=none",
                "GPU-2=static",
            ],
        )
    unknown = "unknown mode 'dinamic', want 'none' or 'static' or 'dynamic'; did you mean 'dynamic'?"
    assert str(caught.value).split("; --") == [
        "--partitions-of: 'dynamic': want <device name, UUID or serial>=<mode>",
        "partitions-of: '=static': want <device name, UUID or serial>=<mode>",
        "partitions-of: 'GPU-3=none,GPU-4=static': want <device name, UUID or serial>=<mode>",
        f"partitions-of: 'GPU-1=dinamic': {unknown}",
        "partitions-of: 'GPU-2=static': 'GPU-2' is none already, want one mode a device",
    ]


def a_partition(start: int, *, uuid: str | None = None, permanent: bool = False, offered: bool = True) -> Partition:
    counters = {f"memory-slice-{start}": 1}
    return Partition(
        profile="1g.10gb",
        start=start,
        size=1,
        memory=1,
        counters=counters,
        uuid=uuid,
        permanent=permanent,
        offered=offered,
    )


MADE, RETIRED = a_partition(1, uuid="MIG-1"), a_partition(1, uuid="MIG-1", offered=False)
POSSIBLE = (a_partition(0), MADE, a_partition(2))
PERMANENT = a_partition(0, uuid="MIG-0", permanent=True)
HIDDEN = a_partition(0, uuid="MIG-0", permanent=True, offered=False)


@pytest.mark.parametrize(
    ("mode", "before", "after"),
    [
        pytest.param("dynamic", POSSIBLE, POSSIBLE, id="dynamic offers all"),
        pytest.param("dynamic", (PERMANENT, *POSSIBLE[1:]), (PERMANENT, RETIRED), id="what is there comes first"),
        pytest.param("static", POSSIBLE, (RETIRED,), id="static keeps what a claim may have"),
        pytest.param("static", (PERMANENT, *POSSIBLE[1:]), (PERMANENT, RETIRED), id="static offers what is there"),
        pytest.param("none", POSSIBLE, (RETIRED,), id="none keeps what a claim may have"),
        pytest.param("none", (PERMANENT,), (HIDDEN,), id="none does not offer what is there"),
    ],
)
def test_a_mode_decides_what_is_offered(mode: str, before: tuple[Partition, ...], after: tuple[Partition, ...]) -> None:
    planned = plan_partitions(replace(GPU, partitions=before), PartitionMode(mode))
    assert planned.partitions == after
    assert planned.offered_whole is (not any(each.permanent for each in before))
