"""What is particular to the kinds of resource.k8s.io: they are read into the driver's own types, which check them."""

# ruff: noqa: ARG002 - hooks take what some of those that replace them need

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Final

import msgspec

from dra_driver.api import codec
from dra_driver.api.allocation_validation import validate_claim_status
from dra_driver.api.device_taint_rule_validation import validate_taint_rule_spec, validate_taint_rule_status
from dra_driver.api.resource_claim_validation import (
    validate_claim_spec,
    validate_claim_update,
    validate_class_spec,
)
from dra_driver.api.resource_slice_validation import validate_resource_slice_spec
from dra_driver.api.resource_v1 import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from dra_driver.cel import Options
from dra_driver.errors import FieldError, FieldReason, InvalidError
from sandbox.api_server.completion import complete, validate_completed
from sandbox.api_server.gate_drop import (
    drop_claim_fields,
    drop_deallocated,
    drop_slice_fields,
    drop_status_fields,
    request_bodies,
)
from sandbox.api_server.kind import Kind, Object
from sandbox.api_server.metadata import (
    validate_metadata,
    validate_metadata_update,
    validate_mutable_metadata,
)
from sandbox.api_server.refusal import bad_request
from sandbox.api_server.strategy import Context, Strategy

_ADMIN_LABEL: Final = "resource.kubernetes.io/admin-access"
_TEMPLATE_METADATA: Final = frozenset(("labels", "annotations"))


class ResourceStrategy(Strategy):
    """How a kind of resource.k8s.io is written."""

    counts_generations: ClassVar = True
    keeps_metadata_in_status: ClassVar = True
    struct: ClassVar[type[Any]]

    def __init__(self, kind: Kind, gates: Mapping[str, bool]) -> None:
        super().__init__(kind)
        self._gates = gates
        lists, consumable = gates["DRAListTypeAttributes"], gates["DRAConsumableCapacity"]
        self._options = Options(stored=False, lists=lists, consumable_capacity=consumable)

    def canonicalize(self, value: Object, now: str) -> Object:
        """Write quantities, and what is empty, as the API does, and add defaults."""
        built: Object = msgspec.json.decode(codec.encode(self.read(value)))
        parts = {name: part for name, part in built.items() if name not in ("kind", "apiVersion", "metadata")}
        written = {"metadata": value["metadata"], "spec": {}} | ({"status": {}} if self.kind.has_status else {}) | parts
        self.set_defaults(written, now)
        return written

    def set_defaults(self, value: Object, now: str) -> None:
        """Add defaults."""

    def read(self, value: Object) -> Any:
        """Give the object as its type. Raises Refusal."""
        try:
            return codec.decode(msgspec.json.encode(value), self.struct)
        except InvalidError:
            return self._read_incomplete(value)

    def _read_incomplete(self, value: Object) -> Any:
        try:
            return codec.decode(msgspec.json.encode(complete(value, self.struct)), self.struct)
        except InvalidError as error:
            kind, problems = self.kind, "; ".join(map(str, error.errors))
            text = f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {problems}'
            raise bad_request(text) from None


class SliceStrategy(ResourceStrategy):
    """ResourceSlices."""

    struct = ResourceSlice

    def set_defaults(self, value: Object, now: str) -> None:
        """Taints are as old as their first appearance."""
        for device in value["spec"].get("devices", ()):
            for taint in device.get("taints", ()):
                taint.setdefault("timeAdded", now)

    def prepare_create(self, value: Object, context: Context) -> None:
        """Drop fields of gates."""
        drop_slice_fields(value, None, self._gates)

    def prepare_update(self, value: Object, old: Object, context: Context) -> None:
        """Drop fields of gates."""
        drop_slice_fields(value, old, self._gates)

    def validate(self, value: Object) -> Iterator[FieldError]:
        """Check the spec."""
        yield from validate_resource_slice_spec(self.read(value).spec)

    def validate_update(self, value: Object, old: Object, context: Context) -> Iterable[FieldError]:
        """Check that it stays of its driver, pool and node, too."""
        yield from super().validate_update(value, old, context)
        new, before = value["spec"], old["spec"]
        if new["driver"] != before["driver"]:
            yield FieldError("spec.driver", "field is immutable")
        if new["pool"]["name"] != before["pool"]["name"]:
            yield FieldError("spec.pool.name", "field is immutable")
        if new.get("nodeName") != before.get("nodeName"):
            yield FieldError("spec.nodeName", "field is immutable")

    def warnings(self, value: Object) -> tuple[str, ...]:
        """Drivers should be called in lower case."""
        driver = str((value.get("spec") or {}).get("driver", ""))
        if driver == driver.lower():
            return ()
        return (f'spec.driver: driver names should be lowercase; "{driver}" contains uppercase characters',)


