from typing import Any

import pytest

from sandbox.api_server.apply import APPLIED
from sandbox.api_server.gate import resolve_gates
from sandbox.api_server.kind import (
    CONFIG_MAPS,
    DEVICE_TAINT_RULES,
    KINDS,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Kind,
    Object,
)
from sandbox.api_server.refusal import Refusal
from sandbox.api_server.registry import DeleteOptions, Registry, Target
from sandbox.api_server.store import Store
from sandbox.api_server.strategies import build_strategies

OFF = {
    "DRADeviceTaints": False,
    "DRAPartitionableDevices": False,
    "DRAConsumableCapacity": False,
    "DRADeviceBindingConditions": False,
}
TAINT = {"key": "a", "effect": "NoSchedule"}
DEVICE = {
    "name": "x",
    "attributes": {"list": {"ints": [1]}, "model": {"string": "m"}},
    "capacity": {"m": {"value": "4", "requestPolicy": {"default": "1"}}},
    "consumesCounters": [{"counterSet": "s", "counters": {"m": {"value": "1"}}, "compatibilityGroups": ["g"]}],
    "taints": [TAINT],
    "bindsToNode": True,
    "allowMultipleAllocations": True,
}


def a_registry(**gates: bool) -> Registry:
    strategies = build_strategies(resolve_gates(gates))
    return Registry(Store((*KINDS, APPLIED)), strategies, checks_namespaces=False)


def target(kind: Kind, name: str = "") -> Target:
    return Target(kind, "ns" if kind.namespaced else "", name)


def create(registry: Registry, kind: Kind, name: str, spec: Any, **metadata: Any) -> Object:
    return registry.create(target(kind), {"metadata": {"name": name, **metadata}, "spec": spec}).value


def a_slice_spec(**device: Any) -> Any:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    return {"driver": "d", "nodeName": "n", "pool": pool, "devices": [DEVICE | device]}


def update(registry: Registry, kind: Kind, name: str, change: Any, subresource: str = "") -> Object:
    where = Target(kind, "ns" if kind.namespaced else "", name, subresource)
    return registry.update(where, change)[0].value


def test_fields_of_gates_that_are_off_are_dropped_from_a_slice() -> None:
    device = {**DEVICE, "attributes": {"model": {"string": "m"}}}
    created = create(a_registry(**OFF), RESOURCE_SLICES, "s", {**a_slice_spec(), "devices": [device]})
    assert created["spec"]["devices"] == [
        {"name": "x", "attributes": {"model": {"string": "m"}}, "capacity": {"m": {"value": "4"}}}
    ]


def test_a_list_attribute_without_its_gate_is_no_value() -> None:
    with pytest.raises(Refusal) as caught:
        create(a_registry(), RESOURCE_SLICES, "s", a_slice_spec())
    assert [cause["field"] for cause in caught.value.details["causes"]] == ["spec.devices[0].attributes[list]"]


def test_fields_that_are_in_use_are_kept_when_their_gate_goes_off() -> None:
    registry = a_registry(DRAListTypeAttributes=True, DRADeviceCompatibilityGroups=True)
    before = create(registry, RESOURCE_SLICES, "s", a_slice_spec())
    later = Registry(registry.store, build_strategies(resolve_gates(OFF)), checks_namespaces=False)
    after = update(later, RESOURCE_SLICES, "s", lambda old: {**old, "metadata": {"name": "s", "labels": {"a": "b"}}})
    assert after["spec"] == before["spec"]
    assert after["metadata"]["generation"] == 1


def test_fields_of_gates_that_are_off_are_dropped_from_a_claim() -> None:
    registry = a_registry(**OFF)
    body = {"deviceClassName": "c", "capacity": {"requests": {"m": "1"}}, "tolerations": [{"operator": "Exists"}]}
    created = create(registry, RESOURCE_CLAIMS, "c", {"devices": {"requests": [{"name": "r", "exactly": body}]}})
    defaults = {"deviceClassName": "c", "allocationMode": "ExactCount", "count": 1}
    assert created["spec"]["devices"]["requests"] == [{"name": "r", "exactly": defaults}]
    result = {"request": "r", "driver": "d", "pool": "p", "device": "x", "consumedCapacity": {"m": "1"}}
    status = {"allocation": {"devices": {"results": [result | {"bindingConditions": ["a"]}]}}}
    written = update(registry, RESOURCE_CLAIMS, "c", lambda old: {**old, "status": status}, "status")
    del result["consumedCapacity"]
    assert written["status"]["allocation"]["devices"]["results"] == [result]


