"""Requests and answers: paths to kinds, bodies to values, refusals to Statuses. HTTP, but no sockets."""

import hmac
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from operator import attrgetter
from typing import Any, Final
from urllib.parse import unquote

import msgspec
import structlog
from aiohttp import web

from sandbox.api_server import discovery
from sandbox.api_server.apply import merge_apply
from sandbox.api_server.body import field_validation, read_apply, read_object, read_value
from sandbox.api_server.kind import CONFIG_MAPS, DEVICE_TAINT_RULES, EVENTS, LEASES, NODES, PODS, Kind, Object
from sandbox.api_server.options import ListOptions, parse_int, parse_options, write_token
from sandbox.api_server.patch import apply_operations, merge, merge_strategic
from sandbox.api_server.protobuf import MEDIA_TYPE
from sandbox.api_server.refusal import (
    Refusal,
    bad_request,
    invalid_patch,
    invalid_query,
    no_resource,
    not_allowed,
    unsupported_media_type,
)
from sandbox.api_server.registry import DeleteOptions, Registry, Target
from sandbox.api_server.render import WHOLE, Form, negotiate, render_list, renderer, wants_aggregated
from sandbox.api_server.selector import parse_selectors
from sandbox.api_server.watch import BOOKMARK_EVERY_S, Watch, begin, error_line

_SHORTEST_WATCH_S: Final = 1800.0
_WARNINGS_MAX: Final = 64
_WARNINGS_MAX_LENGTH: Final = 4096
_JSON: Final = "application/json"
_PATCHES: Final = (
    *("application/json-patch+json", "application/merge-patch+json"),
    *("application/strategic-merge-patch+json", "application/apply-patch+yaml"),
)
_ENDS_AS_STATUS: Final = frozenset((NODES, EVENTS, CONFIG_MAPS, LEASES, DEVICE_TAINT_RULES))
"""Kinds whose deletion is answered by a Status, not by the object."""
_HEALTH: Final = ("/healthz", "/livez", "/readyz")


_Answer = Callable[[web.Request, Target, Mapping[str, str], Form], Awaitable[web.StreamResponse]]


