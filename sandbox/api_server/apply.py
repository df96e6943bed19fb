"""Server-side apply: a manager says how it wants an object, and what it wanted before and does no more goes away.

Who owns which field is not kept in `managedFields` but beside the objects: the last configuration of each manager that
applied one. Changes by other means own nothing here, and so do not conflict with what is applied.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from dra_driver.errors import FieldReason
from sandbox.api_server.kind import Kind, Object
from sandbox.api_server.options import parse_bool
from sandbox.api_server.patch import merge_applied
from sandbox.api_server.refusal import Refusal, bad_request, invalid_query, not_found
from sandbox.api_server.registry import Registry, Target, check_size, full
from sandbox.api_server.store import Key, Store, Stored

APPLIED: Final = Kind("", "v1", "appliedconfigurations", "appliedconfiguration", "AppliedConfiguration")
"""An internal kind, which is not served: what managers applied to an object, by manager and subresource."""

_IDENTITY: Final = frozenset(("kind", "apiVersion"))
_UNOWNED: Final = frozenset(
    ("name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink")
)


def merge_apply(  # noqa: PLR0913 - what a request to apply says
    registry: Registry,
    target: Target,
    read: Callable[[Any], Object],
    applied: Any,
    query: Mapping[str, str],
    *,
    dry_run: bool,
) -> tuple[Stored, bool]:
    """Apply a configuration; tell whether the object is new. Raises Refusal."""
    manager = query.get("fieldManager", "")
    config = _read_config(target, read, applied, manager)
    store, key = registry.store, _key(target)
    owned = _owned(config)
    records = _records(registry, target)
    record_name = f"{manager}/{target.subresource}"
    configs = records | {record_name: owned}
    check_size(msgspec.json.encode(configs))
    if store.get(target.kind, target.key) is None:
        if target.subresource:
            raise not_found(target.kind, target.name)
        stored, is_new = registry.create(target, config, dry_run=dry_run), True
    else:
        if not parse_bool(query, "force"):
            _check_conflicts(owned, {name: value for name, value in records.items() if name != record_name})
        before = records.get(record_name, {})
        version = (config.get("metadata") or {}).get("resourceVersion")

        def change(old: Object) -> Object:
            merged: Object = merge_applied(old, owned, before)
            merged["metadata"] = merged["metadata"] | ({"resourceVersion": version} if version else {})
            return read(full(target.kind, merged))

        stored, is_new = registry.update(target, change, dry_run=dry_run, is_patch=True)
    if not dry_run and records.get(record_name) != owned:
        content = {"metadata": {}, "uid": stored.value["metadata"]["uid"], "configs": configs}
        store.write(APPLIED, key, content)
    return stored, is_new


def _read_config(target: Target, read: Callable[[Any], Object], applied: Any, manager: str) -> Object:
    if not manager:
        problem = "Required value: is required for apply patch"
        raise invalid_query("PatchOptions", "fieldManager", problem, FieldReason.REQUIRED)
    config = read(applied)
    metadata = config.get("metadata") or {}
    if "managedFields" in metadata:
        raise bad_request("metadata.managedFields must be nil")
    for name in ("apiVersion", "kind"):
        if name not in config:
            raise bad_request(f"invalid object type: {name} is missing, want one in what is applied")
    if (name := metadata.get("name", target.name)) != target.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({target.name})")
    return config


def forget_applied(store: Store, kind: Kind, key: Key) -> None:
    """Forget what was applied to an object that is gone."""
    record = _key(Target(kind, key.namespace, key.name))
    if store.get(APPLIED, record) is not None:
        store.delete(APPLIED, record)


def _key(target: Target) -> Key:
    return Key(target.namespace, f"{target.kind.qualified}/{target.name}")


def _records(registry: Registry, target: Target) -> dict[str, Any]:
    """Give the last configurations by manager, if they are of this very object."""
    stored, record = registry.store.get(target.kind, target.key), registry.store.get(APPLIED, _key(target))
    if stored is None or record is None or record.value["uid"] != stored.value["metadata"]["uid"]:
        return {}
    return dict(record.value["configs"])


def _owned(config: Object) -> Object:
    """Give what a manager can own of a configuration."""
    metadata = {name: value for name, value in (config.get("metadata") or {}).items() if name not in _UNOWNED}
    return {name: value for name, value in config.items() if name not in {*_IDENTITY, "metadata"}} | (
        {"metadata": metadata} if metadata else {}
    )


def _check_conflicts(owned: Object, others: Mapping[str, Object]) -> None:
    causes = []
    wanted = dict(_leaves(owned, ""))
    for name, config in others.items():
        for path, value in _leaves(config, ""):
            if path in wanted and wanted[path] != value:
                manager = name.rpartition("/")[0]
                message = f'conflict with "{manager}"'
                causes.append({"reason": "FieldManagerConflict", "message": message, "field": path})
    if causes:
        found = "; ".join(f"{cause['message']}: {cause['field']}" for cause in causes)
        text = f"Apply failed with {len(causes)} conflict{'s' if len(causes) > 1 else ''}: {found}"
        raise Refusal(409, "Conflict", text, {"causes": causes})


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _leaves(part, f"{path}.{name}")
    else:
        yield path, value
