"""Builders of Pods and Nodes from the JSON that a user would write."""

from typing import Any

import msgspec

from dra_driver.api.codec import decode
from dra_driver.api.core_v1 import Node, Pod


def a_container(name: str = "main", **fields: Any) -> dict[str, Any]:
    """A container; `cpu`, `memory` and the like are its requests, `limits` and `restartPolicy` are themselves."""
    limits, policy = fields.pop("limits", {}), fields.pop("restartPolicy", None)
    container: dict[str, Any] = {"name": name, "resources": {"requests": fields, "limits": limits}}
    return container if policy is None else container | {"restartPolicy": policy}


def a_sidecar(**requests: str) -> dict[str, Any]:
    """An init container that goes on running."""
    return a_container("sidecar", restartPolicy="Always", **requests)


def a_pod(*containers: dict[str, Any], name: str = "pod", phase: str = "Pending", **spec: Any) -> Pod:
    """A Pod in namespace `default`; `spec` has the names of the API."""
    body = {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-of-{name}"},
        "spec": {"containers": list(containers)} | spec,
        "status": {"phase": phase},
    }
    return decode(msgspec.json.encode(body), Pod)


def a_node(
    name: str = "node-a",
    *,
    labels: dict[str, str] | None = None,
    allocatable: dict[str, str] | None = None,
    **spec: Any,
) -> Node:
    """A node with 4 cpu, 8Gi of memory and room for 10 Pods, if nothing else is said."""
    body = {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": spec,
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"} | (allocatable or {})},
    }
    return decode(msgspec.json.encode(body), Node)
