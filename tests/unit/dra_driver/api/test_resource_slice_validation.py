"""The rules for slices, against verdicts of Kubernetes v1.37.2 (testdata), and pool rules."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dra_driver.api.codec import decode
from dra_driver.api.core_v1 import NodeSelector, NodeSelectorTerm
from dra_driver.api.meta_v1 import ObjectMeta
from dra_driver.api.quantity import Quantity
from dra_driver.api.resource_slice_validation import (
    validate_pool,
    validate_resource_slice,
    validate_resource_slice_spec,
)
from dra_driver.api.resource_v1 import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceCounterConsumption,
    DeviceTaint,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)

TESTDATA = Path(__file__).parent / "testdata" / "resource_slice.jsonl"
RECORDED = [json.loads(line) for line in TESTDATA.read_text().splitlines()]


def a_device(name: str = "gpu-0", **fields: Any) -> Device:
    return Device(name=name, **fields)


def a_slice(*devices: Device, count: int = 1, generation: int = 1, **fields: Any) -> ResourceSlice:
    pool = ResourcePool(name="node-a", generation=generation, resource_slice_count=count)
    spec: dict[str, Any] = {"driver": "gpu.example.com", "pool": pool, "node_name": "node-a", "devices": devices}
    return ResourceSlice(metadata=ObjectMeta(name="slice"), spec=ResourceSliceSpec(**(spec | fields)))


def a_counter_set(name: str = "gpu-0", **counters: str) -> CounterSet:
    return CounterSet(name=name, counters={key: Counter(value=Quantity.parse(text)) for key, text in counters.items()})


def a_partition(name: str, counter_set: str = "gpu-0", **counters: str) -> Device:
    taken = {key: Counter(value=Quantity.parse(text)) for key, text in counters.items()}
    return a_device(name, consumes_counters=(DeviceCounterConsumption(counter_set=counter_set, counters=taken),))


def a_share(value: str, default: str | None, **bounds: str) -> Device:
    amounts = {key: Quantity.parse(text) for key, text in bounds.items()}
    policy = CapacityRequestPolicy(
        default=None if default is None else Quantity.parse(default), valid_range=CapacityRequestPolicyRange(**amounts)
    )
    capacity = {"memory": DeviceCapacity(value=Quantity.parse(value), request_policy=policy)}
    return a_device(allow_multiple_allocations=True, capacity=capacity)


def texts(resource_slice: ResourceSlice) -> list[str]:
    return [str(error) for error in validate_resource_slice(resource_slice)]


def pool_texts(*slices: ResourceSlice) -> list[str]:
    return [str(error) for error in validate_pool(slices)]


@pytest.mark.parametrize("row", RECORDED, ids=[f"{'-'.join(row['refused']) or 'ok'}" for row in RECORDED])
def test_the_verdict_is_that_of_the_api_server(row: dict[str, Any]) -> None:
    errors = validate_resource_slice_spec(decode(json.dumps(row["spec"]), ResourceSliceSpec))
    assert bool(errors) == bool(row["refused"]), errors


def test_every_error_is_given_with_its_path() -> None:
    bad = a_slice(
        a_device("GPU", attributes={"a-b": DeviceAttribute(), "v": DeviceAttribute(version="550.127.08")}),
        a_device("gpu", taints=(DeviceTaint(key="", effect="Never"),)),
        a_device("gpu"),
        driver="",
    )
    assert [error.path for error in validate_resource_slice(bad)] == [
        "spec.driver",
        "spec.devices[0].name",
        "spec.devices[0].attributes['a-b']",
        "spec.devices[0].attributes['a-b']",
        "spec.devices[0].attributes['v'].version",
        "spec.devices[1].taints[0].key",
        "spec.devices[1].taints[0].effect",
        "spec.devices[2].name",
    ]


def many(count: int, **fields: Any) -> tuple[Device, ...]:
    return tuple(a_device(f"gpu-{index}", **fields) for index in range(count))


@pytest.mark.parametrize(
    ("devices", "limit"),
    [
        (many(129), "128"),
        ((*many(64), a_partition("part", memory="1")), "64"),
        ((*many(64), a_device("x", taints=(DeviceTaint(key="k", effect="None"),))), "64"),
        ((*many(64), a_device("x", attributes={"a": DeviceAttribute(ints=(0,))})), "64"),
    ],
    ids=["plain", "counters", "taints", "lists"],
)
def test_too_many_devices_are_one_error(devices: tuple[Device, ...], limit: str) -> None:
    (text,) = texts(a_slice(*devices))
    assert text.startswith(f"spec.devices: has {len(devices)} devices")
    assert text.endswith(f"want at most {limit}")
    assert texts(a_slice(*devices[1:])) == []


def test_attributes_and_capacities_share_one_limit_and_list_items_another() -> None:
    capacity = {"memory": DeviceCapacity(value=Quantity.parse("1"))}
    scalars = {f"a{index}": DeviceAttribute(int=index) for index in range(31)}
    assert texts(a_slice(a_device(attributes=scalars, capacity=capacity))) == []
    more = scalars | {"b": DeviceAttribute(bool=True)}
    assert texts(a_slice(a_device(attributes=more, capacity=capacity))) == [
        "spec.devices[0]: has 33 attributes and capacities, want at most 32"
    ]
    lists = scalars | {"a0": DeviceAttribute(ints=tuple(range(19)))}
    assert texts(a_slice(a_device(attributes=lists))) == ["spec.devices[0]: has 49 attribute values, want at most 48"]


def taints(count: int) -> ResourceSlice:
    return a_slice(a_device(taints=(DeviceTaint(key="k", effect="None"),) * count))


def consumptions(count: int) -> ResourceSlice:
    parts = (a_partition("gpu-0", f"set-{index}", memory="1") for index in range(count))
    return a_slice(a_device(consumes_counters=tuple(part.consumes_counters[0] for part in parts)))


def groups(count: int) -> ResourceSlice:
    names = tuple(f"g-{index}" for index in range(count))
    consumption = msgspec.structs.replace(
        a_partition("gpu-0", memory="1").consumes_counters[0], compatibility_groups=names
    )
    return a_slice(a_device(consumes_counters=(consumption,)))


def conditions(count: int) -> ResourceSlice:
    names = tuple(f"c-{index}" for index in range(count))
    return a_slice(a_device(binding_conditions=names, binding_failure_conditions=("failed",)))


def counters(count: int) -> ResourceSlice:
    return a_slice(shared_counters=(a_counter_set(**{f"c{index}": "1" for index in range(count)}),))


def counter_sets(count: int) -> ResourceSlice:
    return a_slice(shared_counters=tuple(a_counter_set(f"set-{index}", memory="1") for index in range(count)))


def values(count: int) -> ResourceSlice:
    policy = CapacityRequestPolicy(
        default=Quantity.of_int(0), valid_values=tuple(Quantity.of_int(index) for index in range(count))
    )
    capacity = {"memory": DeviceCapacity(value=Quantity.of_int(99), request_policy=policy)}
    return a_slice(a_device(allow_multiple_allocations=True, capacity=capacity))


def text_bytes(count: int) -> ResourceSlice:
    device = a_device(attributes={"a": DeviceAttribute(string="x" * count)})
    return a_slice(device)


@pytest.mark.parametrize(
    ("build", "limit"),
    [
        (taints, 16),
        (consumptions, 2),
        (groups, 2),
        (conditions, 4),
        (counters, 32),
        (counter_sets, 8),
        (values, 10),
        (text_bytes, 64),
    ],
    ids=lambda item: getattr(item, "__name__", ""),
)
def test_a_limit_is_exact(build: Callable[[int], ResourceSlice], limit: int) -> None:
    assert texts(build(limit)) == []
    (text,) = texts(build(limit + 1))
    assert text.endswith(f"want at most {limit}")


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        (a_share("80Gi", "80Gi", min="0", step="1Mi"), []),
        (a_share("80Gi", "80Gi", min="0", max="80Gi", step="1Mi"), []),
        (a_share("80Gi", None, min="0"), ["default: is missing, want an amount of validRange"]),
        (
            a_share("1025Ki", "1025Ki", min="0", step="1Mi"),
            ["validRange.step: default 1025Ki is not reached, want 0 plus a multiple of 1Mi"],
        ),
        (
            a_share("512Ki", "0", min="0", step="1Mi"),
            ["validRange.step: min + step is 1Mi, want at most the capacity 512Ki"],
        ),
        (a_share("80Gi", "1Gi", min="2Gi"), ["default: 1Gi is less than min, want at least 2Gi"]),
        (a_share("80Gi", "3Gi", min="0", max="2Gi"), ["default: 3Gi is more than max, want at most 2Gi"]),
        (a_share("1", "1", min="0", step="0"), ["validRange.step: 0 is not positive, want more than 0"]),
        (
            a_share("10", "1", min="-1", step="1"),
            ["validRange.min: -1 is outside of what a step can count, want 0 to 9223372036854775807"],
        ),
    ],
    ids=["whole", "with max", "no default", "off step", "step too large", "below", "above", "no step", "negative"],
)
def test_a_request_policy_adds_up(device: Device, expected: list[str]) -> None:
    prefix = "spec.devices[0].capacity['memory'].requestPolicy."
    assert texts(a_slice(device)) == [prefix + text for text in expected]


def test_a_request_policy_needs_a_shareable_device() -> None:
    device = msgspec.structs.replace(a_share("2", "1", min="0"), allow_multiple_allocations=None)
    assert texts(a_slice(device)) == [
        "spec.devices[0].capacity['memory'].requestPolicy: is set, want it only with allowMultipleAllocations"
    ]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"node_name": None}, "spec: has no nodes, want exactly one of"),
        ({"all_nodes": True}, "spec: has nodeName and allNodes, want exactly one of"),
        ({"node_name": None, "all_nodes": False}, "spec.allNodes: is false, want true or nothing"),
        (
            {"node_name": None, "node_selector": NodeSelector(node_selector_terms=(NodeSelectorTerm(),) * 2)},
            "spec.nodeSelector.nodeSelectorTerms: has 2 terms, want exactly one",
        ),
    ],
    ids=["none", "two", "false", "terms"],
)
def test_a_slice_says_once_where_its_devices_are(fields: dict[str, Any], expected: str) -> None:
    *others, text = texts(a_slice(**fields))
    assert [other[:18] for other in others] == (["spec: has no nodes"] if fields.get("all_nodes") is False else [])
    assert text.startswith(expected)


@pytest.mark.parametrize(
    ("metadata", "path"),
    [
        (ObjectMeta(), "metadata.name"),
        (ObjectMeta(name="A"), "metadata.name"),
        (ObjectMeta(generate_name="00000-A-"), "metadata.generateName"),
        (ObjectMeta(generate_name="-"), "metadata.generateName"),
        (ObjectMeta(name="a", namespace="b"), "metadata.namespace"),
        (ObjectMeta(name="a", labels={"k": "b c"}), "metadata.labels['k']"),
    ],
    ids=["nothing", "name", "generated", "dash", "namespace", "label"],
)
def test_metadata_is_checked(metadata: ObjectMeta, path: str) -> None:
    (error,) = validate_resource_slice(msgspec.structs.replace(a_slice(), metadata=metadata))
    assert error.path == path


def test_a_name_that_the_server_completes_may_end_in_a_dash() -> None:
    metadata = ObjectMeta(generate_name="00000-gpu.example.com-node-a-")
    assert validate_resource_slice(msgspec.structs.replace(a_slice(), metadata=metadata)) == ()


def test_a_hostile_slice_gives_short_messages() -> None:
    bad = a_slice(a_device("x" * 100_000), driver="d\n" * 50_000)
    assert all(len(text) < 300 and "\n" not in text for text in texts(bad))


def test_a_pool_of_counters_and_partitions_holds_together() -> None:
    sets = a_slice(shared_counters=(a_counter_set(memory="80Gi"),), count=2)
    assert pool_texts(sets, a_slice(a_partition("mig-0", memory="10Gi"), count=2)) == []


def test_an_empty_pool_holds_together() -> None:
    assert pool_texts() == []
    assert pool_texts(a_slice()) == []


def test_slices_of_a_pool_agree() -> None:
    other = msgspec.structs.replace(
        a_slice(count=3), spec=msgspec.structs.replace(a_slice(count=3, generation=2).spec, driver="other.example.com")
    )
    assert pool_texts(a_slice(count=2), other) == [
        "[1].spec.driver: 'other.example.com', want 'gpu.example.com' as in the first slice",
        "[1].spec.pool.generation: 2, want 1 as in the first slice",
        "[1].spec.pool.resourceSliceCount: 3, want 2, the number of slices",
    ]


def test_a_device_name_is_there_once_in_a_pool() -> None:
    assert pool_texts(a_slice(a_device("a"), count=2), a_slice(a_device("b"), a_device("a"), count=2)) == [
        "[1].spec.devices[1].name: 'a' is also in slice 0, want each name once in a pool"
    ]


def test_consumed_counters_are_those_of_the_pool() -> None:
    sets = a_slice(shared_counters=(a_counter_set(memory="80Gi"),), count=2)
    devices = a_slice(a_partition("a", "gpu-1", memory="1"), a_partition("b", cores="1"), count=2)
    path = "[1].spec.devices"
    want = "want one of the pool's sharedCounters"
    assert pool_texts(sets, devices) == [
        f"{path}[0].consumesCounters[0].counterSet: unknown counter set 'gpu-1', {want}",
        f"{path}[1].consumesCounters[0].counters['cores']: unknown counter, want one of counter set 'gpu-0'",
    ]


def test_a_counter_set_is_there_once_in_a_pool() -> None:
    sets = a_slice(shared_counters=(a_counter_set(memory="80Gi"),), count=2)
    assert pool_texts(sets, sets) == [
        "[1].spec.sharedCounters[0].name: 'gpu-0' is also in slice 0, want each set once in a pool"
    ]
