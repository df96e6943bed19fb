"""What requests mean for the objects: the order of checks, defaults, validation and versions of a real API server.

It works on the store in single steps, so that nothing comes between a check and the write that depends on it. Only
deleting a namespace has no step of its own upstream: there a controller empties it, here the registry does.
"""

import secrets
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Final

import msgspec

from dra_driver.api.meta_v1 import render_time
from dra_driver.errors import FieldError
from sandbox.api_server import kind as kinds
from sandbox.api_server.kind import Kind, Object
from sandbox.api_server.metadata import (
    SUFFIX_LENGTH,
    begin_metadata,
    carry_metadata,
    check_namespace,
    order_metadata,
    read_metadata,
)
from sandbox.api_server.refusal import (
    Refusal,
    already_exists,
    bad_request,
    conflict,
    forbidden,
    invalid,
    modified,
    not_found,
)
from sandbox.api_server.store import Key, Store, Stored
from sandbox.api_server.strategy import Context, Strategy

_SUFFIX: Final = "bcdfghjklmnpqrstvwxz2456789"
_OBJECT_MAX: Final = 1536 * 1024  # what etcd takes
_ERRORS_MAX: Final = 1000
_LONGEST_GRACE_S: Final = 2**31 - 1
_METADATA_OF_STATUS: Final = ("labels", "annotations", "finalizers", "ownerReferences")

Change = Callable[[Object], Object]
"""Makes what is wanted of what is there; both have kind and apiVersion."""
Admission = Callable[[Kind, str, Object], None]
"""Sees what is about to be written (`CREATE`, `UPDATE`, or `DELETE`), may change it, and raises Refusal to refuse."""


class DeleteOptions(msgspec.Struct, rename="camel"):
    """How to delete. What is left out does not matter here: nobody waits for dependents."""

    grace_period_seconds: int | None = None
    preconditions: dict[str, str] | None = None
    dry_run: list[str] | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """What a request is about. `name` is empty for a collection."""

    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def key(self) -> Key:
        """The key of the object."""
        return Key(self.namespace, self.name)


