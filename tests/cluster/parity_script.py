"""The requests that are put to the sandbox's API server and to the real one: each script in a namespace of its own."""

import copy
from typing import Any

from tests.support.api_exchange import APPLY, JSON_PATCH, MERGE, STRATEGIC, Step

RESOURCE = "/apis/resource.k8s.io/v1"
SLICES = f"{RESOURCE}/resourceslices"
CLASSES = f"{RESOURCE}/deviceclasses"
RULES = f"{RESOURCE}/devicetaintrules"
NODES = "/api/v1/nodes"
NS = "@ns"
CLAIMS = f"{RESOURCE}/namespaces/{NS}/resourceclaims"
TEMPLATES = f"{RESOURCE}/namespaces/{NS}/resourceclaimtemplates"
PODS = f"/api/v1/namespaces/{NS}/pods"
EVENTS = f"/api/v1/namespaces/{NS}/events"
MAPS = f"/api/v1/namespaces/{NS}/configmaps"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NS}/leases"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

Object = dict[str, Any]


def resource(kind: str, name: str, spec: Any = None, **metadata: Any) -> Object:
    head = {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": name, **metadata}}
    return head | ({"spec": spec} if spec is not None else {})


def request(name: str = "r", **exactly: Any) -> Object:
    return {"name": name, "exactly": {"deviceClassName": "class", **exactly}}


def claim(name: str, *requests: Any, constraints: Any = None, config: Any = None, **metadata: Any) -> Object:
    devices: Object = {"requests": list(requests) or [request()]}
    devices |= {"constraints": constraints} if constraints is not None else {}
    devices |= {"config": config} if config is not None else {}
    return resource("ResourceClaim", name, {"devices": devices}, **metadata)


def cel(expression: str) -> Object:
    return {"cel": {"expression": expression}}


def opaque(driver: str = "driver.example.com", parameters: Any = None) -> Object:
    return {"opaque": {"driver": driver, "parameters": {"a": 1} if parameters is None else parameters}}


def device(name: str = "gpu-0", **parts: Any) -> Object:
    return {"name": name, **parts}


def slice_of(name: str, *devices: Any, **spec: Any) -> Object:
    pool = {"name": "pool", "generation": 1, "resourceSliceCount": 1}
    base: Object = {"driver": "driver.example.com", "pool": pool, "nodeName": "node"}
    base |= {"devices": list(devices)} if devices else {}
    base |= spec
    return resource("ResourceSlice", name, {key: part for key, part in base.items() if part is not None})


def pod(name: str, **spec: Any) -> Object:
    containers = [{"name": "main", "image": "busybox:1"}]
    body = {"automountServiceAccountToken": False, "containers": containers, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": body}


def node(name: str, **parts: Any) -> Object:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, **parts}


def result(name: str = "r", **parts: Any) -> Object:
    return {"request": name, "driver": "driver.example.com", "pool": "pool", "device": "gpu-0", **parts}


def allocation(*results: Any, **parts: Any) -> Object:
    return {"devices": {"results": list(results) or [result()]}, "allocationTimestamp": "2026-01-01T00:00:00Z", **parts}


def user(uid: str = "uid-1", **parts: Any) -> Object:
    return {"resource": "pods", "name": "p", "uid": uid, **parts}


def post(path: str, *bodies: Any) -> list[Step]:
    return [Step("POST", path, body) for body in bodies]


def merge(path: str, patch: Any) -> Step:
    return Step("PATCH", path, patch, MERGE)


def status(name: str, **parts: Any) -> Step:
    return merge(f"{CLAIMS}/{name}/status", {"status": parts})


def _claims() -> list[Step]:
    exactly = request()["exactly"]
    sub = {"name": "s", "deviceClassName": "class"}
    attribute = "driver.example.com/model"
    long = "a" * 64
    return post(
        CLAIMS,
        claim("plain"),
        claim("full", request(
            selectors=[cel("device.driver == 'x'")], allocationMode="All",
            tolerations=[{"key": "k", "effect": "NoSchedule"}, {"operator": "Exists"}],
            capacity={"requests": {"memory": "1024Mi", "cores": 5}},
        )),
        claim("first", {"name": "r", "firstAvailable": [sub, {**sub, "name": "t", "count": 2}]}),
        claim("constrained", request("a"), request("b"), constraints=[
            {"matchAttribute": attribute}, {"requests": ["a"], "distinctAttribute": attribute},
        ], config=[opaque(), {"requests": ["a"], **opaque()}]),
        claim("none-at-all") | {"spec": {}},
        claim("twice", request("a"), request("a")),
        claim("many", *(request(f"r{index}") for index in range(33))),
        claim("no-name", request("")),
        claim("long-name", request(long)),
        claim("bad-name", request("A_b")),
        claim("no-class", {"name": "r", "exactly": {}}),
        claim("bad-class", request(deviceClassName="Not OK")),
        claim("neither", {"name": "r"}),
        claim("both", {"name": "r", "exactly": exactly, "firstAvailable": [sub]}),
        claim("subs", {"name": "r", "firstAvailable": [{**sub, "name": f"s{index}"} for index in range(9)]}),
        claim("same-subs", {"name": "r", "firstAvailable": [sub, sub]}),
        claim("bad-sub", {"name": "r", "firstAvailable": [{"name": "S", "deviceClassName": ""}]}),
        claim("count", request(count=-1)),
        claim("all-count", request(allocationMode="All", count=1)),
        claim("mode", request(allocationMode="Some")),
        claim("cel", request(selectors=[cel("device.nothing")])),
        claim("cel-syntax", request(selectors=[cel("device.")])),
        claim("cel-empty", request(selectors=[cel("")])),
        claim("cel-type", request(selectors=[cel("1 + 1")])),
        claim("cel-long", request(selectors=[cel("true || " * 1281 + "true")])),
        claim("cel-costly", request(selectors=[cel(
            "device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, "
            "device.attributes.all(d, device.attributes.all(e, device.attributes.all(f, true))))))",
        )])),
        claim("cel-missing", request(selectors=[{}])),
        claim("cel-many", request(selectors=[cel("true")] * 33)),
        claim("admin", request(adminAccess=True)),
        claim("not-admin", request(adminAccess=False)),
        claim("toleration", request(tolerations=[
            {"operator": "Exists", "value": "v"}, {"operator": "Less"}, {"key": "a b"}, {"effect": "Never"},
            {"value": "a b"}, {"effect": "None"}, {"effect": "NoExecute", "tolerationSeconds": 3},
        ])),
        claim("references", request("a"), constraints=[
            {"requests": ["b"], "matchAttribute": attribute}, {"requests": ["a/b/c"], "matchAttribute": attribute},
            {"requests": ["a", "a"], "matchAttribute": attribute}, {"requests": ["A"], "matchAttribute": attribute},
        ], config=[{"requests": ["b"], **opaque()}, {"requests": ["a/x"], **opaque()}]),
        claim("constraint", constraints=[{}]),
        claim("attribute", constraints=[
            {"matchAttribute": "model"}, {"matchAttribute": "a b/model"}, {"distinctAttribute": "x/9"},
            {"matchAttribute": ""}, {"matchAttribute": attribute, "distinctAttribute": "bad"},
        ]),
        claim("constraints", constraints=[{"matchAttribute": attribute}] * 33),
        claim("configs", config=[opaque()] * 33),
        claim("config", config=[{}, opaque(""), opaque("a b"), opaque(long), opaque(parameters="text"),
                                opaque(parameters=[1]), opaque(parameters={"a": "x" * 10300})]),
        claim("config-null", config=[{"opaque": {"driver": "driver.example.com"}}]),
        claim("derived", request(derivedAttributes=[{"name": attribute, "expression": "device.driver"}]),
              constraints=[{"matchAttribute": attribute}]),
        claim("wrong-type") | {"spec": {"devices": {"requests": "x"}}},
        claim("wrong-quantity", request(capacity={"requests": {"memory": "lots"}})),
        claim("with-status") | {"status": {"allocation": {}}},
        claim("unknown") | {"spec": {"devices": {"requests": [request() | {"color": "red"}]}, "x": 1}},
    )  # fmt: skip


def _claim_life() -> list[Step]:
    one = f"{CLAIMS}/c"
    return [
        *post(CLAIMS, claim("c", request(), labels={"a": "1"}, finalizers=["example.com/hold"])),
        Step("GET", one, keeps="first"),
        *post(CLAIMS, claim("c")),
        merge(one, {"metadata": {"labels": {"b": "2"}, "annotations": {"x": "y"}}}),
        merge(one, {"metadata": {"labels": {"b": "2"}}}),
        merge(one, {"metadata": {"resourceVersion": "@first.rv", "labels": {"c": "3"}}}),
        merge(one, {"metadata": {"uid": "00000000-0000-0000-0000-000000000000"}}),
        merge(one, {"metadata": {"name": "other"}}),
        merge(one, {"spec": {"devices": {"requests": [request("other")]}}}),
        merge(one, {"metadata": {"creationTimestamp": "2020-01-01T00:00:00Z"}}),
        Step("PUT", one, claim("c", request(), labels={"a": "2"}, finalizers=["example.com/hold"])),
        Step("PUT", one, claim("c", request(), resourceVersion="@first.rv")),
        Step("PUT", one, claim("d")),
        Step("PUT", f"{CLAIMS}/missing", claim("missing")),
        Step("PUT", f"{one}?dryRun=All", claim("c", request(), finalizers=["example.com/hold", "example.com/more"])),
        merge(one, {"metadata": {"finalizers": ["nodomain"]}}),
        merge(one, {"metadata": {"labels": {"a b": "c"}}}),
        merge(one, {"metadata": {"labels": {"a": "c d"}}}),
        merge(one, {"metadata": {"annotations": {"a b": "c"}}}),
        merge(one, {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]}}),
        merge(one, {"metadata": {"ownerReferences": [{"apiVersion": "", "kind": "", "name": "", "uid": ""}]}}),
        Step("DELETE", one, {"preconditions": {"uid": "other"}}),
        Step("DELETE", one, {"preconditions": {"resourceVersion": "1"}}),
        Step("DELETE", f"{one}?dryRun=All"),
        Step("DELETE", one),
        Step("DELETE", one),
        merge(one, {"metadata": {"finalizers": ["example.com/hold", "example.com/late"]}}),
        merge(one, {"metadata": {"labels": {"late": "yes"}}}),
        merge(one, {"metadata": {"finalizers": None}}),
        Step("GET", one),
        Step("DELETE", one),
        merge(one, {}),
        *post(CLAIMS, {**claim("x"), "metadata": {"generateName": "gen-"}}),
        *post(CLAIMS, {**claim("x"), "metadata": {}}),
        *post(CLAIMS, claim("Bad_Name")),
        *post(CLAIMS, claim("v", resourceVersion="5")),
        *post(CLAIMS, claim("n", namespace="other")),
        *post(CLAIMS, claim("v2") | {"apiVersion": "resource.k8s.io/v9"}),
        *post(CLAIMS, claim("kind") | {"kind": "Pod", "apiVersion": "v1"}),
        *post(f"{CLAIMS}?dryRun=All", claim("dry")),
        *post(f"{CLAIMS}?dryRun=Some", claim("dry")),
        Step("GET", f"{CLAIMS}/dry"),
        *post(f"{CLAIMS}?fieldValidation=Strict", {**claim("strict"), "colour": 1}),
        *post(f"{CLAIMS}?fieldValidation=Loose", claim("loose")),
        *post(CLAIMS, {**claim("bare"), "kind": "", "apiVersion": ""}),
    ]  # fmt: skip


