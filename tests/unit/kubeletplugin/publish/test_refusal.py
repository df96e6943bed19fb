from dra_driver.devices.model import Inventory
from kubeletplugin.publish.layout import PoolOwner, Refusals, build_pool
from kubeletplugin.publish.offer import SharePolicy
from kubeletplugin.publish.refusal import join_refusals, parse_refusals
from tests.support.builder import DRIVER, NODE, a_device, a_partitionable_device

OWNER = PoolOwner(driver=DRIVER, node_name=NODE, node_uid="uid")
COUNTERS, DEVICES = build_pool(
    Inventory(devices=(a_partitionable_device(), a_device("GPU-1"))), owner=OWNER, shares=SharePolicy()
).slices


def test_a_device_is_named_by_its_position() -> None:
    answer = (
        'create resourceslices x: 422 Invalid: ResourceSlice.resource.k8s.io "x" is invalid: '
        "spec.devices[1].attributes[model].string: Too long: may not be more than 64 bytes"
    )
    problem = (
        "the API server refuses it: spec.devices[1].attributes[model].string: Too long: may not be more than 64 bytes"
    )
    assert parse_refusals(DEVICES, answer) == Refusals(devices={DEVICES.spec.devices[1].name: problem})


def test_several_devices_are_named_once_each_with_their_own_problem() -> None:
    answer = "is invalid: [spec.devices[0].name: Invalid value: a, spec.devices[0].taints: b, spec.devices[4].name: c]"
    refused = parse_refusals(DEVICES, answer).devices
    assert list(refused) == [DEVICES.spec.devices[0].name, DEVICES.spec.devices[4].name]
    assert refused[DEVICES.spec.devices[0].name].endswith("spec.devices[0].name: Invalid value: a")
    assert refused[DEVICES.spec.devices[4].name].endswith("spec.devices[4].name: c")


def test_a_counter_set_is_named_by_its_position() -> None:
    refusals = parse_refusals(COUNTERS, "spec.sharedCounters[0].counters[x]: Invalid value")
    assert list(refusals.counter_sets) == [COUNTERS.spec.shared_counters[0].name]
    assert refusals.devices == {}


def test_an_answer_about_something_else_names_nothing() -> None:
    for answer in ("spec.pool.name: Invalid value", "spec.devices: Too many: 65", "spec.devices[999].name: odd", ""):
        assert parse_refusals(DEVICES, answer) == Refusals()


def test_refusals_add_up() -> None:
    first, second = Refusals(devices={"a": "1"}), Refusals(devices={"b": "2"}, counter_sets={"a": "3"})
    assert join_refusals(first, second) == Refusals(devices={"a": "1", "b": "2"}, counter_sets={"a": "3"})
