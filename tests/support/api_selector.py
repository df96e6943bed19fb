"""Label and field selectors as an API server reads them, for the API server of the tests."""

import re
from collections.abc import Callable
from typing import Any

from tests.support.api_store import Kind, Object, Refusal

_COMMAS = re.compile(r",(?![^(]*\))")
_SET = re.compile(r"^(\S+)\s+(in|notin)\s+\(([^)]*)\)$")
_EQUALITY = re.compile(r"^([^=!]+)(==|=|!=)(.*)$")

Matches = Callable[[Object], bool]


def selector(kind: Kind, query: dict[str, str]) -> Matches:
    """Whether an object is in the answer to a list or watch with these query parameters."""
    fields = _terms(query.get("fieldSelector", ""))
    labels = _terms(query.get("labelSelector", ""))
    for term in fields:
        _field_name(kind, term)

    def matches(value: Object) -> bool:
        of_labels = value["metadata"].get("labels", {})
        return all(_holds(term, lambda path: _at(value, path)) for term in fields) and all(
            _holds(term, of_labels.get) for term in labels
        )

    return matches


def _terms(text: str) -> list[str]:
    return [term.strip() for term in _COMMAS.split(text) if term.strip()]


def _field_name(kind: Kind, term: str) -> None:
    found = _EQUALITY.match(term)
    if found is None or found[1] not in ("metadata.name", "metadata.namespace", *kind.fields):
        raise Refusal(400, "BadRequest", f"field label not supported: {found[1] if found else term}")


def _holds(term: str, look_up: Callable[[str], Any]) -> bool:
    if found := _SET.match(term):
        inside = look_up(found[1]) in [item.strip() for item in found[3].split(",")]
        return inside == (found[2] == "in")
    if found := _EQUALITY.match(term):
        equal = (look_up(found[1]) or "") == found[3]
        return equal != (found[2] == "!=")
    if term.startswith("!"):
        return look_up(term[1:]) is None
    return look_up(term) is not None


def _at(value: Any, path: str) -> Any:
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value
