"""Objects and lists as clients want them: whole, as metadata only, or as the table that `kubectl get` prints."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from sandbox.api_server.kind import Kind
from sandbox.api_server.refusal import Refusal
from sandbox.api_server.store import Stored
from sandbox.api_server.table import columns, row

_META: Final = "meta.k8s.io"
_JSON_TYPES: Final = ("application/json", "application/*", "*/*")


@dataclass(frozen=True, slots=True)
class Form:
    """How a client wants objects: `whole`, `metadata` or `table`; with `include`, the objects of a table's rows."""

    name: str = "whole"
    version: str = "v1"
    include: str = "Metadata"


WHOLE: Final = Form()


def negotiate(accept: str, include: str = "") -> Form:
    """Choose the first form of an Accept header that is known. Raises Refusal (406)."""
    for entry in accept.split(",") if accept.strip() else ["*/*"]:
        media, *parameters = (part.strip() for part in entry.split(";"))
        if media not in _JSON_TYPES:
            continue
        given = dict(part.partition("=")[::2] for part in parameters)
        wanted = given.get("as", "")
        if not wanted or (wanted == "APIGroupDiscoveryList"):
            return WHOLE
        if given.get("g") == _META and given.get("v") in ("v1", "v1beta1"):
            if wanted == "Table":
                return Form("table", given["v"], include or "Metadata")
            if wanted in ("PartialObjectMetadata", "PartialObjectMetadataList"):
                return Form("metadata", given["v"])
    message = "only the following media types are accepted: application/json"
    raise Refusal(406, "NotAcceptable", message)


def wants_aggregated(accept: str) -> bool:
    """Tell whether discovery shall be one document."""
    first = accept.split(",", maxsplit=1)[0].replace(" ", "")
    return "as=APIGroupDiscoveryList" in first and "v=v2" in first.split(";")


def render_object(kind: Kind, stored: Stored) -> bytes:
    """Write a whole object."""
    return _prefix(kind) + stored.body[1:]


def renderer(kind: Kind, form: Form) -> Callable[[Stored], bytes]:
    """Give what writes single objects, and events of a watch."""
    if form.name == "table":
        is_first = True

        def render_table(stored: Stored) -> bytes:
            nonlocal is_first
            table = _table(kind, form, [stored], {"resourceVersion": str(stored.revision)}, with_columns=is_first)
            is_first = False
            return table

        return render_table
    if form.name == "metadata":
        return lambda stored: msgspec.json.encode(_partial(stored, form))
    return lambda stored: render_object(kind, stored)


def render_list(kind: Kind, form: Form, items: Sequence[Stored], metadata: dict[str, Any]) -> bytes:
    """Write a list."""
    if form.name == "table":
        return _table(kind, form, items, metadata, with_columns=True)
    if form.name == "metadata":
        head = {"kind": "PartialObjectMetadataList", "apiVersion": f"{_META}/{form.version}", "metadata": metadata}
        return msgspec.json.encode(head | {"items": [_partial(stored, form) for stored in items]})
    head = {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": metadata}
    return msgspec.json.encode(head)[:-1] + b',"items":[' + b",".join(stored.body for stored in items) + b"]}\n"


def _prefix(kind: Kind) -> bytes:
    return f'{{"kind":"{kind.kind}","apiVersion":"{kind.api_version}",'.encode()


def _partial(stored: Stored, form: Form) -> dict[str, Any]:
    head = {"kind": "PartialObjectMetadata", "apiVersion": f"{_META}/{form.version}"}
    return head | {"metadata": stored.value["metadata"]}


def _table(kind: Kind, form: Form, items: Iterable[Stored], metadata: dict[str, Any], *, with_columns: bool) -> bytes:
    rows = [row(kind, stored.value) | _row_object(kind, form, stored) for stored in items]
    head = {"kind": "Table", "apiVersion": f"{_META}/{form.version}", "metadata": metadata}
    return msgspec.json.encode(head | {"columnDefinitions": columns(kind) if with_columns else [], "rows": rows})


def _row_object(kind: Kind, form: Form, stored: Stored) -> dict[str, Any]:
    if form.include == "None":
        return {}
    if form.include == "Object":
        return {"object": {"kind": kind.kind, "apiVersion": kind.api_version} | stored.value}
    return {"object": _partial(stored, form)}
