"""What `kubectl get` prints: the columns that Kubernetes has for each kind, and the cells of an object."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from sandbox.api_server import kind as kinds
from sandbox.api_server.duration import render_age
from sandbox.api_server.kind import Kind, Object
from sandbox.api_server.pod_table import pod_cells, pod_conditions

_NONE: Final = "<none>"
_UNKNOWN: Final = "<unknown>"
_ROLE: Final = "node-role.kubernetes.io/"

Cells = Callable[[Object, datetime], list[Any]]

_COLUMNS: Final[Mapping[Kind, str]] = {
    kinds.NAMESPACES: "Name Status Age",
    kinds.NODES: "Name Status Roles Age Version +Internal-IP +External-IP +OS-Image +Kernel-Version +Container-Runtime",
    kinds.PODS: "Name Ready Status Restarts Age +IP +Node +Nominated_Node +Readiness_Gates",
    kinds.EVENTS: "Last_Seen Type Reason Object +Subobject +Source Message +First_Seen +Count +Name",
    kinds.CONFIG_MAPS: "Name Data Age",
    kinds.SERVICE_ACCOUNTS: "Name Age",
    kinds.LEASES: "Name Holder Age",
    kinds.RESOURCE_SLICES: "Name Node Driver Pool Age",
    kinds.DEVICE_CLASSES: "Name Age",
    kinds.RESOURCE_CLAIMS: "Name State Age",
    kinds.RESOURCE_CLAIM_TEMPLATES: "Name Age",
    kinds.DEVICE_TAINT_RULES: "Name Key Value Effect TimeAdded Age",
}
"""A plus is a column of `-o wide`, an underscore a blank."""


def columns(kind: Kind) -> list[dict[str, Any]]:
    """Give the column definitions of a kind."""
    return [_column(name) for name in _COLUMNS.get(kind, "Name Age").split()]


def row(kind: Kind, value: Object, now: datetime | None = None) -> dict[str, Any]:
    """Give the row of an object, without the object."""
    cells = _CELLS.get(kind, _plain)(value, now or datetime.now(UTC))
    conditions = pod_conditions(value) if kind is kinds.PODS else []
    return {"cells": cells} | ({"conditions": conditions} if conditions else {})


def _column(name: str) -> dict[str, Any]:
    title = name.removeprefix("+").replace("_", " ")
    column: dict[str, Any] = {"name": title, "type": "string", "format": "name" if title == "Name" else ""}
    return column | {"description": "", "priority": int(name.startswith("+"))}


def _age(value: Object, now: datetime) -> str:
    return render_age(value["metadata"].get("creationTimestamp"), now)


def _plain(value: Object, now: datetime) -> list[Any]:
    return [value["metadata"]["name"], _age(value, now)]


def _namespace(value: Object, now: datetime) -> list[Any]:
    return [value["metadata"]["name"], (value.get("status") or {}).get("phase", ""), _age(value, now)]


def _config_map(value: Object, now: datetime) -> list[Any]:
    count = len(value.get("data") or {}) + len(value.get("binaryData") or {})
    return [value["metadata"]["name"], count, _age(value, now)]


def _lease(value: Object, now: datetime) -> list[Any]:
    return [value["metadata"]["name"], (value.get("spec") or {}).get("holderIdentity") or "", _age(value, now)]


def _slice(value: Object, now: datetime) -> list[Any]:
    spec = value["spec"]
    return [value["metadata"]["name"], spec.get("nodeName", ""), spec["driver"], spec["pool"]["name"], _age(value, now)]


def _claim(value: Object, now: datetime) -> list[Any]:
    status, deleted = value.get("status") or {}, "deletionTimestamp" in value["metadata"]
    states = ["deleted"] if deleted else []
    if status.get("allocation") is not None:
        states += ["allocated", *(["reserved"] if status.get("reservedFor") else [])]
    elif not deleted:
        states.append("pending")
    return [value["metadata"]["name"], ",".join(states), _age(value, now)]


def _taint_rule(value: Object, now: datetime) -> list[Any]:
    taint = value["spec"]["taint"]
    added = render_age(taint["timeAdded"], now) if taint.get("timeAdded") else ""
    name = value["metadata"]["name"]
    return [name, taint.get("key", ""), taint.get("value", ""), taint.get("effect", ""), added, _age(value, now)]


def _node(value: Object, now: datetime) -> list[Any]:
    metadata, spec, status = value["metadata"], value.get("spec") or {}, value.get("status") or {}
    ready = [each for each in status.get("conditions", ()) if each.get("type") == "Ready"]
    states = ["Ready" if each.get("status") == "True" else "NotReady" for each in ready] or ["Unknown"]
    states += ["SchedulingDisabled"] if spec.get("unschedulable") else []
    labels = metadata.get("labels") or {}
    roles = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE)} - {""}
    roles |= {labels["kubernetes.io/role"]} if labels.get("kubernetes.io/role") else set()
    info = status.get("nodeInfo") or {}
    kernel = info.get("kernelVersion") or _UNKNOWN
    kernel += f" ({info['architecture']})" if info.get("architecture") else ""
    addresses = {each.get("type"): each.get("address") for each in reversed(status.get("addresses") or ())}
    return [
        *(metadata["name"], ",".join(states), ",".join(sorted(roles)) or _NONE, _age(value, now)),
        info.get("kubeletVersion", ""),
        *(addresses.get("InternalIP") or _NONE, addresses.get("ExternalIP") or _NONE),
        *(info.get("osImage") or _UNKNOWN, kernel, info.get("containerRuntimeVersion") or _UNKNOWN),
    ]


def _event(value: Object, now: datetime) -> list[Any]:
    first = render_age(value.get("firstTimestamp") or value.get("eventTime"), now)
    last = render_age(value["lastTimestamp"], now) if value.get("lastTimestamp") else first
    count = value.get("count") or 1
    if series := value.get("series"):
        last, count = render_age(series.get("lastObservedTime"), now), series.get("count", 0)
    involved, source = value.get("involvedObject") or {}, value.get("source") or {}
    target = "/".join(filter(None, (involved.get("kind", "").lower(), involved.get("name", ""))))
    component = source.get("component") or value.get("reportingComponent") or ""
    instance = source.get("host") or value.get("reportingInstance") or ""
    return [
        *(last, value.get("type", ""), value.get("reason", ""), target, involved.get("fieldPath", "")),
        ", ".join(filter(None, (component, instance))),
        *((value.get("message") or "").strip(), first, count, value["metadata"]["name"]),
    ]


_CELLS: Final[Mapping[Kind, Cells]] = {
    kinds.NAMESPACES: _namespace,
    kinds.NODES: _node,
    kinds.PODS: pod_cells,
    kinds.EVENTS: _event,
    kinds.CONFIG_MAPS: _config_map,
    kinds.LEASES: _lease,
    kinds.RESOURCE_SLICES: _slice,
    kinds.RESOURCE_CLAIMS: _claim,
    kinds.DEVICE_TAINT_RULES: _taint_rule,
}