class ClassStrategy(ResourceStrategy):
    """DeviceClasses."""

    struct = DeviceClass

    def validate_create(self, value: Object, context: Context) -> Iterable[FieldError]:
        """Check the spec."""
        yield from validate_metadata(value["metadata"], self.name_problems)
        yield from validate_completed(value)
        yield from validate_class_spec(self.read(value).spec, None, self._options)

    def validate_update(self, value: Object, old: Object, context: Context) -> Iterable[FieldError]:
        """Check what of the spec is changed."""
        yield from validate_metadata_update(value["metadata"], old["metadata"])
        yield from validate_completed(value)
        yield from validate_class_spec(self.read(value).spec, self.read(old).spec, self._options)


class ClaimStrategy(ResourceStrategy):
    """ResourceClaims. Their specs never change, so that they have no generations."""

    counts_generations = False
    struct = ResourceClaim

    def set_defaults(self, value: Object, now: str) -> None:
        """One device, unless something else is said; values of tolerations must be equal."""
        set_claim_defaults(value["spec"])
        for device in (value.get("status") or {}).get("devices", ()):
            device.setdefault("conditions", None)  # as Go writes a list without items
        allocation = ((value.get("status") or {}).get("allocation") or {}).get("devices") or {}
        for result in allocation.get("results", ()):
            _set_operators(result)

    def prepare_create(self, value: Object, context: Context) -> None:
        """Drop the status, and fields of gates."""
        value["status"] = {}
        drop_claim_fields(value["spec"], None, self._gates)

    def prepare_update(self, value: Object, old: Object, context: Context) -> None:
        """Drop fields of gates."""
        super().prepare_update(value, old, context)
        drop_claim_fields(value["spec"], old["spec"], self._gates)

    def prepare_status(self, value: Object, old: Object, context: Context) -> None:
        """Drop fields of gates, and what is said of devices that are deallocated."""
        super().prepare_status(value, old, context)
        drop_status_fields(value, old, self._gates)
        drop_deallocated(value, old)

    def validate_create(self, value: Object, context: Context) -> Iterable[FieldError]:
        """Check the spec, and whether the namespace may have administrators."""
        yield from _validate_admin_requests(value["spec"], context)
        yield from validate_metadata(value["metadata"], self.name_problems)
        yield from validate_completed(value)
        yield from validate_claim_spec(self.read(value).spec, "spec", self._options)

    def validate_update(self, value: Object, old: Object, context: Context) -> Iterable[FieldError]:
        """The spec never changes."""
        yield from validate_metadata_update(value["metadata"], old["metadata"])
        yield from validate_claim_update(self.read(value).spec, self.read(old).spec)

    def validate_status(self, value: Object, old: Object, context: Context) -> Iterable[FieldError]:
        """Check the status."""
        yield from validate_metadata_update(value["metadata"], old["metadata"])
        yield from _validate_admin_results(value, old, context)
        yield from validate_completed(value)
        new, before = self.read(value), self.read(old)
        is_deleted = "deletionTimestamp" in value["metadata"]
        yield from validate_claim_status(new.status, before.status, new.spec, is_deleted=is_deleted)