class Api:
    """Answers requests. `token` is what they must bear, unless it is empty."""

    def __init__(self, registry: Registry, kinds: tuple[Kind, ...], *, token: str = "") -> None:
        self.registry = registry
        self.kinds = kinds
        self.watches: set[Watch] = set()
        self.bookmark_every_s = BOOKMARK_EVERY_S
        self._token = token
        self._by_path = {(kind.root.strip("/"), kind.plural): kind for kind in kinds}
        self._log = structlog.get_logger("sandbox.api_server")

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer a request; what is refused is answered by a Status."""
        try:
            self._authenticate(request)
            return await self._answer(request)
        except Refusal as refusal:
            return refuse(refusal)
        except web.HTTPRequestEntityTooLarge:
            return refuse(Refusal(413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728"))
        except web.RequestPayloadError:
            return refuse(bad_request("the body is not what its length and encoding say"))
        except Exception as error:  # noqa: BLE001 - whatever a request does, the server goes on and says so
            self._log.exception("request failed", method=request.method, path=request.path)
            return refuse(Refusal(500, "InternalError", f"Internal error occurred: {type(error).__name__}"))

    def end_watches(self) -> None:
        """End every watch, as a server does that goes away."""
        for watch in self.watches:
            watch.end()

    def _authenticate(self, request: web.Request) -> None:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        given = token.strip().encode("utf-8", "surrogateescape")
        if self._token and not (scheme.lower() == "bearer" and hmac.compare_digest(given, self._token.encode())):
            raise Refusal(HTTPStatus.UNAUTHORIZED, "Unauthorized", "Unauthorized")

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        path = request.raw_path.partition("?")[0]
        parts = _split(path)
        target = self._locate(parts)
        if target is None:
            return self._answer_about_itself(request, "/" + "/".join(parts))
        query = {name: request.query.getall(name)[0] for name in request.query}
        form = negotiate(request.headers.get("Accept", ""), query.get("includeObject", ""))
        answer = self._find_answer(request.method, target)
        return await answer(request, target, query, form)

    def _find_answer(self, method: str, target: Target) -> _Answer:
        """Give what answers a method. Raises Refusal (405)."""
        plain, on_object = target.subresource in ("", "status"), bool(target.name)
        match method, on_object:
            case "GET", _ if plain:
                return self._get if on_object else self._collection
            case "POST", False:
                return self._create
            case "POST", True if target.subresource in ("binding", "eviction"):
                return self._subresource
            case (("PUT" | "PATCH"), True) if plain or target.subresource == "finalize":
                return self._change
            case "DELETE", _ if not target.subresource:
                return self._delete if on_object else self._delete_collection
        raise not_allowed()

    async def _get(
        self, _request: web.Request, target: Target, _query: Mapping[str, str], form: Form
    ) -> web.StreamResponse:
        return _reply(renderer(target.kind, form)(self.registry.get(target)))

    def _locate(self, parts: list[str]) -> Target | None:
        """Find what a path is about; None if it is not about objects. Raises Refusal (404)."""
        depth = {"api": 2, "apis": 3}.get(parts[0] if parts else "")
        if depth is None or len(parts) <= depth:
            return None
        root, rest = "/".join(parts[:depth]), parts[depth:]
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2 and (root, rest[2]) in self._by_path:  # noqa: PLR2004
            namespace, rest = rest[1], rest[2:]
        kind = self._by_path.get((root, rest[0]))
        name, subresource, *more = [*rest[1:], "", ""]
        known = ("", *(("status",) if kind and kind.has_status else ()), *(kind.subresources if kind else ()))
        wrong_scope = kind and (bool(namespace) != kind.namespaced) and (bool(namespace) or bool(name))
        if kind is None or subresource not in known or any(more) or wrong_scope:
            raise no_resource()
        return Target(kind, namespace, name, subresource)

    async def _collection(
        self, request: web.Request, target: Target, query: Mapping[str, str], form: Form
    ) -> web.StreamResponse:
        options = parse_options(query)
        if options.is_watch:
            return await self._watch(request, target, options, form)
        return _reply(self._list(target, options, form))

    def _list(self, target: Target, options: ListOptions, form: Form) -> bytes:
        store, kind = self.registry.store, target.kind
        matches = parse_selectors(kind, options.labels, options.fields)
        revision = options.revision if options.is_exact and options.revision else store.revision
        if options.revision is not None:
            store.check_revision(kind, options.revision if options.is_exact else max(options.revision, store.revision))
        there = store.all_at(kind, revision, target.namespace)
        if options.start is not None:
            there = there[bisect_right(there, options.start, key=attrgetter("key")) :]
        found = there if matches is None else [stored for stored in there if matches(stored.value)]
        metadata: dict[str, Any] = {"resourceVersion": str(revision)}
        if options.limit and len(found) >= options.limit:
            found = found[: options.limit]
            remaining = len(there) - 1 - there.index(found[-1])
            if remaining:
                metadata["continue"] = write_token(revision, found[-1].key)
            if remaining and matches is None:
                metadata["remainingItemCount"] = remaining
        return render_list(kind, form, found, metadata)

    async def _watch(
        self, request: web.Request, target: Target, options: ListOptions, form: Form
    ) -> web.StreamResponse:
        store, kind = self.registry.store, target.kind
        matches = parse_selectors(kind, options.labels, options.fields)
        watch = Watch(request, kind, target.namespace, matches, renderer(kind, form), revision=lambda: store.revision)
        initial = options.initial_events if options.initial_events is not None else options.revision is None
        response = web.StreamResponse(headers={"Content-Type": _JSON, "Cache-Control": "no-cache, private"})
        try:
            marks_end = bool(options.initial_events and options.bookmarks)
            begin(watch, store, options.revision, initial_events=initial, marks_end=marks_end)
        except Refusal as refusal:
            if refusal.code != HTTPStatus.GONE:
                raise
            await response.prepare(request)
            await response.write(error_line(refusal))
            return response
        self.watches.add(watch)
        try:
            await response.prepare(request)
            bookmark_every_s = self.bookmark_every_s if options.bookmarks else None
            await watch.serve(response, options.timeout_s or _SHORTEST_WATCH_S, bookmark_every_s)
        except ConnectionError:
            pass
        finally:
            store.forget(kind, watch.offer)
            self.watches.discard(watch)
        return response

    async def _create(
        self, request: web.Request, target: Target, query: Mapping[str, str], form: Form
    ) -> web.StreamResponse:
        if target.kind.namespaced and not target.namespace:
            raise not_allowed()
        dry_run, validation = _dry_run(query), field_validation(query)
        body = read_value(await request.read(), _content_type(request))
        wanted, warnings = read_object(target.kind, body, validation)
        created = self.registry.create(target, wanted, dry_run=dry_run)
        warnings += self.registry.warnings(target, created)
        return _reply(renderer(target.kind, form)(created), HTTPStatus.CREATED, warnings)

    async def _change(
        self, request: web.Request, target: Target, query: Mapping[str, str], form: Form
    ) -> web.StreamResponse:
        dry_run, validation = _dry_run(query), field_validation(query)
        body = await request.read()
        warnings: list[str] = []
        is_apply = _content_type(request) == "application/apply-patch+yaml"
        is_change = request.method == "PATCH" and not is_apply

        def read(value: Any) -> Object:
            try:
                wanted, found = read_object(target.kind, value, validation)
            except Refusal as refusal:
                if is_change and "strict decoding" not in str(refusal):
                    raise invalid_patch(str(refusal)) from None
                raise
            warnings.extend(found)
            return wanted

        if request.method == "PATCH" and is_apply:
            changed, is_new = merge_apply(self.registry, target, read, read_apply(body), query, dry_run=dry_run)
        else:
            change = _change_of(request, body)
            if is_change:
                self.registry.get(target)
            changed, is_new = self.registry.update(
                target, lambda old: read(change(old)), dry_run=dry_run, is_patch=is_change
            )
        warnings += self.registry.warnings(target, changed)
        status = HTTPStatus.CREATED if is_new else HTTPStatus.OK
        return _reply(renderer(target.kind, form)(changed), status, warnings)

    async def _delete(
        self, request: web.Request, target: Target, query: Mapping[str, str], form: Form
    ) -> web.StreamResponse:
        options, dry_run = _delete_options(await request.read(), _content_type(request), query)
        stored, is_gone = self.registry.delete(target, options, dry_run=dry_run)
        if is_gone and target.kind in _ENDS_AS_STATUS:
            details = {"name": target.name, "group": target.kind.group, "kind": target.kind.plural}
            details["uid"] = stored.value["metadata"]["uid"]
            return _reply(_success({name: value for name, value in details.items() if value}))
        return _reply(renderer(target.kind, form)(stored))

    async def _delete_collection(
        self, request: web.Request, target: Target, query: Mapping[str, str], _form: Form
    ) -> web.StreamResponse:
        if target.kind.namespaced and not target.namespace:
            raise not_allowed()
        options, dry_run = _delete_options(await request.read(), _content_type(request), query)
        chosen = parse_options({name: value for name, value in query.items() if name != "watch"})
        matches = parse_selectors(target.kind, chosen.labels, chosen.fields)
        deleted = [
            self.registry.delete(Target(target.kind, *stored.key), options, dry_run=dry_run)[0]
            for stored in self.registry.store.all(target.kind, target.namespace)
            if matches is None or matches(stored.value)
        ]
        metadata = {"resourceVersion": str(self.registry.store.revision)}
        return _reply(render_list(target.kind, WHOLE, deleted, metadata))

    async def _subresource(
        self, request: web.Request, target: Target, query: Mapping[str, str], _form: Form
    ) -> web.StreamResponse:
        body = read_value(await request.read(), _content_type(request))
        if not isinstance(body, dict) or target.kind is not PODS:
            raise bad_request("couldn't get version/kind; json parse error: want an object")
        if target.subresource == "binding":
            self.registry.bind(target, body, dry_run=_dry_run(query))
        else:
            options = msgspec.json.encode(body.get("deleteOptions") or {})
            chosen, dry_run = _delete_options(options, _JSON, query)
            self.registry.delete(target, chosen, dry_run=dry_run)
        return _reply(_success(), HTTPStatus.CREATED)

    def _answer_about_itself(self, request: web.Request, path: str) -> web.StreamResponse:
        if request.method != "GET":
            raise not_allowed()
        if path in _HEALTH or path.startswith(tuple(f"{each}/" for each in _HEALTH)):
            return web.Response(text="ok")
        aggregated = wants_aggregated(request.headers.get("Accept", ""))
        if path in ("/api", "/apis") and aggregated:
            document = discovery.aggregated(self.kinds, core=path == "/api")
            kind = f"{_JSON};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
            return web.Response(body=msgspec.json.encode(document), headers={"Content-Type": kind})
        found = discovery.find(self.kinds, path)
        if found is None:
            return web.Response(text="404 page not found\n", status=HTTPStatus.NOT_FOUND)
        return _reply(msgspec.json.encode(found))


def refuse(refusal: Refusal) -> web.Response:
    """Answer with the Status of a refusal."""
    response = _reply(msgspec.json.encode(refusal.status), refusal.code)
    if refusal.retry_after_s:
        response.headers["Retry-After"] = str(refusal.retry_after_s)
    return response


def _reply(body: bytes, status: int = HTTPStatus.OK, warnings: "list[str] | tuple[str, ...]" = ()) -> web.Response:
    response = web.Response(body=body, status=status, headers={"Content-Type": _JSON})
    left = _WARNINGS_MAX_LENGTH
    for warning in warnings[:_WARNINGS_MAX]:
        left -= len(warning)
        if left < 0:  # as the API server does: clients do not read heads of any size
            break
        text = warning.replace("\\", "\\\\").replace('"', '\\"')
        response.headers.add("Warning", f'299 - "{"".join(c if c.isprintable() else "?" for c in text)}"')
    return response


def _success(details: Mapping[str, Any] | None = None) -> bytes:
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    return msgspec.json.encode(status | ({"details": details} if details else {"code": HTTPStatus.CREATED}))


def _split(path: str) -> list[str]:
    """Give the decoded parts of a path. Raises Refusal (404) for parts that no name can be."""
    try:
        parts = [unquote(part, errors="strict") for part in path.split("/")[1:]]
    except UnicodeDecodeError:
        raise no_resource() from None
    if parts and not parts[-1]:
        parts.pop()
    if any(part in ("", ".", "..") or "/" in part for part in parts):
        raise no_resource()
    return parts


def _content_type(request: web.Request) -> str:
    """Give the type of the body; what has none is JSON."""
    return request.content_type if request.headers.get("Content-Type") else _JSON


def _dry_run(query: Mapping[str, str]) -> bool:
    wanted = query.get("dryRun", "")
    if wanted not in ("", "All"):
        raise invalid_query("CreateOptions", "dryRun", f'Unsupported value: "{wanted}": supported values: "All"')
    return wanted == "All"


def _change_of(request: web.Request, body: bytes) -> Callable[[Object], Any]:
    """Give what a PUT or PATCH makes of the object that is there. Raises Refusal."""
    if request.method == "PUT":
        wanted = read_value(body, _content_type(request))
        return lambda _: wanted
    if _content_type(request) not in _PATCHES:
        raise unsupported_media_type(_PATCHES)
    patch = read_value(body)
    if _content_type(request) != "application/json-patch+json" and not isinstance(patch, dict):
        raise bad_request(f"error decoding patch: json: cannot unmarshal {type(patch).__name__} into a map")
    match _content_type(request):
        case "application/json-patch+json":
            return lambda old: apply_operations(old, patch)
        case "application/merge-patch+json":
            return lambda old: merge(old, patch)
        case _:
            return lambda old: merge_strategic(old, patch)


def _delete_options(body: bytes, content_type: str, query: Mapping[str, str]) -> tuple[DeleteOptions, bool]:
    """Read options from the body, or from the query without one. Raises Refusal."""
    if body.strip():
        value = read_value(body, content_type if content_type == MEDIA_TYPE else _JSON)
        try:
            options = msgspec.convert(value, DeleteOptions)
        except msgspec.ValidationError as error:
            raise bad_request(f"DeleteOptions cannot be read: {error}") from None
    else:
        grace_s = parse_int(query, "gracePeriodSeconds") if query.get("gracePeriodSeconds") else None
        dry_run = [query["dryRun"]] if query.get("dryRun") else None
        options = DeleteOptions(grace_period_seconds=grace_s, dry_run=dry_run)
    for wanted in options.dry_run or ():
        _dry_run({"dryRun": wanted})
    if (options.grace_period_seconds or 0) < 0:
        options.grace_period_seconds = 1
    return options, bool(options.dry_run)


__all__ = ["Api", "refuse"]
