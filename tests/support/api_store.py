"""The objects behind the API server of the tests: what etcd and the registry of a real one do, in memory, on dicts."""

import asyncio
import copy
import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Object = dict[str, Any]
Key = tuple[str, str]

_SUFFIX_LENGTH = 5
_SERVER_FIELDS = ("uid", "creationTimestamp", "generation", "deletionTimestamp")


@dataclass(frozen=True, slots=True)
class Kind:
    """A registered kind. `fields` are the paths that a field selector may name."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = False
    has_status: bool = False
    fields: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def root(self) -> str:
        return f"/apis/{self.api_version}" if self.group else f"/api/{self.version}"

    @property
    def qualified(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


_SLICE_FIELDS = ("spec.nodeName", "spec.driver", "spec.pool.name")
_EVENT_FIELDS = ("involvedObject.kind", "involvedObject.name", "involvedObject.uid", "reason", "type")
KINDS = (
    Kind("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", fields=_SLICE_FIELDS),
    Kind("resource.k8s.io", "v1", "deviceclasses", "DeviceClass"),
    Kind("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", namespaced=True, has_status=True),
    Kind("resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate", namespaced=True),
    Kind("resource.k8s.io", "v1", "devicetaintrules", "DeviceTaintRule", has_status=True),
    Kind("", "v1", "nodes", "Node", has_status=True),
    Kind("", "v1", "pods", "Pod", namespaced=True, has_status=True, fields=("spec.nodeName", "status.phase")),
    Kind("", "v1", "events", "Event", namespaced=True, fields=_EVENT_FIELDS),
    Kind("coordination.k8s.io", "v1", "leases", "Lease", namespaced=True),
)


class Refusal(Exception):  # noqa: N818 - it is an answer, not a mistake of the server
    """An answer that refuses a request, as a Status."""

    def __init__(self, code: int, reason: str, message: str, causes: tuple[Mapping[str, str], ...] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.status = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": reason,
            "details": {"causes": list(causes)},
            "code": code,
        }


@dataclass(frozen=True, slots=True)
class Change:
    """One revision. `previous` is the object before, `current` the object after it; a deletion has both."""

    revision: int
    kind: Kind
    previous: Object | None
    current: Object
    deleted: bool = False


@dataclass(slots=True)
class Store:
    """All objects, and every change of them."""

    objects: dict[Kind, dict[Key, Object]] = field(default_factory=dict)
    revision: int = 100
    compacted: int = 0
    changes: list[Change] = field(default_factory=list)
    dropped: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    tick: asyncio.Event = field(default_factory=asyncio.Event)

    def get(self, kind: Kind, key: Key) -> Object:
        try:
            return copy.deepcopy(self._of(kind)[key])
        except KeyError:
            raise Refusal(404, "NotFound", f'{kind.qualified} "{key[1]}" not found') from None

    def list(self, kind: Kind, namespace: str = "") -> list[Object]:
        """All objects of a kind, in the order of their keys."""
        found = sorted(self._of(kind).items())
        return [copy.deepcopy(value) for (where, _), value in found if not namespace or where == namespace]

    def create(self, kind: Kind, namespace: str, wanted: Object, *, dry_run: bool = False) -> Object:
        created = self._without_dropped(kind, wanted)
        metadata = created.setdefault("metadata", {})
        if "resourceVersion" in metadata:
            raise Refusal(400, "BadRequest", "resourceVersion should not be set on objects to be created")
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = metadata["generateName"] + uuid.uuid4().hex[:_SUFFIX_LENGTH]
        if not metadata.get("name"):
            raise Refusal(422, "Invalid", f"{kind.kind} is invalid: metadata.name: Required value")
        if kind.namespaced and metadata.setdefault("namespace", namespace) != namespace:
            raise Refusal(400, "BadRequest", "the namespace of the object does not match the request")
        key = (namespace, metadata["name"])
        if key in self._of(kind):
            raise Refusal(409, "AlreadyExists", f'{kind.qualified} "{key[1]}" already exists')
        created |= {"apiVersion": kind.api_version, "kind": kind.kind}
        metadata |= {"uid": str(uuid.uuid4()), "creationTimestamp": "2026-01-01T00:00:00Z", "generation": 1}
        if kind.has_status:
            created.pop("status", None)
        return self._write(kind, key, None, created, dry_run=dry_run)

    def update(self, kind: Kind, key: Key, wanted: Object, *, status: bool = False, dry_run: bool = False) -> Object:
        previous = self.get(kind, key)
        metadata = wanted.get("metadata", {})
        if metadata.get("name", key[1]) != key[1]:
            raise Refusal(400, "BadRequest", "the name of the object does not match the name on the URL")
        if metadata.get("resourceVersion", previous["metadata"]["resourceVersion"]) != _revision(previous):
            raise _conflict(kind, key, "the object has been modified; please apply your changes to the latest version")
        if metadata.get("uid", previous["metadata"]["uid"]) != previous["metadata"]["uid"]:
            raise _conflict(kind, key, "Precondition failed: UID in precondition is not the UID in object meta")
        current = _merged_for_update(kind, previous, self._without_dropped(kind, wanted), status=status)
        if current == previous:
            return previous
        if _content(current) != _content(previous):
            current["metadata"]["generation"] = previous["metadata"]["generation"] + 1
        if current["metadata"].get("deletionTimestamp") and not current["metadata"].get("finalizers"):
            return self._remove(kind, key, dry_run=dry_run)
        return self._write(kind, key, previous, current, dry_run=dry_run)

    def delete(self, kind: Kind, key: Key, options: Mapping[str, Any]) -> Object:
        previous = self.get(kind, key)
        for name, value in options.get("preconditions", {}).items():
            if previous["metadata"][name] != value:
                raise _conflict(kind, key, f"Precondition failed: {name} in precondition: {value}")
        dry_run = bool(options.get("dryRun"))
        if previous["metadata"].get("finalizers"):
            current = copy.deepcopy(previous)
            current["metadata"].setdefault("deletionTimestamp", "2026-01-01T00:00:01Z")
            return self._write(kind, key, previous, current, dry_run=dry_run)
        return self._remove(kind, key, dry_run=dry_run)

    def compact(self) -> None:
        """Forget every change so far: no watch can resume from before now. Watches that are open have theirs."""
        self.compacted = self.revision

    def since(self, kind: Kind, revision: int) -> Iterator[Change]:
        return (change for change in tuple(self.changes) if change.kind == kind and change.revision > revision)

    def wake(self) -> None:
        """Lets every watch look again."""
        self.tick.set()
        self.tick = asyncio.Event()

    def _of(self, kind: Kind) -> dict[Key, Object]:
        return self.objects.setdefault(kind, {})

    def _write(self, kind: Kind, key: Key, previous: Object | None, current: Object, *, dry_run: bool) -> Object:
        if dry_run:
            return current
        self.revision += 1
        current["metadata"]["resourceVersion"] = str(self.revision)
        self._of(kind)[key] = copy.deepcopy(current)
        self.changes.append(Change(self.revision, kind, previous, copy.deepcopy(current)))
        self.wake()
        return current

    def _remove(self, kind: Kind, key: Key, *, dry_run: bool) -> Object:
        previous = self.get(kind, key)
        if dry_run:
            return previous
        self.revision += 1
        del self._of(kind)[key]
        current = copy.deepcopy(previous)
        current["metadata"]["resourceVersion"] = str(self.revision)
        self.changes.append(Change(self.revision, kind, previous, current, deleted=True))
        self.wake()
        return current

    def _without_dropped(self, kind: Kind, wanted: Object) -> Object:
        current: Object = copy.deepcopy(wanted)
        for plural, path in self.dropped:
            if plural == kind.plural:
                _drop(current, path)
        return current


def merge(target: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge(merged.get(name), value)
    return merged


def _revision(value: Object) -> str:
    return str(value["metadata"]["resourceVersion"])


def _conflict(kind: Kind, key: Key, problem: str) -> Refusal:
    return Refusal(409, "Conflict", f'Operation cannot be fulfilled on {kind.qualified} "{key[1]}": {problem}')


def _content(value: Object) -> str:
    return json.dumps(
        {name: part for name, part in value.items() if name not in ("metadata", "status")}, sort_keys=True
    )


def _merged_for_update(kind: Kind, previous: Object, wanted: Object, *, status: bool) -> Object:
    """Return what an update leaves. It may change all but status, or status only; never what the server sets."""
    if status:
        return previous | {"status": wanted.get("status", {})}
    current = wanted | {"apiVersion": kind.api_version, "kind": kind.kind}
    metadata = previous["metadata"]
    kept = {name: metadata[name] for name in (*_SERVER_FIELDS, "resourceVersion", "name") if name in metadata}
    if kind.namespaced:
        kept["namespace"] = metadata["namespace"]
    current["metadata"] = wanted.get("metadata", {}) | kept
    if kind.has_status:
        current.pop("status", None)
        current |= {"status": previous["status"]} if "status" in previous else {}
    return current


def _drop(value: Any, path: tuple[str, ...]) -> None:
    head, *rest = path
    if head == "*":
        for item in value if isinstance(value, list) else list(value.values()):
            _drop(item, tuple(rest))
    elif isinstance(value, dict) and head in value:
        if rest:
            _drop(value[head], tuple(rest))
        else:
            del value[head]
