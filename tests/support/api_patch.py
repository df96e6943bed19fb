"""JSON patches (RFC 6902) as an API server applies them, for the API server of the tests."""

import copy
from typing import Any

from tests.support.api_store import Object, Refusal


def patched(target: Object, operations: list[Any]) -> Object:
    """Apply a patch, all of it or nothing."""
    changed = copy.deepcopy(target)
    for operation in operations:
        *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
        try:
            holder: Any = changed
            for part in parents:
                holder = holder[_index(holder, part)]
            _apply(holder, _index(holder, last), operation)
        except (KeyError, IndexError, ValueError, TypeError) as error:
            path = operation["path"]
            raise Refusal(
                422, "Invalid", f"the server rejected our request: {operation['op']} {path}: {error}"
            ) from error
    return changed


def _apply(holder: Any, index: Any, operation: dict[str, Any]) -> None:
    match operation["op"]:
        case "test":
            if holder[index] != operation["value"]:
                raise ValueError(f"is {holder[index]!r}")
        case "remove":
            del holder[index]
        case "add" if isinstance(holder, list):
            holder.insert(index, operation["value"])
        case "add":
            holder[index] = operation["value"]
        case "replace":
            holder[index]
            holder[index] = operation["value"]
        case other:
            raise ValueError(f"unknown operation {other!r}")


def _index(holder: Any, part: str) -> Any:
    if not isinstance(holder, list):
        return part
    return len(holder) if part == "-" else int(part)
