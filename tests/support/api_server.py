"""The sandbox's API server for tests: over HTTP if that will do, with every request on record, and faults on demand.

Objects, lists, watches, patches and refusals are the sandbox's; only what a test does to it stands here.
"""

import asyncio
import copy
import json
import ssl
import uuid
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from aiohttp import web

from sandbox.api_server.api import Api, refuse
from sandbox.api_server.apply import APPLIED
from sandbox.api_server.gate import DEFAULTS
from sandbox.api_server.kind import KINDS, Kind, Object
from sandbox.api_server.metadata import order_metadata
from sandbox.api_server.refusal import Refusal
from sandbox.api_server.registry import DeleteOptions, Registry, Target, full
from sandbox.api_server.store import Change, Key, Store
from sandbox.api_server.strategies import build_strategies
from sandbox.api_server.watch import Watch, error_line
from tests.support.api_fault import Fault, commit

Admission = Callable[[Kind, str, Object], None]

_SHUTDOWN_S = 0.05
_NOW = "2026-01-01T00:00:00Z"
_METHOD: ContextVar[str] = ContextVar("method", default="")


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


class TestApiServer:
    """`async with TestApiServer() as server:` serves at `server.url` until the block ends.

    `stop()` and `start()` take it away and bring it back at the same address, objects kept. With `tokens` a request
    must bear one of them. `admission` functions see every object that is written, with the method of the request, and
    raise `Refusal` to refuse it. `tick` is set by the next change of anything. Namespaces need not exist.
    """

    __test__ = False  # pytest collects classes named Test*

    def __init__(self, *, tls: ssl.SSLContext | None = None) -> None:
        self.store = Store((*KINDS, APPLIED))
        self.kinds = {kind.plural: kind for kind in KINDS}
        self.requests: list[Request] = []
        self.tokens: set[str] | None = None
        self.admission: list[Admission] = []
        self.dropped: list[tuple[str, tuple[str, ...]]] = []
        self.port = 0
        self._strategies = build_strategies(DEFAULTS)
        registry = Registry(self.store, self._strategies, admission=(self._admit,), checks_namespaces=False)
        self._api = Api(registry, KINDS)
        self.tick = asyncio.Event()
        for kind in KINDS:
            self.store.listen(kind, self._wake)
        self._tls = tls
        self._faults: list[Fault] = []
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
        """Create the object, or replace the one of the same name. It gets its defaults, and is not checked."""
        kind, key = self._located(plural, value)
        written = {name: copy.deepcopy(part) for name, part in value.items() if name not in ("kind", "apiVersion")}
        metadata = written["metadata"] | ({"namespace": key.namespace} if key.namespace else {})
        old = self.store.get(kind, key)
        if old is None:
            metadata |= {"uid": str(uuid.uuid4()), "creationTimestamp": _NOW, "generation": 1}
        else:
            before = old.value["metadata"]
            kept = ("uid", "creationTimestamp", "generation", "deletionTimestamp")
            metadata |= {name: before[name] for name in kept if name in before}
            if kind.has_status and "status" not in written and "status" in old.value:
                written["status"] = old.value["status"]
            if written.get("spec") != old.value.get("spec"):
                metadata["generation"] = before.get("generation", 0) + 1
        self._drop(kind, written)
        canonical = self._strategies[kind].canonicalize(written | {"metadata": order_metadata(metadata)}, _NOW)
        return full(kind, self.store.write(kind, key, canonical).value)

    def remove(self, plural: str, name: str, namespace: str = "") -> Object:
        kind = self.kinds[plural]
        stored, _ = self._api.registry.delete(Target(kind, namespace, name), DeleteOptions(grace_period_seconds=0))
        return full(kind, stored.value)

    def all(self, plural: str, namespace: str = "") -> list[Object]:
        kind = self.kinds[plural]
        return [full(kind, copy.deepcopy(stored.value)) for stored in self.store.all(kind, namespace)]

    # Faults.

    def inject(self, fault: Fault) -> Fault:
        self._faults.append(fault)
        return fault

    def drop_fields(self, plural: str, *paths: str) -> None:
        """Drop fields on write, as a feature gate that is off does: `spec.devices.*.taints`."""
        self.dropped += [(plural, tuple(path.split("."))) for path in paths]

    def compact(self) -> None:
        """Forget the past: a watch from before now, and the rest of a list that is being paged, get 410."""
        self.store.resume(self.store.revision + 1)

    @property
    def watches(self) -> int:
        """How many watches are open."""
        return len(self._api.watches)

    @property
    def bookmarks(self) -> int:
        """How many bookmarks were sent on the watches that are open."""
        return sum(watch.bookmarks for watch in self._api.watches)

    @property
    def bookmark_every_s(self) -> float:
        """How often each watch gets one."""
        return self._api.bookmark_every_s

    @bookmark_every_s.setter
    def bookmark_every_s(self, seconds: float) -> None:
        self._api.bookmark_every_s = seconds

    def watches_of(self, plural: str) -> list[Watch]:
        """Return the open watches of a kind."""
        return [watch for watch in self._api.watches if watch.kind.plural == plural]

    def cut_watches(self) -> None:
        """Reset the connection of every watch."""
        for watch in self._api.watches:
            watch.cut()

    def end_watches(self) -> None:
        """End every watch as a server does whose time is over."""
        self._api.end_watches()

    def silence_watches(self) -> None:
        """Leave every open watch connected, and never send on it again."""
        for watch in self._api.watches:
            watch.silent = True

    def send(self, line: bytes) -> None:
        """Send raw bytes on every watch."""
        for watch in self._api.watches:
            watch.send(line)

    def send_error(self, code: int, reason: str = "Expired") -> None:
        """Send an ERROR event on every watch."""
        self.send(error_line(Refusal(code, reason, "too old resource version")))

    def bookmark(self) -> None:
        """Send a bookmark on every watch."""
        for watch in self._api.watches:
            watch.bookmark()

    # Serving.

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        query, headers = dict(request.query), dict(request.headers)
        peer = str(request.transport.get_extra_info("peername")) if request.transport else ""
        self.requests.append(Request(request.method, request.path, query, headers, body, peer))
        fault = next((fault for fault in self._faults if fault.matches(request)), None)
        if fault is not None and (spoilt := await commit(fault, request, self._stopped)) is not None:
            return spoilt
        _METHOD.set(request.method)
        answer = await self._api.handle(request) if self._is_known(request) else _unauthorized()
        if fault is not None and fault.action == "lose" and request.transport is not None:
            request.transport.abort()
        return answer

    def _wake(self, _: Change) -> None:
        """End the waiting for `tick`, which is another one from now on."""
        self.tick.set()
        self.tick = asyncio.Event()

    def _is_known(self, request: web.Request) -> bool:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        return self.tokens is None or (scheme.lower() == "bearer" and token in self.tokens)

    def _admit(self, kind: Kind, operation: str, value: Object) -> None:
        if operation == "DELETE":
            return
        self._drop(kind, value)
        for admit in self.admission:
            admit(kind, _METHOD.get(), full(kind, value))

    def _drop(self, kind: Kind, value: Object) -> None:
        for plural, path in self.dropped:
            if plural == kind.plural:
                _drop(value, path)

    def _located(self, plural: str, value: Object) -> tuple[Kind, Key]:
        kind = self.kinds[plural]
        return kind, Key(value["metadata"].get("namespace", "") if kind.namespaced else "", value["metadata"]["name"])


def _unauthorized() -> web.Response:
    return refuse(Refusal(401, "Unauthorized", "Unauthorized"))


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
