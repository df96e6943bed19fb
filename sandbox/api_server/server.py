"""The server: a socket on the loopback, its certificate, its token, and the objects behind."""

import asyncio
import base64
import json
import os
import secrets
import ssl
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Self

from aiohttp import web

from sandbox.api_server import kind as kinds
from sandbox.api_server.api import Api
from sandbox.api_server.apply import APPLIED, forget_applied
from sandbox.api_server.body import MAX_BYTES
from sandbox.api_server.certificate import create_identity
from sandbox.api_server.database import Database
from sandbox.api_server.gate import resolve_gates
from sandbox.api_server.registry import Admission, Registry, Target
from sandbox.api_server.store import Key, Store
from sandbox.api_server.strategies import build_strategies

NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")

_HOST: Final = "127.0.0.1"
_NAMES: Final = (_HOST, "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
_SHUTDOWN_S: Final = 0.1
_BACKLOG: Final = 1024  # hundreds of nodes may connect at once


class ApiServer:
    """`async with ApiServer() as server:` serves at `server.url` until the block ends.

    With `data`, an SQLite file, the objects outlive the server; it is created if it is missing. `feature_gates` are
    those of Kubernetes, over the defaults of 1.37. `admission` functions see what is about to be written, and refuse it
    by raising Refusal. Raises SettingError for an unknown gate, and StateError for a file that cannot be used.
    """

    def __init__(
        self,
        data: Path | None = None,
        feature_gates: Mapping[str, bool] | None = None,
        port: int = 0,
        *,
        admission: Iterable[Admission] = (),
    ) -> None:
        self.port = port
        self.token = secrets.token_urlsafe(32)
        self.feature_gates = resolve_gates(feature_gates or {})
        self._data = data
        self._admission = admission
        self._identity = create_identity(_NAMES)
        self._runner: web.AppRunner | None = None
        self._database: Database | None = None

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self._open)
        app = web.Application(client_max_size=MAX_BYTES)
        app.router.add_route("*", "/{path:.*}", self.api.handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=_SHUTDOWN_S, handler_cancellation=True)
        await self._runner.setup()
        tls = await asyncio.to_thread(_tls_context, self._identity.certificate, self._identity.key)
        site = web.TCPSite(self._runner, _HOST, self.port, ssl_context=tls, backlog=_BACKLOG)
        try:
            await site.start()
        except BaseException:
            await self._close()
            raise
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._close()

    @property
    def url(self) -> str:
        """Where it serves."""
        return f"https://{_HOST}:{self.port}"

    @property
    def ca(self) -> str:
        """The certificate that clients trust, as PEM."""
        return self._identity.ca

    def kubeconfig(self, path: Path) -> Path:
        """Write a kubeconfig of the administrator to `path`, for its owner only; return it."""
        authority = base64.b64encode(self.ca.encode()).decode()
        content: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "sandbox", "cluster": {"server": self.url, "certificate-authority-data": authority}}],
            "users": [{"name": "sandbox", "user": {"token": self.token}}],
            "contexts": [{"name": "sandbox", "context": {"cluster": "sandbox", "user": "sandbox"}}],
            "current-context": "sandbox",
        }
        path.unlink(missing_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            json.dump(content, file, indent=1)
        return path

    def _open(self) -> None:
        store = self._open_store()
        strategies = build_strategies(self.feature_gates)
        registry = Registry(
            store,
            strategies,
            admission=self._admission,
            removed=lambda kind, key: forget_applied(store, kind, key),
        )
        for name in NAMESPACES:
            if store.get(kinds.NAMESPACES, Key("", name)) is None:
                registry.create(Target(kinds.NAMESPACES), {"metadata": {"name": name}})
        served = tuple(kind for kind in kinds.KINDS if kind in strategies)
        self.api = Api(registry, served, token=self.token)

    def _open_store(self) -> Store:
        every_kind = (*kinds.KINDS, APPLIED)
        if self._data is None:
            return Store(every_kind)
        database = Database(self._data)
        store = Store(every_kind, journal=database)
        try:
            database.restore(store)
        except BaseException:
            database.close()
            raise
        self._database = database
        return store

    async def _close(self) -> None:
        self.api.end_watches()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
        if self._database is not None:
            self._database.close()
            self._database = None


def _tls_context(certificate: str, key: str) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    with tempfile.TemporaryDirectory(prefix="sandbox-") as folder:  # the ssl module reads files only
        chain, private = Path(folder) / "tls.crt", Path(folder) / "tls.key"
        chain.write_text(certificate, encoding="ascii")
        private.touch(0o600)
        private.write_text(key, encoding="ascii")
        context.load_cert_chain(chain, private)
    return context
