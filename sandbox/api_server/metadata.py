"""The metadata of objects: what the server sets, what nobody may change, and what is wrong in the rest. Pure."""

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from dra_driver.api.meta_v1 import ObjectMeta
from dra_driver.api.name import byte_length, quote, validate_dns_subdomain, validate_label_key, validate_label_value
from dra_driver.errors import FieldError, FieldReason
from sandbox.api_server.kind import Kind, Object
from sandbox.api_server.refusal import bad_request, conflict

NameProblems = Callable[[str], tuple[str, ...]]

SUFFIX_LENGTH: Final = 5
_GENERATED_MAX: Final = 63 - SUFFIX_LENGTH
_ANNOTATIONS_MAX: Final = 256 * 1024
_STANDARD_FINALIZERS: Final = frozenset(("kubernetes", "orphan", "foregroundDeletion"))
_IMMUTABLE: Final = ("name", "namespace", "uid", "creationTimestamp")


def read_metadata(value: Object) -> dict[str, Any]:
    """Give the metadata of an object as the API keeps it: known fields only, empty ones left out. Raises Refusal."""
    raw = value.get("metadata")
    try:
        decoded = msgspec.convert({} if raw is None else _without_nulls(raw), ObjectMeta)
    except msgspec.ValidationError as error:
        problem, _, at = str(error).partition(" - at `$")
        raise bad_request(f"metadata{at.rstrip('`')}: {problem}") from None
    built: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(decoded))
    return built


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def check_namespace(kind: Kind, metadata: dict[str, Any], namespace: str) -> None:
    """Give the object the namespace of the request, or raise Refusal if it has another."""
    if not kind.namespaced:
        if metadata.get("namespace"):
            raise bad_request("namespace is not allowed on this type")
        return
    if metadata.setdefault("namespace", namespace) != namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")


def begin_metadata(metadata: dict[str, Any], uid: str, now: str, suffix: str) -> None:
    """Set what the server sets in a new object: a generated name, UID and time."""
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = metadata["generateName"][:_GENERATED_MAX] + suffix
    for name in ("deletionTimestamp", "deletionGracePeriodSeconds", "generation"):
        metadata.pop(name, None)
    metadata.update(uid=uid, creationTimestamp=now)


def carry_metadata(kind: Kind, new: dict[str, Any], old: dict[str, Any], *, is_patch: bool) -> None:
    """Give an update what it left out and may not change. Raises Refusal if it is meant for another object.

    A UID in an update is a condition; in a patch it is a change, which validation refuses.
    """
    name = old["name"]
    if new.setdefault("name", name) != name:
        problem = f"the name of the object ({new['name']}) does not match the name on the URL ({name})"
        raise bad_request(problem)
    uid = new.setdefault("uid", old["uid"])
    if uid != old["uid"] and not is_patch:
        problem = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {old['uid']}"
        raise conflict(kind, name, problem)
    for field in ("generation", "deletionTimestamp", "deletionGracePeriodSeconds", "generateName"):
        new.pop(field, None)
        if field in old:
            new[field] = old[field]
    new["creationTimestamp"] = old["creationTimestamp"]


def order_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    """Put the fields into the order of the API, for people who read the JSON."""
    return {name: metadata[name] for name in _ORDER if name in metadata and metadata[name] not in (None, "", {}, [])}


_ORDER: Final = (
    *("name", "generateName", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp"),
    *("deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences", "finalizers"),
)


def validate_metadata(metadata: dict[str, Any], name_problems: NameProblems) -> Iterator[FieldError]:
    """Yield what is wrong in the metadata of a new object."""
    if generate := metadata.get("generateName"):
        # What is appended makes a dash at its end good.
        for problem in name_problems(re.sub(r"(?<=.)-\Z", "a", generate)):
            yield FieldError("metadata.generateName", problem)
    name = metadata.get("name", "")
    if not name:
        yield FieldError("metadata.name", "name or generateName is required", FieldReason.REQUIRED)
    else:
        for problem in name_problems(name):
            yield FieldError("metadata.name", problem)
    yield from validate_mutable_metadata(metadata)


def validate_mutable_metadata(metadata: dict[str, Any], path: str = "metadata") -> Iterator[FieldError]:
    """Yield what is wrong in labels, annotations, owners and finalizers."""
    for key, value in metadata.get("labels", {}).items():
        for problem in (*validate_label_key(key), *validate_label_value(value)):
            yield FieldError(f"{path}.labels", f"{quote(key)}: {problem}")
    yield from _validate_annotations(metadata.get("annotations", {}), f"{path}.annotations")
    yield from _validate_owners(metadata.get("ownerReferences", ()), f"{path}.ownerReferences")
    for index, finalizer in enumerate(metadata.get("finalizers", ())):
        where = f"{path}.finalizers[{index}]"
        for problem in validate_label_key(finalizer):
            yield FieldError(where, problem)
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            yield FieldError(where, f"{quote(finalizer)} has no domain, want 'domain/name'")


def _validate_annotations(annotations: dict[str, str], path: str) -> Iterator[FieldError]:
    for key in annotations:
        for problem in validate_label_key(key.lower()):
            yield FieldError(path, f"{quote(key)}: {problem}")
    if (size := sum(byte_length(key) + byte_length(value) for key, value in annotations.items())) > _ANNOTATIONS_MAX:
        yield FieldError(path, f"{size} bytes, want at most {_ANNOTATIONS_MAX}", FieldReason.TOO_LONG)


def _validate_owners(owners: list[dict[str, Any]], path: str) -> Iterator[FieldError]:
    for index, owner in enumerate(owners):
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                yield FieldError(f"{path}[{index}].{field}", "must not be empty", FieldReason.REQUIRED)
    controllers = [owner for owner in owners if owner.get("controller")]
    if len(controllers) > 1:
        yield FieldError(path, f"{len(controllers)} of them are controllers, want at most one")


def validate_metadata_update(new: dict[str, Any], old: dict[str, Any]) -> Iterator[FieldError]:
    """Yield what an update of the metadata may not do."""
    for field in _IMMUTABLE:
        if new.get(field) != old.get(field):
            yield FieldError(f"metadata.{field}", "field is immutable")
    if old.get("deletionTimestamp"):
        added = [each for each in new.get("finalizers", ()) if each not in old.get("finalizers", ())]
        if added:
            problem = f"no new finalizers can be added if the object is being deleted, found new finalizers {added}"
            yield FieldError("metadata.finalizers", problem, FieldReason.FORBIDDEN)
    yield from validate_mutable_metadata(new)


def parse_version(text: str, field: str = "resourceVersion") -> int:
    """Read a resource version; empty is 0. Raises Refusal."""
    if not (text.isascii() and text.isdigit() and len(text) < 20) and text:  # noqa: PLR2004 - 64 bits
        problem = f'Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
        raise bad_request(f"invalid resource version: {field}: {problem}")
    return int(text or "0")


__all__ = [
    "SUFFIX_LENGTH",
    "begin_metadata",
    "carry_metadata",
    "check_namespace",
    "order_metadata",
    "parse_version",
    "read_metadata",
    "validate_dns_subdomain",
    "validate_metadata",
    "validate_metadata_update",
]
