"""What a patch makes of an object. Pure: nothing that is given is changed.

JSON merge patch (RFC 7386), JSON patch (RFC 6902), Kubernetes' strategic merge patch, and the merge of server-side
apply. The last two know which lists are maps in disguise; `MERGE_KEYS` says so for the kinds that are served.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

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
        old = target if isinstance(target, list) else []
        return [*old, *(item for item in patch if item not in old)]
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
        merged[name] = [item for item in merged[name] if item not in value]
    elif directive == "$setElementOrder":
        _order(merged, name, value)


def _merge_list(target: list[Any], patch: list[Any], key: str) -> list[Any]:
    if any(item.get("$patch") == "replace" for item in patch):
        return [item for item in patch if item.get("$patch") != "replace"]
    known = [item for item in target if isinstance(item, dict)]
    changed: list[Any] = []
    deleted = []
    for item in patch:
        if key not in item:
            raise bad_request(f"map: {json.dumps(item)} does not contain declared merge key: {key}")
        if item.get("$patch") == "delete":
            deleted.append(item[key])
        else:
            before: dict[str, Any] = next((old for old in (*changed, *known) if old.get(key) == item[key]), {})
            changed = [each for each in changed if each.get(key) != item[key]] + [_merge_map(before, item)]
    places = {_hashable(item.get(key)): place for place, item in enumerate(known)}
    named = {_hashable(item[key]) for item in changed}
    kept = [item for item in known if item.get(key) not in deleted and _hashable(item.get(key)) not in named]
    return _interleave(changed, kept, lambda item: places.get(_hashable(item.get(key)), -1))


def _hashable(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, dict | list) else value


def _interleave(changed: list[Any], kept: list[Any], place: Callable[[Any], int]) -> list[Any]:
    """Bring what a patch names and what it leaves alone into one order: by their places before, what is new first."""
    merged: list[Any] = []
    while changed and kept:
        merged.append(changed.pop(0) if place(changed[0]) < place(kept[0]) else kept.pop(0))
    return merged + changed + kept


def _order(merged: dict[str, Any], name: str, order: list[Any]) -> None:
    """Put the items of a list into the order of a patch; those that it does not name stay behind."""
    items = merged.get(name)
    if not isinstance(items, list):
        return
    key = MERGE_KEYS.get(name, ("",))[0]
    wanted = [item.get(key) if isinstance(item, dict) else item for item in order]

    def place(item: Any) -> int:
        value = item.get(key) if isinstance(item, dict) else item
        return wanted.index(value) if value in wanted else len(wanted)

    merged[name] = sorted(items, key=place)


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
        removed = [item for item in before or () if item not in applied]
        kept = [item for item in live or () if item not in removed]
        return [*kept, *(item for item in applied if item not in kept)]
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
        return tuple(item.get(key) if isinstance(item, dict) else None for key in keys)

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
    """Apply a JSON patch (RFC 6902). Raises Refusal: 400 for nonsense, 422 for what the object does not allow."""
    if not isinstance(operations, list) or not all(isinstance(each, dict) for each in operations):
        raise bad_request("json: cannot unmarshal patch, want a list of operations")
    if len(operations) > _MAX_OPERATIONS:
        message = f"The allowed maximum operations in a JSON patch is {_MAX_OPERATIONS}, got {len(operations)}"
        raise Refusal(413, "RequestEntityTooLarge", message)
    for operation in operations:
        target = _apply_operation(target, operation)
    return target


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
            return _set(_remove(target, source), path, _at(target, source), insert=True)
        case "copy":
            return _set(target, path, _at(target, _pointer(operation.get("from"))), insert=True)
        case "test":
            if not _equal(_at(target, path), _value_of(operation)):
                raise _unprocessable(f"testing value {operation['path']} failed: test failed")
            return target
        case unknown:
            raise _unprocessable(f"Unexpected kind: {unknown}")


def _value_of(operation: dict[str, Any]) -> Any:
    if "value" not in operation:
        raise _unprocessable(f"{operation.get('op')} operation does not have a value")
    return operation["value"]


def _equal(one: Any, other: Any) -> bool:
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _pointer(text: Any) -> tuple[str, ...]:
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise _unprocessable(f"missing or wrong path {text!r}")
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:])


def _at(target: Any, path: tuple[str, ...]) -> Any:
    for part in path:
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
    head, *rest = path
    if isinstance(target, dict):
        if rest and head not in target:
            raise _missing(path)
        return target | {head: _set(target[head], tuple(rest), value, insert=insert) if rest else value}
    if not isinstance(target, list):
        raise _missing(path)
    items = list(target)
    if rest:
        at = _index(head, len(items) - 1)
        items[at] = _set(items[at], tuple(rest), value, insert=insert)
    elif insert:
        items.insert(len(items) if head == "-" else _index(head, len(items)), value)
    else:
        items[_index(head, len(items) - 1)] = value
    return items


def _remove(target: Any, path: tuple[str, ...]) -> Any:
    if not path:
        raise _unprocessable("the whole object cannot be removed")
    head, *rest = path
    if isinstance(target, dict) and head in target:
        if rest:
            return target | {head: _remove(target[head], tuple(rest))}
        return {name: value for name, value in target.items() if name != head}
    if isinstance(target, list):
        at = _index(head, len(target) - 1)
        return [*target[:at], *([_remove(target[at], tuple(rest))] if rest else []), *target[at + 1 :]]
    raise _missing(path)


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
