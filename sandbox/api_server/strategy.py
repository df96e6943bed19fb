"""What is particular to a kind when an object of it is written; the base does what most kinds do.

A strategy sees values that are its own to change, and never the store. Kinds of Kubernetes' core are kept as JSON,
since the driver's types know only the parts of them that it reads.
"""

# ruff: noqa: ARG002 - hooks take what some of those that replace them need

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

from dra_driver.api.name import quote, validate_dns_label, validate_dns_subdomain
from dra_driver.errors import FieldError, FieldReason
from sandbox.api_server.kind import Kind, Object
from sandbox.api_server.metadata import validate_metadata, validate_metadata_update


@dataclass(frozen=True, slots=True)
class Context:
    """What a write is made in: the time, and the labels of the namespace."""

    now: str
    namespace_labels: dict[str, str]


class Strategy:
    """How a kind is written."""

    counts_generations: ClassVar = False
    """Whether metadata.generation is 1 in a new object and rises with each change beside metadata and status."""
    creates_on_update: ClassVar = False
    updates_unconditionally: ClassVar = True
    ends_gracefully: ClassVar = False
    """Whether an object that is deleted may take time to end."""
    keeps_metadata_in_status: ClassVar = False
    """Whether an update of the status leaves labels, annotations, owners and finalizers as they are."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind

    def name_problems(self, name: str) -> tuple[str, ...]:
        """Give what is wrong with a name."""
        return validate_dns_subdomain(name)

    def canonicalize(self, value: Object, now: str) -> Object:
        """Give the value as the API writes it, with its defaults. Raises Refusal if it is of the wrong types."""
        return value

    def prepare_create(self, value: Object, context: Context) -> None:
        """Set and drop fields of a new object."""
        if self.kind.has_status:
            value.pop("status", None)

    def prepare_update(self, value: Object, old: Object, context: Context) -> None:
        """Set and drop fields of a changed object."""
        if self.kind.has_status:
            _keep(value, old, "status")

    def prepare_status(self, value: Object, old: Object, context: Context) -> None:
        """Set and drop fields of an object whose status is changed: nothing else may."""
        for name in [*value, *old]:
            if name not in ("status", "metadata"):
                _keep(value, old, name)

    def validate_create(self, value: Object, context: Context) -> Iterable[FieldError]:
        """Give what is wrong in a new object."""
        yield from validate_metadata(value["metadata"], self.name_problems)
        yield from self.validate(value)

    def validate_update(self, value: Object, old: Object, context: Context) -> Iterable[FieldError]:
        """Give what is wrong in a changed object."""
        yield from validate_metadata_update(value["metadata"], old["metadata"])
        yield from self.validate(value)

    def validate_status(self, value: Object, old: Object, context: Context) -> Iterable[FieldError]:
        """Give what is wrong in a changed status."""
        yield from validate_metadata_update(value["metadata"], old["metadata"])

    def validate(self, value: Object) -> Iterator[FieldError]:
        """Yield what is wrong in a new or changed object, beside its metadata."""
        return iter(())

    def grace_period_s(self, value: Object, wanted: int | None) -> int:
        """Give how long an object that is deleted may take to end; 0 deletes it at once."""
        return 0

    def warnings(self, value: Object) -> tuple[str, ...]:
        """Give what its author should know."""
        return ()


def _keep(value: Object, old: Object, name: str) -> None:
    value.pop(name, None)
    if name in old:
        value[name] = old[name]


class NamespaceStrategy(Strategy):
    """Namespaces: `kubernetes` finalizes them, which here is the server itself."""

    def name_problems(self, name: str) -> tuple[str, ...]:
        """Give what is wrong with a name."""
        return validate_dns_label(name)

    def prepare_create(self, value: Object, context: Context) -> None:
        """Make it active."""
        value["spec"] = {"finalizers": ["kubernetes"]}
        value["status"] = {"phase": "Active"}
        name = value["metadata"].get("name", "")
        value["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = name

    def prepare_update(self, value: Object, old: Object, context: Context) -> None:
        """Keep what only the server changes."""
        super().prepare_update(value, old, context)
        _keep(value, old, "spec")
        value["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = old["metadata"]["name"]


_NODE_INFO: Final = (
    *("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion", "kubeletVersion"),
    *("kubeProxyVersion", "operatingSystem", "architecture"),
)
_CONFIG_KEY: Final = re.compile(r"[-._a-zA-Z0-9]{1,253}")


class NodeStrategy(Strategy):
    """Nodes: the kubelet may create one with a status.

    No taint keeps Pods off a node until somebody finds it ready, as admission does upstream: here nobody would.
    """

    def canonicalize(self, value: Object, now: str) -> Object:
        """Add what the API always writes."""
        status = value.setdefault("status", {})
        for condition in status.get("conditions") or ():
            condition.setdefault("lastHeartbeatTime", None)
            condition.setdefault("lastTransitionTime", None)
        status.setdefault("daemonEndpoints", {}).setdefault("kubeletEndpoint", {"Port": 0})
        status["nodeInfo"] = dict.fromkeys(_NODE_INFO, "") | status.get("nodeInfo", {})
        return value

    def prepare_create(self, value: Object, context: Context) -> None:
        """Keep the status."""
        value.setdefault("spec", {})


class ConfigMapStrategy(Strategy):
    """ConfigMaps."""

    def validate(self, value: Object) -> Iterator[FieldError]:
        """Check the keys."""
        for field in ("data", "binaryData"):
            for key in value.get(field) or {}:
                if not _CONFIG_KEY.fullmatch(key):
                    yield FieldError(f"{field}[{key}]", f"{quote(key)} is no key, want letters, digits, '-', '_', '.'")


class EventStrategy(Strategy):
    """Events are overwritten freely."""

    creates_on_update = True

    def canonicalize(self, value: Object, now: str) -> Object:
        """Add what the API always writes."""
        for name in ("source", "involvedObject"):
            value.setdefault(name, {})
        for name in ("firstTimestamp", "lastTimestamp", "eventTime"):
            value.setdefault(name, None)
        for name in ("reportingComponent", "reportingInstance"):
            value.setdefault(name, "")
        return value

    def validate(self, value: Object) -> Iterator[FieldError]:
        """An event is in the namespace of what it is about; what has none has its events in `default`."""
        namespace, about = value["metadata"]["namespace"], value["involvedObject"].get("namespace", "")
        homeless = ("default", "kube-system") if value.get("eventTime") else ("default",)
        is_new = bool(value.get("eventTime"))
        if (not about and namespace not in homeless) or (about and about != namespace and not is_new):
            yield FieldError("involvedObject.namespace", f"{quote(about)} does not match event.namespace")
        for name in ("reportingComponent", "reportingInstance", "action", "reason"):
            if is_new and not value.get(name):
                yield FieldError(name, "is missing, want one", FieldReason.REQUIRED)


class LeaseStrategy(Strategy):
    """Leases: an update names the version that it is made from, so that no two lead."""

    creates_on_update = True
    updates_unconditionally = False

    def validate(self, value: Object) -> Iterator[FieldError]:
        """Check the numbers."""
        spec = value.get("spec") or {}
        for name, least in (("leaseDurationSeconds", 1), ("leaseTransitions", 0)):
            if (number := spec.get(name)) is not None and number < least:
                yield FieldError(f"spec.{name}", f"{number}, want {least} or more")
