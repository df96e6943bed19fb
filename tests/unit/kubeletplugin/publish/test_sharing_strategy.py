"""What a slice says of how its devices are shared."""

import pytest

from dra_driver.api.config_v1alpha1 import Strategy
from dra_driver.devices.model import Inventory
from dra_driver.devices.sharing import SharingPolicy, apply_policy
from kubeletplugin.publish.layout import PoolOwner, build_pool
from kubeletplugin.publish.offer import SharePolicy
from tests.support.builder import DRIVER, NODE, a_device

OWNER = PoolOwner(driver=DRIVER, node_name=NODE, node_uid="node-uid")


@pytest.mark.parametrize(
    ("strategy", "enforcement", "shared"),
    [
        (Strategy.SHIM, "shim", True),
        (Strategy.MPS, "hardware", True),
        (Strategy.TIME_SLICING, "none", False),
        (Strategy.NONE, "none", False),
    ],
    ids=str,
)
def test_what_limits_nobody_is_shared_only_if_the_operator_says_so(
    strategy: Strategy, enforcement: str, *, shared: bool
) -> None:
    inventory = apply_policy(Inventory(devices=(a_device(),)), SharingPolicy(default=strategy))
    for unenforced in (False, True):
        pool = build_pool(inventory, owner=OWNER, shares=SharePolicy(unenforced=unenforced))
        [device] = pool.slices[0].spec.devices
        assert device.attributes["sharingStrategy"].string == strategy
        assert device.attributes["shareEnforcement"].string == enforcement
        assert bool(device.allow_multiple_allocations) is (shared or unenforced)
