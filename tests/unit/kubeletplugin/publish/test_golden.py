"""The slices of a small node as JSON, so that a change of what is published is seen by a person."""

import json
from pathlib import Path

import pytest

from dra_driver.api import codec
from dra_driver.devices.model import DeviceType, Health, Inventory, Link
from kubeletplugin.publish.feature import ALL_FEATURES, Features
from kubeletplugin.publish.layout import PoolOwner, build_pool
from kubeletplugin.publish.offer import SharePolicy
from tests.support.builder import DRIVER, GIB, NODE, a_device, a_partition, a_partitionable_device

TESTDATA = Path(__file__).parent / "testdata"
INVENTORY = Inventory(
    devices=(
        a_partitionable_device(
            "GPU-P",
            a_partition("1g.10gb", start=0, compute_units=14),
            a_partition("3g.40gb", start=0, size=2, memory=40 * GIB, compute_units=42),
            slices=2,
        ),
        a_device(
            "GPU-S",
            uuid="GPU-S",
            product_name="NVIDIA H100 80GB HBM3",
            driver_version="570.195.03",
            link=Link(domain="GPU-S", type="NVLink", full_mesh=True),
            numa_node=1,
            pci_bus_id="0000:1b:00.0",
            health=Health(reason="XidError", message="Xid 79"),
        ),
        a_device("SN-1", vendor="huawei", type=DeviceType.NPU, model="910B3", memory=64 * GIB + 5),
    )
)


@pytest.mark.parametrize(
    ("name", "features"),
    [
        pytest.param("all_features.json", ALL_FEATURES, id="all features"),
        pytest.param("no_feature.json", Features(sharing=False, partitions=False, taints=False), id="no feature"),
    ],
)
def test_the_slices_are_the_golden_ones(name: str, features: Features) -> None:
    owner = PoolOwner(driver=DRIVER, node_name=NODE, node_uid="uid-of-node-a")
    pool = build_pool(INVENTORY, owner=owner, shares=SharePolicy(), features=features)
    rendered = [json.loads(codec.encode(item)) for item in pool.slices]
    assert rendered == json.loads((TESTDATA / name).read_text(encoding="utf-8"))
