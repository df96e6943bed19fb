"""What is asked about claims, their templates and classes."""

from tests.cluster.parity_object import (
    CLAIMS,
    CLASSES,
    TEMPLATES,
    allocation,
    cel,
    claim,
    merge,
    opaque,
    post,
    request,
    resource,
    result,
    status,
    user,
)
from tests.support.api_exchange import JSON_PATCH, STRATEGIC, Step


def claims() -> list[Step]:
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


def claim_life() -> list[Step]:
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


def claim_status() -> list[Step]:
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


def templates_and_classes() -> list[Step]:
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


def admin() -> list[Step]:
    return [
        merge("/api/v1/namespaces/@ns", {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}),
        *post(CLAIMS, claim("admin", request(adminAccess=True))),
        status("admin", allocation=allocation(result(adminAccess=True))),
    ]
