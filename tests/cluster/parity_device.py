"""What is asked about slices and taint rules."""

import copy

from tests.cluster.parity_object import RULES, SLICES, TABLE, Object, device, merge, post, resource, slice_of
from tests.support.api_exchange import STRATEGIC, Step


def slices() -> list[Step]:
    counters = [{"name": "set", "counters": {"memory": {"value": "80Gi"}}}]
    taint = {"key": "example.com/a", "effect": "NoSchedule"}
    long = "a" * 65
    policy = {"default": "1Gi", "validRange": {"min": "1Gi", "step": "1Gi"}}
    shared = device(allowMultipleAllocations=True, capacity={"memory": {"value": "80Gi", "requestPolicy": policy}})
    bad: list[Object] = [
        slice_of("no-nodes", nodeName=None),
        slice_of("two-nodes", allNodes=True),
        slice_of("false", nodeName=None, allNodes=False),
        slice_of("empty-node", nodeName=""),
        slice_of("selector", nodeName=None, nodeSelector={"nodeSelectorTerms": []}),
        slice_of("driver", driver=""),
        slice_of("driver-long", driver="a" * 64),
        slice_of("driver-bad", driver="a_b"),
        slice_of("pool", pool={"name": "", "generation": -1, "resourceSliceCount": 0}),
        slice_of("pool-bad", pool={"name": "a//b", "generation": 0, "resourceSliceCount": 1}),
        slice_of("both", device(), sharedCounters=counters),
        slice_of("names", device("a"), device("a")),
        slice_of("name", device("A_b"), device("")),
        slice_of("many", *(device(f"d{index}") for index in range(129))),
        slice_of("many-tainted", *(device(f"d{index}", taints=[taint]) for index in range(65))),
        slice_of("attributes", device(attributes={f"a{index}": {"int": 1} for index in range(33)})),
        slice_of("attribute", device(attributes={
            "none": {}, "two": {"int": 1, "bool": True}, "long": {"string": long}, "version": {"version": "1"},
            "9": {"int": 1}, "a b/x": {"int": 1}, "x" * 33: {"int": 1},
        })),
        slice_of("list", device(attributes={"list": {"ints": [1]}})),
        slice_of("capacity", device(capacity={"m": {"value": "1", "requestPolicy": policy}})),
        slice_of("policy", device(allowMultipleAllocations=True, capacity={
            "a": {"value": "10", "requestPolicy": {"validValues": ["1", "2"]}},
            "b": {"value": "10", "requestPolicy": {"default": "3", "validValues": ["2", "1", "20"]}},
            "c": {"value": "10", "requestPolicy": {"default": "3", "validRange": {"min": "4", "max": "11"}}},
            "d": {"value": "10", "requestPolicy": {"default": "3", "validRange": {"min": "2", "step": "2"}}},
            "e": {"value": "10", "requestPolicy": {"default": "1", "validValues": ["1"],
                                                   "validRange": {"min": "1"}}},
        })),
        slice_of("taint", device(taints=[{"key": "", "effect": ""}, {"key": "a b", "effect": "Never"},
                                         {"key": "a", "value": "a b", "effect": "None"}])),
        slice_of("taints", device(taints=[taint] * 17)),
        slice_of("counters", device(consumesCounters=[
            {"counterSet": "set", "counters": {}}, {"counterSet": "Set!", "counters": {"a b": {"value": "1"}}}])),
        slice_of("consumptions", device(consumesCounters=[
            {"counterSet": f"set{index}", "counters": {"m": {"value": "1"}}} for index in range(3)])),
        slice_of("per-device", device(nodeName="node")),
        slice_of("not-per-device", device(), nodeName=None, perDeviceNodeSelection=True),
        slice_of("binding", device(bindingConditions=["a"]), device("b", bindingConditions=["a"] * 5,
                                                                     bindingFailureConditions=["a"])),
        slice_of("shared-counters", sharedCounters=[{"name": "S!", "counters": {}}]),
        slice_of("shared-twice", sharedCounters=counters * 2),
        slice_of("shared-many", sharedCounters=[{**counters[0], "name": f"s{index}"} for index in range(9)]),
        slice_of("quantity", device(capacity={"m": {"value": "much"}})),
    ]  # fmt: skip
    good: list[Object] = [
        slice_of("plain", device()),
        slice_of("empty"),
        slice_of("upper", driver="Driver.example.com"),
        slice_of("full", device(attributes={"a": {"int": 1}, "x.y/b": {"bool": False}, "c": {"version": "1.0.0"},
                                            "d": {"string": ""}},
                                capacity={"memory": {"value": "81920Mi"}, "n": {"value": 1}},
                                taints=[taint, {**taint, "effect": "None", "timeAdded": "2026-01-01T00:00:00Z"}])),
        slice_of("shared", shared),
        slice_of("sets", sharedCounters=counters),
        slice_of("partition", device(consumesCounters=[{"counterSet": "set", "counters": {"memory": {"value": "1"}}}])),
        slice_of("all", device(), nodeName=None, allNodes=True),
        slice_of("selected", device(), nodeName=None, nodeSelector={"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]}),
        slice_of("per", device(nodeName="n"), device("b", allNodes=True), nodeName=None, perDeviceNodeSelection=True),
        slice_of("bound", device(bindsToNode=True, bindingConditions=["a"], bindingFailureConditions=["b"])),
        slice_of("dropped", device(consumesCounters=[{"counterSet": "set", "counters": {"m": {"value": "1"}},
                                                      "compatibilityGroups": ["g"]}],
                                   nodeAllocatableResources={"cpu": {"mapping": {"deviceMultiplier": "1"}}}),
                 skipNodeOperations=["NodeUnprepareResources"], partitionTypeAttribute="a.b/c"),
    ]  # fmt: skip
    for each in (*bad, *good):
        each["metadata"]["name"] = f"@ns-{each['metadata']['name']}"
    changed = copy.deepcopy(good[0])
    changed["spec"]["pool"]["generation"] = 2
    plain = f"{SLICES}/@ns-plain"
    return [
        *post(SLICES, *bad, *good),
        Step("PUT", plain, changed),
        Step("PUT", plain, changed),
        merge(plain, {"spec": {"driver": "other.example.com", "pool": {"name": "other"}, "nodeName": "other"}}),
        merge(plain, {"spec": {"devices": [device(attributes={"a": {"int": 2}})]}}),
        merge(plain, {"metadata": {"labels": {"only": "labels"}}}),
        Step("GET", f"{SLICES}?fieldSelector=metadata.name=@ns-plain"),
        Step("GET", f"{SLICES}?fieldSelector=spec.pool.name=zz"),
        Step("GET", f"{SLICES}?fieldSelector=spec.devices=x"),
        Step("GET", plain, accept=TABLE),
        *(Step("DELETE", f"{SLICES}/{each['metadata']['name']}") for each in good),
        Step("DELETE", plain),
    ]


def taint_rules() -> list[Step]:
    taint = {"key": "example.com/a", "value": "b", "effect": "NoExecute"}
    condition = {"type": "EvictionInProgress", "status": "True", "reason": "Up", "message": "m",
                 "lastTransitionTime": "2026-01-01T00:00:00Z"}  # fmt: skip
    one = f"{RULES}/@ns-a"
    old = "2026-01-01T00:00:00Z"
    return [
        *post(RULES, resource("DeviceTaintRule", "@ns-a", {"taint": {**taint, "timeAdded": old},
                              "deviceSelector": {"driver": "d", "pool": "p", "device": "x"}})),
        *post(RULES, resource("DeviceTaintRule", "@ns-b", {"taint": taint})),
        *post(RULES, resource("DeviceTaintRule", "@ns-c", {"taint": {"key": "", "effect": ""}})),
        *post(RULES, resource("DeviceTaintRule", "@ns-d", {"taint": {**taint, "effect": "Never"},
                              "deviceSelector": {"driver": "a b", "pool": "", "device": "X"}})),
        *post(RULES, resource("DeviceTaintRule", "@ns-e", {"taint": {**taint, "value": "a b"}})),
        Step("PUT", one, resource("DeviceTaintRule", "@ns-a", {"taint": taint})),
        merge(one, {"spec": {"taint": {"value": "c"}}}),
        merge(one, {"spec": {"taint": {"effect": "None"}}}),
        merge(f"{one}/status", {"status": {"conditions": [condition]}, "spec": {"taint": {"key": "z"}}}),
        merge(f"{one}/status", {"status": {"conditions": [{**condition, "reason": ""}]}}),
        merge(f"{one}/status", {"status": {"conditions": [{**condition, "type": f"C{at}"} for at in range(9)]}}),
        Step("PATCH", f"{one}/status", {"status": {"conditions": [{**condition, "status": "False"}]}}, STRATEGIC),
        Step("DELETE", one),
        Step("DELETE", f"{RULES}/@ns-b"),
    ]  # fmt: skip
