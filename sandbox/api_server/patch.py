"""What a patch makes of an object. Pure: nothing that is given is changed.

JSON merge patch (RFC 7386), JSON patch (RFC 6902), Kubernetes' strategic merge patch, and the merge of server-side
apply. The last two know which lists are maps in disguise; `MERGE_KEYS` says so for the kinds that are served.
"""

import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from sandbox.api_server.body import MAX_BYTES, check_depth
from sandbox.api_server.refusal import Refusal, bad_request

MERGE_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "ownerReferences": ("uid",),
    "conditions": ("type",),
    "containers": ("name",),
    "initContainers": ("name",),
    "ephemeralContainers": ("name",),
    "volumes": ("name",),
    "env": ("name",),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "ports": ("containerPort",),
    "imagePullSecrets": ("name",),
    "secrets": ("name",),
    "hostAliases": ("ip",),
    "resourceClaims": ("name",),
    "resourceClaimStatuses": ("name",),
    "schedulingGates": ("name",),
    "topologySpreadConstraints": ("topologyKey",),
    "podIPs": ("ip",),
    "hostIPs": ("ip",),
    "addresses": ("type",),
    "reservedFor": ("uid",),
}
"""Lists whose items are merged by a field, by the name of the list."""

APPLY_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    **MERGE_KEYS,
    "devices": ("driver", "device", "pool", "shareID"),
    "claims": ("name",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "ports": ("containerPort", "protocol"),
}
"""The same for server-side apply, which knows keys of several fields."""

_SETS: Final = frozenset(("finalizers", "podCIDRs"))
_MAX_OPERATIONS: Final = 10_000
_MAX_COPIED_BYTES: Final = MAX_BYTES
_DIRECTIVES: Final = ("$patch", "$retainKeys")