def test_the_status_of_devices_goes_with_their_allocation() -> None:
    registry = a_registry()
    create(
        registry, RESOURCE_CLAIMS, "c", {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}
    )
    device = {"driver": "d", "pool": "p", "device": "x"}
    status = {"allocation": {"devices": {"results": [{"request": "r", **device}]}}, "devices": [device]}
    written = update(registry, RESOURCE_CLAIMS, "c", lambda old: {**old, "status": status}, "status")
    assert written["status"]["devices"] == [device | {"conditions": None}]
    freed = update(registry, RESOURCE_CLAIMS, "c", lambda old: {**old, "status": {"devices": [device]}}, "status")
    assert freed["status"] == {}


def test_an_update_that_changes_nothing_is_no_write_not_even_after_a_restart() -> None:
    registry = a_registry()
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}
    create(registry, RESOURCE_CLAIMS, "c", {}, finalizers=["a.b/c"], ownerReferences=[owner])
    for _ in range(2):
        before = registry.store.revision
        update(registry, RESOURCE_CLAIMS, "c", lambda old: old)
        assert registry.store.revision == before
        (stored,) = registry.store.all(RESOURCE_CLAIMS)
        store = Store((*KINDS, APPLIED))
        store.restore(RESOURCE_CLAIMS, stored.key, stored.revision, stored.body)
        store.resume(before)
        registry = Registry(store, build_strategies(resolve_gates({})), checks_namespaces=False)


def test_a_taint_begins_when_it_is_first_seen_and_anew_with_another_effect() -> None:
    registry = a_registry()
    old = "2020-01-01T00:00:00Z"
    create(registry, DEVICE_TAINT_RULES, "r", {"taint": TAINT | {"timeAdded": old}})

    def set_effect(effect: str) -> str:
        def change(before: Object) -> Object:
            return {**before, "spec": {"taint": before["spec"]["taint"] | {"effect": effect}}}

        added: str = update(registry, DEVICE_TAINT_RULES, "r", change)["spec"]["taint"]["timeAdded"]
        return added

    assert set_effect("NoSchedule") == old
    assert set_effect("NoExecute") > old


def test_a_deletion_waits_for_the_last_finalizer() -> None:
    registry = a_registry()
    create(registry, RESOURCE_CLAIMS, "c", {}, finalizers=["a.b/c"])
    _, is_gone = registry.delete(target(RESOURCE_CLAIMS, "c"), DeleteOptions())
    assert not is_gone
    last = update(registry, RESOURCE_CLAIMS, "c", lambda old: {**old, "metadata": {"name": "c"}})
    assert "finalizers" not in last["metadata"]
    assert registry.store.all(RESOURCE_CLAIMS) == []


def test_gates_are_taken_off_a_pod_and_never_put_back() -> None:
    registry = a_registry()
    spec = {"containers": [{"name": "m", "image": "i"}], "schedulingGates": [{"name": "a.b/c"}]}
    created = create(registry, PODS, "p", spec)
    assert created["status"]["conditions"][0]["reason"] == "SchedulingGated"
    freed = update(registry, PODS, "p", lambda old: {**old, "spec": old["spec"] | {"schedulingGates": []}})
    assert freed["metadata"]["generation"] == 2
    with pytest.raises(Refusal, match="only deletion is allowed"):
        update(registry, PODS, "p", lambda old: {**old, "spec": old["spec"] | {"schedulingGates": [{"name": "x.y/z"}]}})


def test_no_object_grows_beyond_what_etcd_takes_by_small_changes() -> None:
    registry = a_registry()
    create(registry, CONFIG_MAPS, "c", {})

    def grow(old: Object) -> Object:
        data = old.get("data", {})
        return {**old, "data": data | {str(len(data)): "x" * 500_000}}

    for _ in range(3):
        registry.update(target(CONFIG_MAPS, "c"), grow)
    with pytest.raises(Refusal) as caught:
        registry.update(target(CONFIG_MAPS, "c"), grow)
    assert caught.value.code == 413


def test_an_object_that_is_wrong_a_hundred_thousand_times_is_told_a_thousand() -> None:
    with pytest.raises(Refusal) as caught:
        create(a_registry(), RESOURCE_CLAIMS, "c", {}, labels={f"a{index}": "!" for index in range(100_000)})
    assert len(caught.value.details["causes"]) == 1000


def test_a_pod_may_be_given_any_time_to_end() -> None:
    registry = a_registry()
    registry.create(target(PODS, "p"), {"spec": {"nodeName": "n", "containers": [{"name": "m", "image": "i"}]}})
    stored, is_gone = registry.delete(target(PODS, "p"), DeleteOptions(grace_period_seconds=2**63 - 1))
    assert not is_gone
    assert stored.value["metadata"]["deletionGracePeriodSeconds"] == 2**31 - 1
