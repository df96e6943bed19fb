import pytest
from msgspec.structs import replace

from dra_driver.api.quantity import Quantity
from dra_driver.api.resource_v1 import DeviceAttribute, DeviceCapacity, ResourceSlice
from dra_driver.devices.model import Health, Inventory
from kubeletplugin.publish.drop import diff_kept, reduce_features
from kubeletplugin.publish.feature import ALL_FEATURES, Features, Gate
from kubeletplugin.publish.layout import PoolOwner, build_pool
from kubeletplugin.publish.offer import SharePolicy
from tests.support.builder import DRIVER, NODE, a_device, a_partitionable_device


def slices() -> tuple[ResourceSlice, ...]:
    whole = a_partitionable_device()
    sick = a_device(
        "GPU-P", partitions=whole.partitions, counters=whole.counters, health=Health(reason="Xid79", message="")
    )
    owner = PoolOwner(driver=DRIVER, node_name=NODE, node_uid="uid")
    inventory = Inventory(devices=(sick, a_device("GPU-1")))
    return build_pool(inventory, owner=owner, shares=SharePolicy()).slices


def with_devices(item: ResourceSlice, **changes: object) -> ResourceSlice:
    devices = tuple(replace(device, **changes) for device in item.spec.devices)
    return replace(item, spec=replace(item.spec, devices=devices))


COUNTERS, DEVICES = slices()


def test_what_comes_back_whole_is_kept() -> None:
    assert diff_kept(DEVICES, DEVICES) == ()


@pytest.mark.parametrize(
    ("sent", "kept", "path", "gate", "features"),
    [
        pytest.param(
            DEVICES,
            with_devices(DEVICES, taints=()),
            "spec.devices[*].taints",
            Gate.DEVICE_TAINTS,
            Features(taints=False),
            id="taints",
        ),
        pytest.param(
            DEVICES,
            with_devices(DEVICES, consumes_counters=()),
            "spec.devices[*].consumesCounters",
            Gate.PARTITIONABLE_DEVICES,
            Features(partitions=False),
            id="consumed counters",
        ),
        pytest.param(
            COUNTERS,
            replace(COUNTERS, spec=replace(COUNTERS.spec, shared_counters=())),
            "spec.sharedCounters",
            Gate.PARTITIONABLE_DEVICES,
            Features(partitions=False),
            id="shared counters",
        ),
        pytest.param(
            DEVICES,
            with_devices(DEVICES, allow_multiple_allocations=None),
            "spec.devices[*].allowMultipleAllocations",
            Gate.CONSUMABLE_CAPACITY,
            Features(sharing=False),
            id="sharing",
        ),
        pytest.param(
            DEVICES,
            with_devices(DEVICES, attributes={}),
            "spec.devices[*].attributes",
            None,
            ALL_FEATURES,
            id="something that no gate is known of",
        ),
        pytest.param(
            DEVICES,
            replace(DEVICES, spec=replace(DEVICES.spec, devices=DEVICES.spec.devices[:1])),
            "spec.devices[*]",
            None,
            ALL_FEATURES,
            id="whole devices",
        ),
    ],
)
def test_a_dropped_field_is_named_with_its_gate(
    sent: ResourceSlice, kept: ResourceSlice, path: str, gate: Gate | None, features: Features
) -> None:
    dropped = diff_kept(sent, kept)
    assert [(field.path, field.gate) for field in dropped] == [(path, gate)]
    assert reduce_features(ALL_FEATURES, dropped) == features


def test_a_dropped_request_policy_is_one_field_however_many_capacities_had_it() -> None:
    plain = {name: DeviceCapacity(value=item.value) for name, item in DEVICES.spec.devices[-1].capacity.items()}
    dropped = diff_kept(DEVICES, with_devices(DEVICES, capacity=plain))
    assert [str(field) for field in dropped if field.gate] == [
        "spec.devices[*].capacity[*].requestPolicy (feature gate DRAConsumableCapacity)"
    ]


def test_a_changed_value_is_not_kept() -> None:
    attributes = DEVICES.spec.devices[0].attributes | {"model": DeviceAttribute(string="other")}
    first, *rest = DEVICES.spec.devices
    kept = replace(DEVICES, spec=replace(DEVICES.spec, devices=(replace(first, attributes=attributes), *rest)))
    assert [field.path for field in diff_kept(DEVICES, kept)] == ["spec.devices[*].attributes[*].string"]


def test_false_is_a_value_that_can_be_dropped() -> None:
    attributes = {name: value for name, value in DEVICES.spec.devices[0].attributes.items() if name != "partition"}
    first, *rest = DEVICES.spec.devices
    kept = replace(DEVICES, spec=replace(DEVICES.spec, devices=(replace(first, attributes=attributes), *rest)))
    assert [field.path for field in diff_kept(DEVICES, kept)] == ["spec.devices[*].attributes[*]"]


def test_what_the_server_adds_is_no_difference() -> None:
    taint = replace(DEVICES.spec.devices[0].taints[0], time_added="2026-01-01T00:00:00Z")
    first, *rest = DEVICES.spec.devices
    kept = replace(DEVICES, spec=replace(DEVICES.spec, devices=(replace(first, taints=(taint,)), *rest)))
    metadata = replace(kept.metadata, uid="uid", resource_version="5", labels={"a": "b"})
    assert diff_kept(DEVICES, replace(kept, metadata=metadata)) == ()


def test_the_way_in_which_a_quantity_is_written_is_no_difference() -> None:
    last = DEVICES.spec.devices[-1]
    memory = replace(last.capacity["memory"], value=Quantity.parse("81920Mi"))
    kept = replace(
        DEVICES,
        spec=replace(
            DEVICES.spec,
            devices=(*DEVICES.spec.devices[:-1], replace(last, capacity=last.capacity | {"memory": memory})),
        ),
    )
    assert diff_kept(DEVICES, kept) == ()


def test_gates_add_up_and_unknown_ones_change_nothing() -> None:
    features = ALL_FEATURES.without(Gate.DEVICE_TAINTS).without(Gate.CONSUMABLE_CAPACITY)
    assert features == Features(sharing=False, taints=False)
    assert features.without(Gate.LIST_TYPE_ATTRIBUTES) == features