def _claim_status() -> list[Step]:
    got = {"driver": "driver.example.com", "pool": "pool", "device": "gpu-0"}
    condition = {"type": "Ready", "status": "True", "reason": "Up", "message": "",
                 "lastTransitionTime": "2026-01-01T00:00:00Z"}  # fmt: skip
    shared = "11111111-2222-3333-4444-555555555555"
    field = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node"]}]}
    return [
        *post(CLAIMS, claim("c", request(), {"name": "f", "firstAvailable": [{"name": "s", "deviceClassName": "x"}]})),
        status("c", reservedFor=[user()]),
        status("c", allocation=allocation(result("x"))),
        status("c", allocation=allocation(result("f/t"))),
        status("c", allocation=allocation(result(driver="", pool="", device=""))),
        status("c", allocation=allocation(result(shareID="X"))),
        status("c", allocation=allocation(result(bindingConditions=["a"]))),
        status("c", allocation=allocation(*([result()] * 33))),
        status("c", allocation=allocation(result(adminAccess=True))),
        status("c", allocation={"devices": {"results": [result()], "config": [
            {"source": "FromMars", **opaque()}, opaque(), {"source": "FromClass"}, {"source": "FromClaim",
             "requests": ["zz"], **opaque()}]}}),
        status("c", allocation=allocation(nodeSelector={"nodeSelectorTerms": []})),
        status("c", allocation=allocation(nodeSelector={"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "a", "operator": "In"}]}]})),
        status("c", allocation={}),
        status("c", allocation=None),
        status("c", allocation=allocation(result("f/s"), result(shareID=shared, consumedCapacity={"m": "1024Mi"},
               tolerations=[{"key": "k"}]), nodeSelector={"nodeSelectorTerms": [field]}), reservedFor=[user()]),
        merge(f"{CLAIMS}/c", {"status": {"allocation": None}, "metadata": {"labels": {"l": "1"}}}),
        merge(f"{CLAIMS}/c/status", {"metadata": {"labels": {"l": "2"}, "annotations": {"a": "b"}}}),
        status("c", allocation={"allocationTimestamp": "2026-01-01T00:00:01Z"}),
        status("c", allocation={"nodeSelector": None}),
        status("c", reservedFor=[user(), user()]),
        status("c", reservedFor=[{"resource": "", "name": "", "uid": ""}]),
        status("c", reservedFor=[user(f"u{index}") for index in range(257)]),
        status("c", devices=[{**got, "conditions": [condition], "data": {"a": 1}}]),
        status("c", devices=[{**got, "shareID": shared, "conditions": [condition]}, got]),
        status("c", devices=[{**got, "device": "gpu-9"}]),
        status("c", devices=[got, got]),
        status("c", devices=[{**got, "conditions": [{**condition, "status": "Maybe", "reason": "a b", "type": ""}]}]),
        status("c", devices=[{**got, "conditions": [{**condition, "type": f"C{index}"} for index in range(9)]}]),
        status("c", devices=[{**got, "networkData": {"ips": ["10.0.0.1/24", "::1/128"], "interfaceName": "eth0"}}]),
        status("c", devices=[{**got, "networkData": {"ips": ["10.0.0.1", "10.0.0.1/24", "10.0.0.1/24"]}}]),
        status("c", devices=[{**got, "networkData": {"interfaceName": "x" * 257, "hardwareAddress": "x" * 129}}]),
        status("c", devices=[{**got, "data": {"a": "x" * 10300}}]),
        status("c", devices=[{**got, "data": [1]}]),
        Step("PATCH", f"{CLAIMS}/c/status", {"status": {"reservedFor": [user("uid-2")]}}, STRATEGIC),
        Step("PATCH", f"{CLAIMS}/c/status", [{"op": "add", "path": "/status/reservedFor/-", "value": user("3")}],
             JSON_PATCH),
        Step("PATCH", f"{CLAIMS}/c/status", [{"op": "test", "path": "/status/reservedFor/0/uid", "value": "zz"}],
             JSON_PATCH),
        merge(f"{CLAIMS}/c", {"metadata": {"finalizers": ["example.com/hold"]}}),
        Step("DELETE", f"{CLAIMS}/c"),
        status("c", reservedFor=[user("late")]),
        status("c", reservedFor=[user()]),
        status("c", reservedFor=None),
        status("c", reservedFor=None, allocation=None),
        Step("GET", f"{CLAIMS}/c/status"),
        merge(f"{CLAIMS}/c", {"metadata": {"finalizers": None}}),
    ]  # fmt: skip


def _templates_and_classes() -> list[Step]:
    spec = {"spec": {"devices": {"requests": [request(tolerations=[{"key": "k"}])]}}}
    template = resource("ResourceClaimTemplate", "t", {"metadata": {"labels": {"a": "b"}}, **spec})
    selectors = [cel("device.driver == 'x'")]
    return [
        *post(TEMPLATES, template),
        *post(TEMPLATES, resource("ResourceClaimTemplate", "u", spec)),
        *post(TEMPLATES, resource("ResourceClaimTemplate", "v", {"metadata": {"name": "x"}, **spec})),
        *post(TEMPLATES, resource("ResourceClaimTemplate", "w", {"metadata": {"labels": {"a b": "c"}}, **spec})),
        *post(TEMPLATES, resource("ResourceClaimTemplate", "x", {"spec": {"devices": {"requests": [request("")]}}})),
        *post(TEMPLATES, resource("ResourceClaimTemplate", "y")),
        merge(f"{TEMPLATES}/t", {"metadata": {"labels": {"x": "y"}}}),
        merge(f"{TEMPLATES}/t", {"spec": {"metadata": {"labels": {"x": "y"}}}}),
        *post(CLASSES, resource("DeviceClass", "@ns-a", {"selectors": selectors, "config": [opaque()]})),
        *post(CLASSES, resource("DeviceClass", "@ns-b", {"extendedResourceName": "example.com/gpu"})),
        *post(CLASSES, resource("DeviceClass", "@ns-c", {})),
        *post(CLASSES, resource("DeviceClass", "@ns-d")),
        *post(CLASSES, resource("DeviceClass", "@ns-e", {"extendedResourceName": "gpu"})),
        *post(CLASSES, resource("DeviceClass", "@ns-f", {"extendedResourceName": "requests.example.com/gpu"})),
        *post(CLASSES, resource("DeviceClass", "@ns-g", {"selectors": [cel("nope")], "config": [{}]})),
        *post(CLASSES, resource("DeviceClass", "@ns-h", {"selectors": selectors * 33, "config": [opaque()] * 33})),
        *post(CLASSES, resource("DeviceClass", "@ns-I", {})),
        merge(f"{CLASSES}/@ns-a", {"spec": {"selectors": [cel("true"), *selectors]}}),
        merge(f"{CLASSES}/@ns-a", {"spec": {"selectors": [cel("nope")]}}),
        merge(f"{CLASSES}/@ns-a", {"metadata": {"labels": {"a": "b"}}}),
        Step("DELETE", f"{CLASSES}/@ns-a"),
        Step("DELETE", f"{CLASSES}/@ns-b"),
        Step("DELETE", f"{CLASSES}/@ns-c"),
        Step("DELETE", f"{CLASSES}/@ns-d"),
    ]


def _slices() -> list[Step]:
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


def _taint_rules() -> list[Step]:
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


def _pods() -> list[Step]:
    one = f"{PODS}/gated"
    gates = [{"name": "example.com/a"}, {"name": "example.com/b"}]
    claims = [{"name": "d", "resourceClaimName": "c"}, {"name": "t", "resourceClaimTemplateName": "t"}]
    using = [{"name": "main", "image": "busybox:latest", "resources": {"claims": [{"name": "d"}],
             "limits": {"cpu": "1", "memory": "1Gi"}}}]  # fmt: skip
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "plain"}}
    target = {"apiVersion": "v1", "kind": "Node", "name": "@ns-node"}
    return [
        *post(f"/api/v1/namespaces/{NS}/serviceaccounts", {"metadata": {"name": "default"}}),
        *post(NODES, node("@ns-node")),
        *post(PODS, pod("plain")),
        *post(PODS, pod("gated", schedulingGates=gates, resourceClaims=claims, containers=using)),
        *post(PODS, pod("none", containers=[])),
        *post(PODS, pod("bad", containers=[{"name": "A"}, {"name": "b", "image": "x"}, {"name": "b", "image": "x"}])),
        *post(PODS, pod("claims", resourceClaims=[{"name": "d"}, {"name": "d", "resourceClaimName": "c"}])),
        *post(PODS, pod("uses", containers=using)),
        *post(PODS, pod("policy", restartPolicy="Sometimes")),
        *post(PODS, pod("unknown", planet="Mars")),
        *post(PODS, pod("gate", schedulingGates=[{"name": "a b"}])),
        merge(one, {"spec": {"schedulingGates": [gates[0]]}}),
        merge(one, {"spec": {"schedulingGates": gates}}),
        merge(one, {"spec": {"schedulingGates": [{"name": "example.com/c"}]}}),
        *post(f"{PODS}/gated/binding", {**binding, "metadata": {"name": "gated"}, "target": target}),
        Step("PATCH", one, [{"op": "remove", "path": "/spec/schedulingGates"}], JSON_PATCH),
        merge(one, {"spec": {"restartPolicy": "Never"}}),
        merge(one, {"spec": {"containers": []}}),
        Step("PATCH", one, {"spec": {"containers": [{"name": "main", "image": "busybox:2"}]}}, STRATEGIC),
        Step("PATCH", one, {"metadata": {"labels": {"a": "b"}, "finalizers": ["example.com/x"]}}, STRATEGIC),
        Step("PATCH", one, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/x"]}}, STRATEGIC),
        merge(f"{one}/status", {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}),
        Step("PATCH", f"{one}/status", {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}, STRATEGIC),
        *post(f"{PODS}/plain/binding", {**binding, "target": target}),
        *post(f"{PODS}/plain/binding", {**binding, "target": target}),
        *post(f"{PODS}/missing/binding", {**binding, "metadata": {"name": "missing"}, "target": target}),
        Step("GET", f"{PODS}/plain"),
        Step("GET", f"{PODS}?fieldSelector=spec.nodeName=@ns-node"),
        Step("GET", f"{PODS}?fieldSelector=spec.nodeName!=@ns-node,status.phase=Running"),
        Step("GET", PODS, accept=TABLE),
        Step("DELETE", f"{PODS}/plain"),
        Step("GET", f"{PODS}/plain"),
        Step("DELETE", f"{PODS}/plain?gracePeriodSeconds=0"),
        Step("DELETE", one),
        Step("GET", one),
        Step("DELETE", f"{NODES}/@ns-node"),
    ]


def _lists() -> list[Step]:
    def a_map(name: str, **labels: str) -> Object:
        return {"metadata": {"name": name, "labels": labels}, "data": {"k": "v"}}

    def selected(labels: str) -> Step:
        return Step("GET", f"{MAPS}?labelSelector={labels}")

    return [
        *post(MAPS, a_map("a", tier="x", n="1"), a_map("b", tier="y"), a_map("c", n="7"), a_map("d", tier="")),
        Step("GET", MAPS, keeps="list"),
        *map(selected, ("tier=x", "tier==x", "tier!=x", "tier", "!tier", "tier+in+(x,y)", "tier+notin+(x)", "n>3",
                        "n<3", "tier=", "tier+in+(x,)", "tier=x,n=1", "n+gt+3", "a+in", "a+in+x", ",", "a,", "a=b=c",
                        "=x", "a+b", "tier+in+()", "x/y/z", "tier=a b".replace(" ", "+"), "!!a", "(a)", "n>x")),
        Step("GET", f"{MAPS}?fieldSelector=metadata.name=a"),
        Step("GET", f"{MAPS}?fieldSelector=metadata.name!=a,metadata.namespace=@ns"),
        Step("GET", f"{MAPS}?fieldSelector=data=a"),
        Step("GET", f"{MAPS}?fieldSelector=metadata.name"),
        Step("GET", f"{MAPS}?limit=2"),
        Step("DELETE", f"{MAPS}/d"),
        Step("GET", f"{MAPS}?limit=2&continue=@token"),
        Step("GET", f"{MAPS}?limit=2&labelSelector=tier"),
        Step("GET", f"{MAPS}?limit=x"),
        Step("GET", f"{MAPS}?continue=xyz"),
        Step("GET", f"{MAPS}?continue=@token&resourceVersion=1000000"),
        Step("GET", f"{MAPS}?resourceVersion=0"),
        Step("GET", f"{MAPS}?resourceVersion=x"),
        Step("GET", f"{MAPS}?resourceVersion=@list.rv&resourceVersionMatch=NotOlderThan"),
        Step("GET", f"{MAPS}?resourceVersion=@list.rv&resourceVersionMatch=Exact"),
        Step("GET", f"{MAPS}?resourceVersionMatch=Exact"),
        Step("GET", f"{MAPS}?resourceVersion=0&resourceVersionMatch=Exact"),
        Step("GET", f"{MAPS}?resourceVersion=1&resourceVersionMatch=Roughly"),
        Step("GET", f"{MAPS}?sendInitialEvents=true"),
        Step("GET", f"{MAPS}?watch=1&timeoutSeconds=1&resourceVersion=@list.rv"),
        Step("GET", f"{MAPS}?watch=1&timeoutSeconds=1&labelSelector=tier=x"),
        Step("GET", f"{MAPS}?watch=1&timeoutSeconds=1&resourceVersion=0&fieldSelector=metadata.name=b"),
        Step("GET", f"{MAPS}?watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
                    "&allowWatchBookmarks=true&fieldSelector=metadata.name=b"),
        Step("GET", f"{MAPS}?watch=1&sendInitialEvents=true"),
        Step("GET", f"{MAPS}?watch=1&resourceVersionMatch=Exact&resourceVersion=1"),
        Step("GET", f"{MAPS}/a?watch=1&timeoutSeconds=1&x=y"),
        Step("GET", MAPS, accept=TABLE),
        Step("GET", MAPS, accept="application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"),
        Step("GET", MAPS, accept="text/html"),
        Step("DELETE", f"{MAPS}?labelSelector=tier=x"),
        Step("GET", MAPS),
        Step("DELETE", MAPS),
        Step("GET", MAPS),
    ]  # fmt: skip


def _patches() -> list[Step]:
    one = f"{MAPS}/a"

    def operations(*each: Any) -> Step:
        return Step("PATCH", one, list(each), JSON_PATCH)

    applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "s"}, "data": {"a": "1", "b": "2"}}
    managed = f"{MAPS}/s?fieldManager=one"
    return [
        *post(MAPS, {"metadata": {"name": "a", "labels": {"x": "1"}, "annotations": {"b/c": "2", "d": "3"}},
                     "data": {"a": "1", "b": "2"}}),
        operations({"op": "add", "path": "/data/new", "value": "4"}),
        operations({"op": "replace", "path": "/metadata/annotations/b~1c", "value": "5"},
                   {"op": "remove", "path": "/metadata/annotations/d"}),
        merge(one, {"data": {"a/b": "1"}}),
        operations({"op": "move", "from": "/data/a", "path": "/data/moved"}),
        operations({"op": "copy", "from": "/data/moved", "path": "/data/copied"}),
        operations({"op": "test", "path": "/data/moved", "value": "1"}),
        operations({"op": "test", "path": "/data/moved", "value": "2"}),
        operations({"op": "remove", "path": "/data/none"}),
        operations({"op": "replace", "path": "/data/none", "value": "1"}),
        operations({"op": "add", "path": "/none/none", "value": "1"}),
        operations({"op": "add", "path": "/metadata/labels", "value": {"y": "2"}}),
        operations({"op": "add", "path": "/metadata/finalizers", "value": ["example.com/a"]}),
        operations({"op": "add", "path": "/metadata/finalizers/0", "value": "example.com/b"}),
        operations({"op": "remove", "path": "/metadata/finalizers/5"}),
        operations({"op": "remove", "path": "/metadata/finalizers"}),
        operations({"op": "nothing", "path": "/data/a"}),
        Step("PATCH", one, {"op": "add"}, JSON_PATCH),
        Step("PATCH", one, "{", MERGE),
        Step("PATCH", one, "[]", MERGE),
        Step("PATCH", one, "{}", "application/x-patch"),
        merge(one, {"data": {"moved": None, "x": "y"}}),
        merge(one, {"data": {"x": 1}}),
        merge(one, {"kind": "Pod"}),
        merge(one, {"data": None}),
        merge(f"{MAPS}/missing", {}),
        Step("PATCH", one, {"data": {"q": "1"}, "metadata": {"labels": {"y": None}}}, STRATEGIC),
        Step("PATCH", f"{MAPS}/s", applied, APPLY),
        Step("PATCH", managed, applied, APPLY),
        Step("PATCH", managed, {**applied, "data": {"b": "2", "c": "3"}}, APPLY),
        Step("PATCH", f"{MAPS}/s?fieldManager=two", {**applied, "data": {"c": "4"}}, APPLY),
        Step("PATCH", f"{MAPS}/s?fieldManager=two&force=true", {**applied, "data": {"c": "4"}}, APPLY),
        Step("PATCH", managed, {"metadata": {"name": "s"}}, APPLY),
        Step("PATCH", managed, {**applied, "metadata": {"name": "other"}}, APPLY),
        Step("PATCH", managed, "a: [", APPLY),
        Step("PATCH", f"{one}?dryRun=All", {"data": {"dry": "1"}}, MERGE),
        Step("GET", one),
        Step("PUT", one, {"metadata": {"name": "a"}, "data": {"put": "1"}}, "application/yaml"),
        Step("PUT", one, "metadata:\n  name: a\ndata:\n  put: text\n", "application/yaml"),
        Step("PUT", one, "x", "text/plain"),
    ]  # fmt: skip


