"""The requests that are put to the sandbox's API server and to the real one: each script in a namespace of its own."""

from typing import Any

from tests.cluster.parity_claim import admin, claim_life, claim_status, claims, templates_and_classes
from tests.cluster.parity_device import slices, taint_rules
from tests.cluster.parity_object import (
    CLAIMS,
    EVENTS,
    LEASES,
    MAPS,
    NODES,
    NS,
    PODS,
    RESOURCE,
    TABLE,
    Object,
    claim,
    merge,
    node,
    pod,
    post,
)
from tests.support.api_exchange import APPLY, JSON_PATCH, MERGE, STRATEGIC, Step


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


SCRIPTS: dict[str, list[Step]] = {
    "claims": claims(),
    "claim-life": claim_life(),
    "claim-status": claim_status(),
    "templates-and-classes": templates_and_classes(),
    "slices": slices(),
    "taint-rules": taint_rules(),
    "pods": _pods(),
    "lists": _lists(),
    "patches": _patches(),
    "others": _others(),
    "admin": admin(),
}


def script(name: str, namespace: str) -> list[Step]:
    """Give the steps of a script, its namespace made first; `@ns` is a memory of the conversation."""
    return [Step("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}}), *SCRIPTS[name]]