class Registry:
    """The objects, as the API lets one change them. Every method raises Refusal."""

    def __init__(  # noqa: PLR0913 - keyword-only options
        self,
        store: Store,
        strategies: Mapping[Kind, Strategy],
        *,
        admission: Iterable[Admission] = (),
        checks_namespaces: bool = True,
        removed: Callable[[Kind, Key], None] = lambda _kind, _key: None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.store = store
        self._strategies = strategies
        self._admission = admission
        self._checks_namespaces = checks_namespaces
        self._removed = removed
        self._clock = clock

    def get(self, target: Target) -> Stored:
        """Give an object."""
        stored = self.store.get(target.kind, target.key)
        if stored is None:
            raise not_found(target.kind, target.name)
        return stored

    def create(self, target: Target, wanted: Object, *, dry_run: bool = False) -> Stored:
        """Create an object; the target may name it, if the request does."""
        kind, strategy = target.kind, self._strategies[target.kind]
        metadata = read_metadata(wanted)
        if target.name and metadata.setdefault("name", target.name) != target.name:
            problem = f"the name of the object ({metadata['name']}) does not match the name on the URL ({target.name})"
            raise bad_request(problem)
        check_namespace(kind, metadata, target.namespace)
        if metadata.pop("resourceVersion", ""):
            raise Refusal(500, "", "resourceVersion should not be set on objects to be created")
        context = self._context(target.namespace)
        begin_metadata(metadata, str(uuid.uuid4()), context.now, _suffix())
        self._check_namespace(kind, metadata)
        value = strategy.canonicalize(_content(wanted) | {"metadata": metadata}, context.now)
        strategy.prepare_create(value, context)
        if strategy.counts_generations:
            metadata["generation"] = 1
        self._admit(kind, "CREATE", value)
        self._refuse_invalid(kind, value, strategy.validate_create(value, context))
        key = Key(target.namespace, metadata["name"])
        if self.store.get(kind, key) is not None:
            raise already_exists(kind, key.name)
        return self._write(kind, key, value, dry_run=dry_run)

    def update(
        self, target: Target, change: Change, *, dry_run: bool = False, is_patch: bool = False
    ) -> tuple[Stored, bool]:
        """Change an object; tell whether it is new, as it may be for some kinds."""
        kind, strategy = target.kind, self._strategies[target.kind]
        old = self.store.get(kind, target.key)
        if old is None:
            if not strategy.creates_on_update or target.subresource:
                raise not_found(kind, target.name)
            return self.create(target, change({}), dry_run=dry_run), True
        # A patch shares what it leaves alone with what it is made from, and what is stored is never changed.
        before = full(kind, msgspec.json.decode(old.body))
        return self._update(target, old, change(before), dry_run=dry_run, is_patch=is_patch), False

    def warnings(self, target: Target, stored: Stored) -> tuple[str, ...]:
        """Give what the author of an object should know."""
        return self._strategies[target.kind].warnings(stored.value)

    def delete(self, target: Target, options: DeleteOptions, *, dry_run: bool = False) -> tuple[Stored, bool]:
        """Delete an object, or mark it; tell whether it is gone."""
        old = self.get(target)
        _check_preconditions(target, old, options)
        self._admit(target.kind, "DELETE", old.value)
        if target.kind is kinds.NAMESPACES:
            return self._delete_namespace(target, old, dry_run=dry_run)
        strategy, metadata = self._strategies[target.kind], old.value["metadata"]
        grace_s = strategy.grace_period_s(old.value, options.grace_period_seconds)
        is_marked = "deletionTimestamp" in metadata
        if is_marked:
            grace_s = min(grace_s, metadata.get("deletionGracePeriodSeconds") or 0)
        grace_s = min(grace_s, _LONGEST_GRACE_S)
        deadline = render_time(self._clock() + timedelta(seconds=grace_s))
        marks: dict[str, Any] = {"deletionTimestamp": deadline, "deletionGracePeriodSeconds": grace_s}
        if strategy.counts_generations and "generation" in metadata and not is_marked:
            marks["generation"] = metadata["generation"] + 1
        marked = old.value | {"metadata": order_metadata(metadata | marks)}
        if not grace_s and not metadata.get("finalizers"):
            gone = old if dry_run else self._remove(target.kind, target.key)
            return (_sketch(target.key, gone.revision, marked) if strategy.ends_gracefully else gone), True
        if is_marked and metadata.get("deletionGracePeriodSeconds") == grace_s:
            return old, False
        return self._write(target.kind, target.key, marked, dry_run=dry_run), False

    def bind(self, target: Target, binding: Object, *, dry_run: bool = False) -> None:
        """Bind a Pod to the node that `binding` names."""
        metadata, node = read_metadata(binding), _target_name(binding)
        old = self.get(target)
        if not node:
            errors = [FieldError("target.name", "name is required")]
            raise invalid(target.kind, target.name, errors)
        if (uid := metadata.get("uid")) and uid != old.value["metadata"]["uid"]:
            raise conflict(target.kind, target.name, f"Precondition failed: UID in precondition: {uid}, "
                           f"UID in object meta: {old.value['metadata']['uid']}")  # fmt: skip
        if old.value["metadata"].get("deletionTimestamp"):
            raise conflict(
                target.kind, target.name, f"pod {target.name} is being deleted, cannot be assigned to a host"
            )
        if bound := old.value["spec"].get("nodeName"):
            raise conflict(target.kind, target.name, f'pod {target.name} is already assigned to node "{bound}"')
        if gates := old.value["spec"].get("schedulingGates"):
            problem = f"pod {target.name} has non-empty .spec.schedulingGates {[gate['name'] for gate in gates]}"
            raise conflict(target.kind, target.name, problem)
        status = old.value.get("status") or {}
        scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None}
        scheduled["lastTransitionTime"] = render_time(self._clock())
        others = [each for each in status.get("conditions", ()) if each["type"] != "PodScheduled"]
        value = old.value | {
            "metadata": dict(old.value["metadata"]),
            "spec": old.value["spec"] | {"nodeName": node},
            "status": status | {"conditions": [*others, scheduled]},
        }
        if annotations := metadata.get("annotations"):
            value["metadata"]["annotations"] = value["metadata"].get("annotations", {}) | annotations
        self._write(target.kind, target.key, value, dry_run=dry_run)

    def _update(self, target: Target, old: Stored, wanted: Object, *, dry_run: bool, is_patch: bool) -> Stored:
        kind, strategy = target.kind, self._strategies[target.kind]
        metadata, before = read_metadata(wanted), old.value["metadata"]
        check_namespace(kind, metadata, target.namespace)
        carry_metadata(kind, metadata, before, is_patch=is_patch)
        self._check_version(target, metadata, before)
        context = self._context(target.namespace)
        value = strategy.canonicalize(_content(wanted) | {"metadata": metadata}, context.now)
        if target.subresource == "status":
            strategy.prepare_status(value, old.value, context)
            if strategy.keeps_metadata_in_status:
                _keep_metadata(metadata, before)
        else:
            strategy.prepare_update(value, old.value, context)
            if strategy.counts_generations and _generates(value, old.value):
                metadata["generation"] = before.get("generation", 0) + 1
        value["metadata"] = order_metadata(metadata)
        self._admit(kind, "UPDATE", value)
        validate = strategy.validate_status if target.subresource == "status" else strategy.validate_update
        self._refuse_invalid(kind, value, validate(value, old.value, context))
        if value == old.value:
            return old
        ended = metadata.get("deletionTimestamp") and not metadata.get("deletionGracePeriodSeconds")
        if ended and not metadata.get("finalizers"):
            if not dry_run:
                self._remove(kind, target.key)
            return _sketch(target.key, self.store.revision, value)
        return self._write(kind, target.key, value, dry_run=dry_run)

    def _check_version(self, target: Target, metadata: dict[str, Any], before: dict[str, Any]) -> None:
        version = metadata.get("resourceVersion", "")
        if version in ("", "0"):
            if not self._strategies[target.kind].updates_unconditionally:
                error = FieldError("metadata.resourceVersion", "must be specified for an update")
                raise invalid(target.kind, target.name, [error])
        elif version != before["resourceVersion"]:
            raise modified(target.kind, target.name)
        metadata["resourceVersion"] = before["resourceVersion"]

    def _context(self, namespace: str) -> Context:
        found = self.store.get(kinds.NAMESPACES, Key("", namespace)) if namespace else None
        labels = found.value["metadata"].get("labels", {}) if found else {}
        return Context(render_time(self._clock()), labels)

    def _check_namespace(self, kind: Kind, metadata: dict[str, Any]) -> None:
        """Refuse a new object in a namespace that is not there, or is on its way out."""
        if not kind.namespaced or not self._checks_namespaces:
            return
        namespace = metadata["namespace"]
        found = self.store.get(kinds.NAMESPACES, Key("", namespace))
        if found is None:
            raise not_found(kinds.NAMESPACES, namespace)
        if found.value["metadata"].get("deletionTimestamp"):
            problem = f"unable to create new content in namespace {namespace} because it is being terminated"
            cause = {"reason": "NamespaceTerminating", "field": "metadata.namespace"}
            cause["message"] = f"namespace {namespace} is being terminated"
            raise forbidden(kind, metadata.get("name", ""), problem, [cause])

    def _delete_namespace(self, target: Target, old: Stored, *, dry_run: bool) -> tuple[Stored, bool]:
        if target.name in ("default", "kube-system", "kube-public"):
            raise forbidden(target.kind, target.name, "this namespace may not be deleted")
        if dry_run:
            return old, True
        marked = old
        if not old.value["metadata"].get("deletionTimestamp"):
            metadata = order_metadata(old.value["metadata"] | {"deletionTimestamp": render_time(self._clock())})
            value = old.value | {"metadata": metadata, "status": {"phase": "Terminating"}}
            marked = self._write(target.kind, target.key, value, dry_run=False)
        for kind in self._namespaced():
            for stored in self.store.all(kind, target.name):
                self.delete(Target(kind, target.name, stored.key.name), DeleteOptions())
        self._finish_namespace(target.name)
        return marked, False

    def _finish_namespace(self, namespace: str) -> None:
        """Remove a namespace that is on its way out and empty."""
        found = self.store.get(kinds.NAMESPACES, Key("", namespace))
        if found is None or not found.value["metadata"].get("deletionTimestamp"):
            return
        if not found.value["metadata"].get("finalizers") and self.store.is_empty(namespace, self._namespaced()):
            self._remove(kinds.NAMESPACES, found.key)

    def _namespaced(self) -> list[Kind]:
        return [kind for kind in self._strategies if kind.namespaced]

    def _admit(self, kind: Kind, operation: str, value: Object) -> None:
        for admit in self._admission:
            admit(kind, operation, value)

    def _refuse_invalid(self, kind: Kind, value: Object, errors: Iterable[FieldError]) -> None:
        if found := tuple(islice(errors, _ERRORS_MAX)):
            raise invalid(kind, value["metadata"].get("name", ""), found)

    def _write(self, kind: Kind, key: Key, value: Object, *, dry_run: bool) -> Stored:
        value["metadata"] = order_metadata(value["metadata"])
        sketch = _sketch(key, self.store.revision, value)
        check_size(sketch.body)
        if dry_run:
            return sketch
        return self.store.write(kind, key, _ordered(value))

    def _remove(self, kind: Kind, key: Key) -> Stored:
        removed = self.store.delete(kind, key)
        self._removed(kind, key)
        if key.namespace:
            self._finish_namespace(key.namespace)
        return removed