def _others() -> list[Step]:
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"},
             "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15,
                      "renewTime": "2026-01-01T00:00:00.000000Z"}}  # fmt: skip
    about = {"kind": "Pod", "namespace": NS, "name": "p", "uid": "u", "apiVersion": "v1"}
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "involvedObject": about, "reason": "R",
             "message": "m", "type": "Normal", "source": {"component": "c"}, "count": 1,
             "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z"}  # fmt: skip
    return [
        *post(LEASES, lease),
        Step("PUT", f"{LEASES}/l", lease),
        merge(f"{LEASES}/l", {"spec": {"holderIdentity": "b"}}),
        merge(f"{LEASES}/l", {"spec": {"leaseDurationSeconds": 0}}),
        Step("PUT", f"{LEASES}/new", {**lease, "metadata": {"name": "new"}}),
        Step("DELETE", f"{LEASES}/new"),
        *post(EVENTS, event),
        *post(EVENTS, {**event, "metadata": {"name": "f"}, "involvedObject": {**about, "namespace": "elsewhere"}}),
        Step("PATCH", f"{EVENTS}/e", {"count": 2}, STRATEGIC),
        Step("GET", f"{EVENTS}?fieldSelector=involvedObject.name=p,type=Normal"),
        Step("DELETE", f"{EVENTS}/e"),
        *post(NODES, node("@ns-n", metadata={"name": "@ns-n", "labels": {"a": "b"}},
                          status={"capacity": {"cpu": "4", "memory": "8Gi"}, "allocatable": {"cpu": "4"}})),
        merge(f"{NODES}/@ns-n", {"spec": {"unschedulable": True}}),
        merge(f"{NODES}/@ns-n/status", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}),
        Step("PATCH", f"{NODES}/@ns-n", {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}, STRATEGIC),
        Step("GET", f"{NODES}?fieldSelector=metadata.name=@ns-n,spec.unschedulable=true"),
        *post(NODES, node("Bad Node")),
        Step("DELETE", f"{NODES}/@ns-n"),
        Step("GET", f"{NODES}/@ns-n"),
        Step("GET", "/api/v1/namespaces/@ns"),
        *post("/api/v1/namespaces", {"metadata": {"name": "a.b"}}),
        *post("/api/v1/namespaces/nowhere/configmaps", {"metadata": {"name": "a"}}),
        Step("DELETE", "/api/v1/namespaces/default"),
        Step("GET", "/apis/resource.k8s.io/v2/resourceclaims"),
        Step("GET", "/apis/example.com"),
        Step("GET", f"{RESOURCE}/unknowns"),
        Step("GET", f"{CLAIMS}/none/unknown"),
        Step("PUT", CLAIMS, {}),
        Step("POST", f"{CLAIMS}/x", {}),
        Step("POST", f"{RESOURCE}/resourceclaims", claim("c")),
        Step("PATCH", CLAIMS, {}, MERGE),
        *post(CLAIMS, "{", "[]", "", '"x"', "null", '{"kind": 1}', '{"metadata": []}'),
    ]  # fmt: skip


def _admin() -> list[Step]:
    return [
        merge("/api/v1/namespaces/@ns", {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}),
        *post(CLAIMS, claim("admin", request(adminAccess=True))),
        status("admin", allocation=allocation(result(adminAccess=True))),
    ]


SCRIPTS: dict[str, list[Step]] = {
    "claims": _claims(),
    "claim-life": _claim_life(),
    "claim-status": _claim_status(),
    "templates-and-classes": _templates_and_classes(),
    "slices": _slices(),
    "taint-rules": _taint_rules(),
    "pods": _pods(),
    "lists": _lists(),
    "patches": _patches(),
    "others": _others(),
    "admin": _admin(),
}


def script(name: str, namespace: str) -> list[Step]:
    """Give the steps of a script, its namespace made first; `@ns` is a memory of the conversation."""
    return [Step("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}}), *SCRIPTS[name]]