class TemplateStrategy(ResourceStrategy):
    """ResourceClaimTemplates, which never change either."""

    counts_generations = False
    struct = ResourceClaimTemplate

    def set_defaults(self, value: Object, now: str) -> None:
        """Add those of claims."""
        value["spec"].setdefault("metadata", {})
        set_claim_defaults(value["spec"].setdefault("spec", {}))

    def prepare_create(self, value: Object, context: Context) -> None:
        """Drop fields of gates."""
        drop_claim_fields(value["spec"]["spec"], None, self._gates)

    def prepare_update(self, value: Object, old: Object, context: Context) -> None:
        """Drop fields of gates."""
        drop_claim_fields(value["spec"]["spec"], old["spec"]["spec"], self._gates)

    def validate_create(self, value: Object, context: Context) -> Iterable[FieldError]:
        """Check what claims will be like."""
        yield from _validate_admin_requests(value["spec"]["spec"], context)
        yield from validate_metadata(value["metadata"], self.name_problems)
        metadata = value["spec"]["metadata"]
        yield from validate_mutable_metadata(metadata, "spec.metadata")
        for name in metadata:
            if name not in _TEMPLATE_METADATA:
                yield FieldError(f"spec.metadata.{name}", "cannot be set", FieldReason.FORBIDDEN)
        yield from validate_completed(value)
        yield from validate_claim_spec(self.read(value).spec.spec, "spec.spec", self._options)

    def validate_update(self, value: Object, old: Object, context: Context) -> Iterable[FieldError]:
        """The spec never changes."""
        yield from validate_metadata_update(value["metadata"], old["metadata"])
        if value["spec"] != old["spec"]:
            yield FieldError("spec", "field is immutable")


class TaintRuleStrategy(ResourceStrategy):
    """DeviceTaintRules."""

    struct = DeviceTaintRule

    def prepare_create(self, value: Object, context: Context) -> None:
        """Drop the status."""
        value["status"] = {}

    updates_unconditionally: ClassVar = False

    def set_defaults(self, value: Object, now: str) -> None:
        """A taint begins now."""
        value["spec"]["taint"].setdefault("timeAdded", now)

    def prepare_update(self, value: Object, old: Object, context: Context) -> None:
        """Another effect begins now, unless its author says otherwise."""
        super().prepare_update(value, old, context)
        taint, before = value["spec"]["taint"], old["spec"]["taint"]
        if taint["effect"] != before["effect"] and taint["timeAdded"] == before.get("timeAdded"):
            taint["timeAdded"] = context.now

    def validate_create(self, value: Object, context: Context) -> Iterable[FieldError]:
        """Check the spec."""
        yield from validate_metadata(value["metadata"], self.name_problems)
        yield from validate_taint_rule_spec(self.read(value).spec)

    def validate_update(self, value: Object, old: Object, context: Context) -> Iterable[FieldError]:
        """Check the spec."""
        yield from validate_metadata_update(value["metadata"], old["metadata"])
        yield from validate_taint_rule_spec(self.read(value).spec, self.read(old).spec)

    def validate_status(self, value: Object, old: Object, context: Context) -> Iterable[FieldError]:
        """Check the status."""
        yield from validate_metadata_update(value["metadata"], old["metadata"])
        yield from validate_taint_rule_status(self.read(value).status)


def set_claim_defaults(spec: dict[str, Any]) -> None:
    """Add the defaults of a claim's requests."""
    spec.setdefault("devices", {}).setdefault("requests", None)  # as Go writes a list without items
    for body in request_bodies(spec):
        if body.setdefault("allocationMode", "ExactCount") == "ExactCount":
            body.setdefault("count", 1)
        _set_operators(body)


def _set_operators(part: dict[str, Any]) -> None:
    for toleration in part.get("tolerations", ()):
        toleration.setdefault("operator", "Equal")


def _validate_admin_requests(spec: dict[str, Any], context: Context) -> Iterator[FieldError]:
    for index, request in enumerate((spec.get("devices") or {}).get("requests") or ()):
        if (request.get("exactly") or {}).get("adminAccess"):
            yield from _validate_admin(f"spec.devices.requests[{index}].adminAccess", context)
            return


def _validate_admin_results(value: Object, old: Object, context: Context) -> Iterator[FieldError]:
    if _first_admin_result(old) is None and (index := _first_admin_result(value)) is not None:
        yield from _validate_admin(f"status.allocation.devices.results[{index}].adminAccess", context)


def _first_admin_result(value: Object) -> int | None:
    allocation = ((value.get("status") or {}).get("allocation") or {}).get("devices") or {}
    results = allocation.get("results", ())
    return next((index for index, result in enumerate(results) if result.get("adminAccess")), None)


def _validate_admin(path: str, context: Context) -> Iterator[FieldError]:
    if context.namespace_labels.get(_ADMIN_LABEL) != "true":
        problem = f"admin access to devices requires the `{_ADMIN_LABEL}: true` label on the containing namespace"
        yield FieldError(path, problem, FieldReason.FORBIDDEN)