def check_size(body: bytes) -> None:
    """Refuse what an object may not grow to, be it by many small patches."""
    if len(body) > _OBJECT_MAX:
        raise Refusal(413, "RequestEntityTooLarge", "etcdserver: request is too large")


def full(kind: Kind, value: Object) -> Object:
    """Give the value with kind and apiVersion."""
    return {"kind": kind.kind, "apiVersion": kind.api_version} | value


def _sketch(key: Key, revision: int, value: Object) -> Stored:
    """Give an object for an answer, which is not stored like this."""
    return Stored(key, revision, _ordered(value), msgspec.json.encode(_ordered(value)))


def _target_name(binding: Object) -> str:
    """Give the name of the node that a binding is for, or nothing."""
    target = binding.get("target")
    name = target.get("name", "") if isinstance(target, dict) else ""
    if not isinstance(name, str):
        raise bad_request("Binding cannot be read: target.name: want a string")
    return name


def _content(wanted: Object) -> Object:
    return {name: value for name, value in wanted.items() if name not in ("kind", "apiVersion", "metadata")}


def _ordered(value: Object) -> Object:
    return {"metadata": value["metadata"]} | {name: part for name, part in value.items() if name != "metadata"}


def _generates(value: Object, old: Object) -> bool:
    names = {*value, *old} - {"metadata", "status"}
    return any(value.get(name) != old.get(name) for name in names)


def _keep_metadata(metadata: dict[str, Any], before: dict[str, Any]) -> None:
    for name in _METADATA_OF_STATUS:
        metadata.pop(name, None)
        if name in before:
            metadata[name] = before[name]


def _check_preconditions(target: Target, old: Stored, options: DeleteOptions) -> None:
    for field, name in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        wanted, found = (options.preconditions or {}).get(field), old.value["metadata"][field]
        if wanted and wanted != found:
            problem = f"Precondition failed: {name} in precondition: {wanted}, {name} in object meta: {found}"
            raise conflict(target.kind, target.name, problem)


def _suffix() -> str:
    return "".join(secrets.choice(_SUFFIX) for _ in range(SUFFIX_LENGTH))


__all__ = ["Admission", "Change", "DeleteOptions", "Refusal", "Registry", "Target", "check_size", "full"]
