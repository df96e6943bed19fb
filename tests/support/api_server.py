"""An API server for tests: real HTTP and the real protocol for registered kinds, over dicts in memory.

It lists in pages, watches with bookmarks and 410, creates, updates, patches (merge, JSON and apply) and deletes, with
dry run, conflicts, generated names, field and label selectors; it records every request, and makes faults on demand.
"""

import asyncio
import json
import ssl
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from aiohttp import web

from tests.support.api_fault import Fault, commit
from tests.support.api_patch import patched
from tests.support.api_selector import Matches, selector
from tests.support.api_store import KINDS, Change, Kind, Object, Refusal, Store, merge

Admission = Callable[[Kind, str, Object], None]

_SHUTDOWN_S = 0.05


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it came in. `peer` is the other end of its connection."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    peer: str

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(slots=True, eq=False)
class _Watch:
    """A watch in progress: `revision` is how far it told, `raw` what a test wants to be sent."""

    request: web.Request
    response: web.StreamResponse
    kind: Kind
    revision: int
    silent: bool = False
    ended: bool = False
    bookmark: bool = False
    raw: list[bytes] = field(default_factory=list)


class TestApiServer:
    """`async with TestApiServer() as server:` serves at `server.url` until the block ends.

    `stop()` and `start()` take it away and bring it back at the same address, objects kept. With `tokens` a request
    must bear one of them. `admission` functions see every object that is written, and raise `Refusal` to refuse it.
    """

    __test__ = False  # pytest collects classes named Test*

    def __init__(self, *, kinds: tuple[Kind, ...] = KINDS, tls: ssl.SSLContext | None = None) -> None:
        self.store = Store()
        self.kinds = {kind.plural: kind for kind in kinds}
        self.requests: list[Request] = []
        self.tokens: set[str] | None = None
        self.admission: list[Admission] = []
        self.bookmark_every_s = 60.0
        self.bookmarks = 0
        self.port = 0
        self._tls = tls
        self._faults: list[Fault] = []
        self._watches: list[_Watch] = []
        self._pages: dict[str, tuple[int, list[Object]]] = {}
        self._runner: web.AppRunner | None = None
        self._stopped = asyncio.Event()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        app = web.Application(client_max_size=2**26)
        app.router.add_route("*", "/{path:.*}", self._serve)
        self._stopped = asyncio.Event()
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=_SHUTDOWN_S)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, ssl_context=self._tls, reuse_address=True)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Go away: no connection is left, none is accepted."""
        self._stopped.set()
        self.cut_watches()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    def kubeconfig(self, path: Path, token: str = "", *, ca: Path | None = None, **cluster: Any) -> Path:
        """Write a kubeconfig for this server to `path` and return it; `cluster` adds to its cluster entry."""
        cluster_entry = {"server": self.url} | ({"certificate-authority": str(ca)} if ca else {}) | cluster
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster_entry}],
            "users": [{"name": "test", "user": {"token": token} if token else {}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "current-context": "test",
        }
        path.write_text(json.dumps(content), encoding="utf-8")
        return path

    # What a test does to the objects, as somebody else in the cluster would.

    def put(self, plural: str, value: Object) -> Object:
        """Create the object, or replace the one of the same name."""
        kind, key = self._located(plural, value)
        if key in self.store.objects.get(kind, {}):
            stored = self.store.update(kind, key, value)
        else:
            stored = self.store.create(kind, key[0], value)
        if kind.has_status and "status" in value:
            stored = self.store.update(kind, key, {"status": value["status"]}, status=True)
        return stored

    def remove(self, plural: str, name: str, namespace: str = "") -> Object:
        return self.store.delete(self.kinds[plural], (namespace, name), {})

    def all(self, plural: str, namespace: str = "") -> list[Object]:
        return self.store.list(self.kinds[plural], namespace)

    # Faults.

    def inject(self, fault: Fault) -> Fault:
        self._faults.append(fault)
        return fault

    def drop_fields(self, plural: str, *paths: str) -> None:
        """Drop fields on write, as a feature gate that is off does: `spec.devices.*.taints`."""
        self.store.dropped += [(plural, tuple(path.split("."))) for path in paths]

    def compact(self) -> None:
        """Forget the past: a watch from before now, and the rest of a list that is being paged, get 410."""
        self.store.compact()
        self._pages.clear()

    @property
    def watches(self) -> int:
        """How many watches are open."""
        return len(self._watches)

    def watches_of(self, plural: str) -> list[_Watch]:
        """Return the open watches of a kind."""
        return [watch for watch in self._watches if watch.kind.plural == plural]

    def cut_watches(self) -> None:
        """Reset the connection of every watch."""
        for watch in self._watches:
            if watch.request.transport is not None:
                watch.request.transport.abort()

    def end_watches(self) -> None:
        """End every watch as a server does whose time is over."""
        for watch in self._watches:
            watch.ended = True
        self.store.wake()

    def silence_watches(self) -> None:
        """Leave every open watch connected, and never send on it again."""
        for watch in self._watches:
            watch.silent = True

    def send(self, line: bytes) -> None:
        """Send raw bytes on every watch."""
        for watch in self._watches:
            watch.raw.append(line)
        self.store.wake()

    def send_error(self, code: int, reason: str = "Expired") -> None:
        """Send an ERROR event on every watch."""
        status = Refusal(code, reason, "too old resource version").status
        self.send(_line("ERROR", status))

    def bookmark(self) -> None:
        """Send a bookmark on every watch."""
        for watch in self._watches:
            watch.bookmark = True
        self.store.wake()

    # Serving.

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        query, headers = dict(request.query), dict(request.headers)
        peer = str(request.transport.get_extra_info("peername")) if request.transport else ""
        self.requests.append(Request(request.method, request.path, query, headers, body, peer))
        fault = next((fault for fault in self._faults if fault.matches(request)), None)
        if fault is not None and (spoilt := await commit(fault, request, self._stopped)) is not None:
            return spoilt
        try:
            self._authenticate(request)
            answer = await self._answer(request, body)
        except Refusal as refusal:
            answer = web.json_response(refusal.status, status=refusal.code)
        if fault is not None and fault.action == "lose" and request.transport is not None:
            request.transport.abort()
        return answer

    def _authenticate(self, request: web.Request) -> None:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if self.tokens is not None and not (scheme.lower() == "bearer" and token in self.tokens):
            raise Refusal(401, "Unauthorized", "Unauthorized")

    async def _answer(self, request: web.Request, body: bytes) -> web.StreamResponse:
        kind, namespace, name, subresource = self._route(request.path)
        query = dict(request.query)
        match request.method, bool(name):
            case "GET", True:
                return web.json_response(self.store.get(kind, (namespace, name)))
            case "GET", False if query.get("watch") in ("1", "true"):
                return await self._watch(request, kind, namespace, query)
            case "GET", False:
                return web.json_response(self._list(kind, namespace, query))
            case "DELETE", True:
                options = json.loads(body) if body else {"dryRun": query.get("dryRun")}
                deleted = self.store.delete(kind, (namespace, name), options)
                return web.json_response(deleted)
            case ("POST", False) | ("PUT" | "PATCH", True):
                code, stored = self._write(request, (kind, namespace, name, subresource), body)
                return web.json_response(stored, status=code)
        raise Refusal(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")

    def _write(self, request: web.Request, target: tuple[Kind, str, str, str], body: bytes) -> tuple[int, Object]:
        kind, namespace, name, subresource = target
        if subresource and not (subresource == "status" and kind.has_status):
            raise Refusal(404, "NotFound", "the server could not find the requested resource")
        try:
            wanted = json.loads(body)
        except ValueError as error:
            raise Refusal(400, "BadRequest", f"couldn't get version/kind; json parse error: {error}") from error
        dry_run = request.query.get("dryRun") == "All"
        is_new = request.method == "POST"
        if request.method == "PATCH":
            previous, is_new = self._patched(request, kind, (namespace, name))
            wanted = patched(previous, wanted) if isinstance(wanted, list) else merge(previous, wanted)
        for admit in self.admission:
            admit(kind, request.method, wanted)
        if is_new:
            return 201, self.store.create(kind, namespace, wanted, dry_run=dry_run)
        is_status = subresource == "status"
        return 200, self.store.update(kind, (namespace, name), wanted, status=is_status, dry_run=dry_run)

    def _patched(self, request: web.Request, kind: Kind, key: tuple[str, str]) -> tuple[Object, bool]:
        """Return what a patch is merged into, and whether that is a new object, as with apply it may be."""
        match request.content_type:
            case "application/merge-patch+json" | "application/json-patch+json":
                previous = self.store.get(kind, key)
            case "application/apply-patch+yaml":
                if not request.query.get("fieldManager"):
                    raise Refusal(422, "Invalid", "fieldManager: Required value: is required for apply patch")
                if key not in self.store.objects.get(kind, {}):
                    return {"metadata": {"name": key[1]}}, True
                previous = self.store.get(kind, key)
            case other:
                raise Refusal(415, "UnsupportedMediaType", f"the body of the request is of unknown format {other}")
        return previous, False

    def _route(self, path: str) -> tuple[Kind, str, str, str]:
        """Kind, namespace, name and subresource of a path."""
        for kind in self.kinds.values():
            rest = path.removeprefix(kind.root + "/").split("/")
            if not path.startswith(kind.root + "/"):
                continue
            namespace = ""
            if kind.namespaced and rest[0] == "namespaces" and len(rest) > 2:
                namespace, rest = rest[1], rest[2:]
            if rest[0] == kind.plural:
                name, subresource, *_ = [*rest[1:], "", ""]
                return kind, namespace, name, subresource
        raise Refusal(404, "NotFound", "the server could not find the requested resource")

    def _located(self, plural: str, value: Object) -> tuple[Kind, tuple[str, str]]:
        kind = self.kinds[plural]
        return kind, (value["metadata"].get("namespace", "") if kind.namespaced else "", value["metadata"]["name"])

    def _list(self, kind: Kind, namespace: str, query: dict[str, str]) -> Object:
        if token := query.get("continue"):
            if token not in self._pages:
                raise Refusal(410, "Expired", "The provided continue parameter is too old to display a consistent list")
            revision, found = self._pages.pop(token)
        else:
            matches = selector(kind, query)
            revision, found = self.store.revision, [v for v in self.store.list(kind, namespace) if matches(v)]
        limit = int(query.get("limit") or len(found) or 1)
        page, rest = found[:limit], found[limit:]
        metadata = {"resourceVersion": str(revision)}
        if rest:
            metadata |= {"continue": uuid.uuid4().hex}
            self._pages[metadata["continue"]] = (revision, rest)
        items = [{name: part for name, part in item.items() if name not in ("kind", "apiVersion")} for item in page]
        return {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": metadata, "items": items}

    async def _watch(
        self, request: web.Request, kind: Kind, namespace: str, query: dict[str, str]
    ) -> web.StreamResponse:
        matches = selector(kind, query)
        revision = int(query.get("resourceVersion") or 0)
        if 0 < revision < self.store.compacted:
            raise Refusal(410, "Expired", f"too old resource version: {revision} ({self.store.compacted})")
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        watch = _Watch(request, response, kind, revision or self.store.revision)
        if not revision:
            watch.raw = [_line("ADDED", value) for value in self.store.list(kind, namespace) if matches(value)]
        self._watches.append(watch)
        try:
            async with asyncio.timeout(float(query.get("timeoutSeconds") or 3600)):
                await self._stream(watch, namespace, matches)
        except TimeoutError:
            pass
        except ConnectionError:
            return response
        finally:
            self._watches.remove(watch)
        return response

    async def _stream(self, watch: _Watch, namespace: str, matches: Matches) -> None:
        """Send what happens until the watch is ended. A bookmark comes after everything that it covers."""
        while not watch.silent:
            tick, ended = self.store.tick, watch.ended
            lines: list[bytes] = []
            for change in self.store.since(watch.kind, watch.revision):
                if namespace in ("", change.current["metadata"].get("namespace")):
                    lines += _event(change, matches)
            watch.revision = self.store.revision
            if watch.bookmark:
                lines.append(_bookmark(watch.kind, watch.revision))
                self.bookmarks += 1
            lines += watch.raw
            watch.bookmark, watch.raw = False, []
            if lines:
                await watch.response.write(b"".join(lines))
            if ended:
                return
            try:
                await asyncio.wait_for(tick.wait(), self.bookmark_every_s)
            except TimeoutError:
                watch.bookmark = True
        await self._stopped.wait()


def _event(change: Change, matches: Matches) -> list[bytes]:
    """Return the event of a change for one watch: an object that leaves its selector is deleted for it."""
    before = change.previous is not None and matches(change.previous)
    after = not change.deleted and matches(change.current)
    match before, after:
        case False, False:
            return []
        case False, True:
            return [_line("ADDED", change.current)]
        case True, True:
            return [_line("MODIFIED", change.current)]
        case _:
            last = {**(change.previous or change.current)}
            last["metadata"] = {**last["metadata"], "resourceVersion": str(change.revision)}
            return [_line("DELETED", last)]


def _line(kind: str, value: Object) -> bytes:
    return json.dumps({"type": kind, "object": value}).encode() + b"\n"


def _bookmark(kind: Kind, revision: int) -> bytes:
    metadata = {"resourceVersion": str(revision), "creationTimestamp": None}
    return _line("BOOKMARK", {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata})
