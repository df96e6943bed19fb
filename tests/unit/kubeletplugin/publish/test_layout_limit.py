"""Whatever the devices are, the slices are what an API server and an allocator take."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dra_driver.api.resource_slice_validation import validate_pool, validate_resource_slice
from dra_driver.devices.model import Device, Health, Inventory, Partition, ShareEnforcement
from kubeletplugin.publish.feature import Features
from kubeletplugin.publish.layout import PoolOwner, Refusals, build_pool
from kubeletplugin.publish.offer import SharePolicy
from tests.support.builder import DRIVER, GIB, NODE, a_device, a_partition

counters = st.dictionaries(st.sampled_from([f"slice-{n}" for n in range(40)] + ["Bad_Name"]), st.integers(0, 3))
partitions = st.builds(
    a_partition,
    profile=st.sampled_from(["1g.10gb", "2g.20gb", "1g.10gb+me", "Ünfit"]),
    start=st.integers(0, 7),
    size=st.integers(1, 4),
    counters=counters,
    permanent=st.sampled_from([False, False, False, True]),
    offered=st.sampled_from([True, True, True, False]),
)


@st.composite
def wholes(draw: st.DrawFn) -> Device:
    found: list[Partition] = draw(st.lists(partitions, max_size=6))
    return a_device(
        draw(st.sampled_from([f"GPU-{number}" for number in range(200)])),
        memory=draw(st.sampled_from([None, 0, 1, 80 * GIB, 80 * GIB + 1])),
        serial=draw(st.none() | st.text(max_size=80)),
        share_enforcement=draw(st.sampled_from(ShareEnforcement)),
        partitions=tuple(found),
        counters=draw(counters),
        usable_whole=draw(st.booleans()),
        health=draw(st.none() | st.builds(Health, reason=st.sampled_from(["Xid79", "no good"]), message=st.just("m"))),
    )


inventories = st.builds(Inventory, devices=st.lists(wholes(), max_size=40).map(tuple))
all_features = st.builds(Features, sharing=st.booleans(), partitions=st.booleans(), taints=st.booleans())


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(inventory=inventories, features=all_features)
def test_every_pool_is_valid_and_nothing_is_lost(inventory: Inventory, features: Features) -> None:
    owner = PoolOwner(driver=DRIVER, node_name=NODE, node_uid="uid")
    pool = build_pool(inventory, owner=owner, shares=SharePolicy(), features=features)
    assert validate_pool(pool.slices) == ()
    for item in pool.slices:
        assert validate_resource_slice(item) == ()
        assert len(item.spec.devices) <= 64
        assert len(item.spec.shared_counters) <= 8
    published = {device.name for item in pool.slices for device in item.spec.devices}
    left_out = {item.subject for item in pool.left_out}
    for whole in inventory.devices:
        assert not whole.offered_whole or {whole.name} & (published | left_out)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(inventory=inventories, data=st.data())
def test_what_is_refused_is_not_published(inventory: Inventory, data: st.DataObject) -> None:
    owner = PoolOwner(driver=DRIVER, node_name=NODE, node_uid="uid")
    pool = build_pool(inventory, owner=owner, shares=SharePolicy())
    published = [device.name for item in pool.slices for device in item.spec.devices]
    if not published:
        return
    refused = data.draw(st.sampled_from(published))
    refusals = Refusals(devices={refused: "odd"})
    rest = build_pool(inventory, owner=owner, shares=SharePolicy(), refusals=refusals)
    assert [device.name for item in rest.slices for device in item.spec.devices] == [
        name for name in published if name != refused
    ]