def merge(target: Any, patch: Any) -> Any:
    """Apply a JSON merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge(merged.get(name), value)
    return merged


def merge_strategic(target: Any, patch: Any, name: str = "") -> Any:
    """Apply a strategic merge patch; `name` is that of the field which `target` is the value of. Raises Refusal."""
    if isinstance(patch, dict):
        return _merge_map(target if isinstance(target, dict) else {}, patch)
    if isinstance(patch, list) and name in _SETS:
        return _unite(target if isinstance(target, list) else [], patch)
    if isinstance(patch, list) and name in MERGE_KEYS and all(isinstance(item, dict) for item in patch):
        return _merge_list(target if isinstance(target, list) else [], patch, MERGE_KEYS[name][0])
    return patch


def _merge_map(target: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    match patch.get("$patch"):
        case "replace":
            return {name: value for name, value in patch.items() if name not in _DIRECTIVES}
        case "delete":
            return {}
        case None | "merge":
            pass
        case unknown:
            raise bad_request(f"Unknown patch type found: {unknown}")
    merged = dict(target)
    if isinstance(retained := patch.get("$retainKeys"), list):
        merged = {name: value for name, value in merged.items() if name in retained}
    for name, value in patch.items():
        if not name.startswith("$"):
            if value is None:
                merged.pop(name, None)
            else:
                merged[name] = merge_strategic(merged.get(name), value, name)
    for name, value in patch.items():
        if name.startswith("$") and isinstance(value, list):
            _direct(merged, *name.partition("/")[::2], value)
    return merged


def _direct(merged: dict[str, Any], directive: str, name: str, value: list[Any]) -> None:
    """Do what a directive says about a list beside it."""
    if directive == "$deleteFromPrimitiveList" and isinstance(merged.get(name), list):
        merged[name] = _subtract(merged[name], value)
    elif directive == "$setElementOrder":
        _order(merged, name, value)


def _merge_list(target: list[Any], patch: list[Any], key: str) -> list[Any]:
    if any(item.get("$patch") == "replace" for item in patch):
        return [item for item in patch if item.get("$patch") != "replace"]
    known = [item for item in target if isinstance(item, dict)]
    before = {_hashable(item.get(key)): item for item in reversed(known)}
    changed: dict[Any, Any] = {}
    deleted = set()
    for item in patch:
        if key not in item:
            raise bad_request(f"map: {json.dumps(item)} does not contain declared merge key: {key}")
        identity = _hashable(item[key])
        if item.get("$patch") == "delete":
            deleted.add(identity)
        else:
            changed[identity] = _merge_map(changed.pop(identity, before.get(identity, {})), item)
    places = {_hashable(item.get(key)): place for place, item in enumerate(known)}
    gone = deleted | changed.keys()
    kept = [item for item in known if _hashable(item.get(key)) not in gone]
    return _interleave(list(changed.values()), kept, lambda item: places.get(_hashable(item.get(key)), -1))


def _unite(items: list[Any], more: list[Any]) -> list[Any]:
    """Append what is not there yet."""
    there = {_hashable(item) for item in items}
    return [*items, *(item for item in more if _hashable(item) not in there)]


def _subtract(items: list[Any], less: list[Any]) -> list[Any]:
    """Leave out what is in the other list."""
    gone = {_hashable(item) for item in less}
    return [item for item in items if _hashable(item) not in gone]


def _hashable(value: Any) -> Any:
    return (json.dumps(value),) if isinstance(value, dict | list) else value


def _interleave(changed: list[Any], kept: list[Any], place: Callable[[Any], int]) -> list[Any]:
    """Bring what a patch names and what it leaves alone into one order: by their places before, what is new first."""
    merged: list[Any] = []
    new, old = deque(changed), deque(kept)
    while new and old:
        merged.append(new.popleft() if place(new[0]) < place(old[0]) else old.popleft())
    return [*merged, *new, *old]


def _order(merged: dict[str, Any], name: str, order: list[Any]) -> None:
    """Put the items of a list into the order of a patch; those that it does not name stay behind."""
    items = merged.get(name)
    if not isinstance(items, list):
        return
    key = MERGE_KEYS.get(name, ("",))[0]

    def identify(item: Any) -> Any:
        return _hashable(item.get(key) if isinstance(item, dict) else item)

    places = {identify(item): -place for place, item in enumerate(reversed(order))}
    merged[name] = sorted(items, key=lambda item: places.get(identify(item), 1))


def merge_applied(live: Any, applied: Any, before: Any, name: str = "") -> Any:
    """Merge what a manager applies; what it applied `before` and does no more is removed."""
    if isinstance(applied, dict):
        merged = dict(live) if isinstance(live, dict) else {}
        earlier = before if isinstance(before, dict) else {}
        for field in earlier:
            if field not in applied and field in merged:
                _withdraw(merged, field, earlier[field])
        for field, value in applied.items():
            if value is not None:
                merged[field] = merge_applied(merged.get(field), value, earlier.get(field), field)
        return merged
    if isinstance(applied, list) and name in _SETS:
        removed = _subtract(before or [], applied)
        return _unite(_subtract(live or [], removed), applied)
    if isinstance(applied, list) and _is_keyed(applied, name):
        return _merge_applied_list(live or [], applied, before or [], APPLY_KEYS[name])
    return applied


def _withdraw(merged: dict[str, Any], field: str, earlier: Any) -> None:
    """Remove what was applied before and is no more, but leave what others wrote beside it."""
    if isinstance(earlier, dict) and isinstance(merged[field], dict):
        rest = merge_applied(merged[field], {}, earlier)
    elif (
        isinstance(earlier, list) and isinstance(merged[field], list) and (field in _SETS or _is_keyed(earlier, field))
    ):
        rest = merge_applied(merged[field], [], earlier, field)
    else:
        rest = None
    if rest:
        merged[field] = rest
    else:
        del merged[field]


def _is_keyed(items: list[Any], name: str) -> bool:
    """Tell whether a list is a map in disguise; a list of the same name elsewhere has other items."""
    return name in APPLY_KEYS and all(isinstance(item, dict) and APPLY_KEYS[name][0] in item for item in items)


def _merge_applied_list(live: list[Any], applied: list[Any], before: list[Any], keys: Sequence[str]) -> list[Any]:
    def identify(item: Any) -> tuple[Any, ...]:
        return tuple(_hashable(item.get(key)) if isinstance(item, dict) else None for key in keys)

    wanted, earlier = {identify(item): item for item in applied}, {identify(item): item for item in before}
    merged = []
    for item in live:
        identity = identify(item)
        if identity in wanted:
            merged.append(merge_applied(item, wanted.pop(identity), earlier.get(identity)))
        elif identity not in earlier:
            merged.append(item)
    return merged + list(wanted.values())


def apply_operations(target: Any, operations: Any) -> Any:
    """Apply a JSON patch (RFC 6902).

    Raises Refusal: 400 for nonsense, 413 for what would become too large, 422 for what the object does not allow.
    """
    if not isinstance(operations, list) or not all(isinstance(each, dict) for each in operations):
        raise bad_request("json: cannot unmarshal patch, want a list of operations")
    if len(operations) > _MAX_OPERATIONS:
        message = f"The allowed maximum operations in a JSON patch is {_MAX_OPERATIONS}, got {len(operations)}"
        raise Refusal(413, "RequestEntityTooLarge", message)
    copied_bytes = 0
    try:
        target = _copy(target)
        for operation in operations:
            if operation.get("op") == "copy":  # a few that copy what they have copied would make anything of nothing
                copied_bytes += len(json.dumps(_at(target, _pointer(operation.get("from")))))
                _check_copied(copied_bytes)
            target = _apply_operation(target, operation)
    except RecursionError:
        raise bad_request("json patch: nested too deeply") from None
    check_depth(target)
    return target


def _check_copied(copied_bytes: int) -> None:
    if copied_bytes > _MAX_COPIED_BYTES:
        message = f"Unable to complete the copy, the accumulated size increase of copy is {copied_bytes}, "
        raise Refusal(413, "RequestEntityTooLarge", f"{message}exceeding the limit {_MAX_COPIED_BYTES}")


def _apply_operation(target: Any, operation: dict[str, Any]) -> Any:
    path = _pointer(operation.get("path"))
    match operation.get("op"):
        case "add":
            return _set(target, path, _value_of(operation), insert=True)
        case "replace":
            _at(target, path[:-1])  # upstream replaces a field that is not there, too
            return _set(target, path, _value_of(operation), insert=False)
        case "remove":
            return _remove(target, path)
        case "move":
            source = _pointer(operation.get("from"))
            moved = _at(target, source)
            return _set(_remove(target, source), path, moved, insert=True)
        case "copy":
            return _set(target, path, _copy(_at(target, _pointer(operation.get("from")))), insert=True)
        case "test":
            if not _equal(_at(target, path), _value_of(operation)):
                raise _unprocessable(f"testing value {operation['path']} failed: test failed")
            return target
        case unknown:
            raise _unprocessable(f"Unexpected kind: {unknown}")


def _value_of(operation: dict[str, Any]) -> Any:
    if "value" not in operation:
        raise _unprocessable(f"{operation.get('op')} operation does not have a value")
    return _copy(operation["value"])


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copy(item) for name, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value


def _equal(one: Any, other: Any) -> bool:
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _pointer(text: Any) -> tuple[str, ...]:
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise _unprocessable(f"missing or wrong path {text!r}")
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:])


def _at(target: Any, path: tuple[str, ...]) -> Any:
    return _follow(target, path, path)


def _follow(target: Any, steps: tuple[str, ...], path: tuple[str, ...]) -> Any:
    """Go some steps of a path."""
    for part in steps:
        if isinstance(target, dict) and part in target:
            target = target[part]
        elif isinstance(target, list):
            target = target[_index(part, len(target) - 1)]
        else:
            raise _missing(path)
    return target


def _set(target: Any, path: tuple[str, ...], value: Any, *, insert: bool) -> Any:
    if not path:
        return value
    parent, name = _follow(target, path[:-1], path), path[-1]
    if isinstance(parent, dict):
        parent[name] = value
    elif not isinstance(parent, list):
        raise _missing(path)
    elif insert:
        parent.insert(len(parent) if name == "-" else _index(name, len(parent)), value)
    else:
        parent[_index(name, len(parent) - 1)] = value
    return target


def _remove(target: Any, path: tuple[str, ...]) -> Any:
    if not path:
        raise _unprocessable("the whole object cannot be removed")
    parent, name = _follow(target, path[:-1], path), path[-1]
    if isinstance(parent, dict) and name in parent:
        del parent[name]
    elif isinstance(parent, list):
        del parent[_index(name, len(parent) - 1)]
    else:
        raise _missing(path)
    return target


def _index(text: str, last: int) -> int:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 10):  # noqa: PLR2004 - no list is that long
        raise _unprocessable(f"value was not a proper array index: {text!r}")
    at = int(text) + (last + 1 if text.startswith("-") else 0)
    if not 0 <= at <= last:
        raise _unprocessable(f"Unable to access invalid index: {text}")
    return at


def _missing(path: tuple[str, ...]) -> Refusal:
    return _unprocessable(f"doc is missing path: /{'/'.join(path)}: missing value")


def _unprocessable(problem: str) -> Refusal:
    message = f"the server rejected our request due to an error in our request: {problem}"
    return Refusal(422, "Invalid", message)
