"""What the server says of itself: its version, groups and kinds, and as much OpenAPI as kubectl wants. Pure."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from sandbox.api_server.kind import Kind

KUBERNETES_VERSION: Final = "v1.37.2"
_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_SUBRESOURCES: Final = {
    "status": (None, ("get", "patch", "update")),
    "binding": ("Binding", ("create",)),
    "eviction": ("Eviction", ("create",)),
    "finalize": (None, ("update",)),
}

Document = dict[str, Any]


def find(kinds: Sequence[Kind], path: str) -> Document | None:
    """Give the document at a path, if there is one."""
    parts = path.strip("/").split("/")
    if parts[:2] == ["openapi", "v3"]:
        return openapi(kinds, "/".join(parts[2:])) if parts[2:] else openapi_index(kinds)
    fixed: dict[str, Callable[[], Document]] = {
        "/version": version,
        "/api": core_versions,
        "/api/v1": lambda: resources(kinds, "v1") or {},
        "/apis": lambda: groups(kinds),
        "/": lambda: {"paths": sorted({*fixed, "/openapi/v3", *(kind.root for kind in kinds)})},
    }
    if path in fixed:
        return fixed[path]()
    match parts:
        case ["apis", name]:
            return group(kinds, name)
        case ["apis", name, of_group]:
            return resources(kinds, f"{name}/{of_group}")
    return None


def version() -> Document:
    """`/version`."""
    major, minor = KUBERNETES_VERSION[1:].split(".")[:2]
    return {
        "major": major,
        "minor": minor,
        "gitVersion": f"{KUBERNETES_VERSION}+sandbox",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": "",
    }


def core_versions() -> Document:
    """`/api`."""
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def groups(kinds: Iterable[Kind]) -> Document:
    """`/apis`."""
    found: dict[str, str] = {kind.group: kind.version for kind in kinds if kind.group}
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(*item) for item in sorted(found.items())]}


def group(kinds: Iterable[Kind], name: str) -> Document | None:
    """`/apis/<group>`."""
    found = next((kind for kind in kinds if kind.group == name and name), None)
    return {"kind": "APIGroup", "apiVersion": "v1"} | _group(name, found.version) if found else None


def resources(kinds: Iterable[Kind], api_version: str) -> Document | None:
    """`/api/v1` and `/apis/<group>/<version>`."""
    found = [kind for kind in kinds if kind.api_version == api_version]
    listed = [resource for kind in found for resource in _resources(kind)]
    document = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": listed}
    return document if found else None


def aggregated(kinds: Iterable[Kind], *, core: bool) -> Document:
    """`/api` and `/apis` in one document with all kinds."""
    versions: dict[tuple[str, str], list[Kind]] = {}
    for kind in kinds:
        if bool(kind.group) != core:
            versions.setdefault((kind.group, kind.version), []).append(kind)
    items = []
    for (name, of_group), found in sorted(versions.items()):
        served = {"version": of_group, "resources": [_aggregated(kind) for kind in found], "freshness": "Current"}
        items.append({"metadata": {"name": name} if name else {}, "versions": [served]})
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def openapi_index(kinds: Iterable[Kind]) -> Document:
    """`/openapi/v3`."""
    roots = {kind.root.strip("/") for kind in kinds}
    return {"paths": {root: {"serverRelativeURL": f"/openapi/v3/{root}"} for root in sorted(roots)}}


def openapi(kinds: Iterable[Kind], root: str) -> Document | None:
    """`/openapi/v3/<root>`: the paths, and that the server checks fields itself, so that kubectl leaves it to it."""
    found = [kind for kind in kinds if kind.root.strip("/") == root]
    parameter = {"name": "fieldValidation", "in": "query", "schema": {"type": "string", "uniqueItems": True}}
    paths, schemas = {}, {}
    for kind in found:
        meant = {"group": kind.group, "version": kind.version, "kind": kind.kind}
        operation = {"parameters": [parameter], "x-kubernetes-group-version-kind": meant, "responses": {}}
        middle = "namespaces/{namespace}/" if kind.namespaced else ""
        paths[f"{kind.root}/{middle}{kind.plural}/{{name}}"] = {"patch": operation}
        schemas[f"io.k8s.{kind.kind}"] = {"type": "object", "x-kubernetes-group-version-kind": [meant]}
    document = {"openapi": "3.0.0", "info": {"title": "Kubernetes", "version": KUBERNETES_VERSION}}
    return document | {"paths": paths, "components": {"schemas": schemas}} if found else None


def _group(name: str, of_group: str) -> Document:
    served = {"groupVersion": f"{name}/{of_group}", "version": of_group}
    return {"name": name, "versions": [served], "preferredVersion": served}


def _resources(kind: Kind) -> list[Document]:
    entry: Document = {"name": kind.plural, "singularName": kind.singular, "namespaced": kind.namespaced}
    entry |= {"kind": kind.kind, "verbs": list(_VERBS)}
    entry |= {"shortNames": list(kind.short_names)} if kind.short_names else {}
    entry |= {"categories": list(kind.categories)} if kind.categories else {}
    listed = [entry]
    for name in _subresources(kind):
        other, verbs = _SUBRESOURCES[name]
        listed.append(
            {"name": f"{kind.plural}/{name}", "singularName": "", "namespaced": kind.namespaced}
            | {"kind": other or kind.kind, "verbs": list(verbs)}
            | ({"group": "policy", "version": "v1"} if name == "eviction" else {})
        )
    return listed


def _aggregated(kind: Kind) -> Document:
    scope = "Namespaced" if kind.namespaced else "Cluster"
    entry: Document = {"resource": kind.plural, "responseKind": _response_kind(kind, kind.kind), "scope": scope}
    entry |= {"singularResource": kind.singular, "verbs": list(_VERBS)}
    entry |= {"shortNames": list(kind.short_names)} if kind.short_names else {}
    entry |= {"categories": list(kind.categories)} if kind.categories else {}
    subresources = []
    for name in _subresources(kind):
        other, verbs = _SUBRESOURCES[name]
        response = _response_kind(kind, other or kind.kind)
        response |= {"group": "policy"} if name == "eviction" else {}
        subresources.append({"subresource": name, "responseKind": response, "verbs": list(verbs)})
    return entry | ({"subresources": subresources} if subresources else {})


def _response_kind(kind: Kind, name: str) -> Document:
    return {"group": kind.group, "version": kind.version, "kind": name}


def _subresources(kind: Kind) -> tuple[str, ...]:
    return (*(("status",) if kind.has_status else ()), *kind.subresources)
