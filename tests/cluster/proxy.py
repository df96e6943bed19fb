"""A way to the API server on which a test sees every request of one program, and may do something at each of them.

It listens in the control plane's network without TLS and sends on what it gets, with the program's own token. So a
program can be killed exactly after the API server did what it asked, before it hears of it.
"""

import asyncio
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import aiohttp
from aiohttp import web

from tests.cluster.cluster import Cluster
from tests.cluster.control_plane import SERVER

_HOP_BY_HOP = frozenset(("connection", "content-length", "host", "keep-alive", "transfer-encoding", "upgrade"))
_WRITES = frozenset(("POST", "PUT", "PATCH", "DELETE"))
_READY_S = 10.0
_GOODBYE_S = 0.25
"""How long connections over TLS may take to end after their session, as aiohttp advises: nothing tells when."""


@dataclass(frozen=True, slots=True)
class Call:
    """A request that was sent on."""

    method: str
    path: str
    is_watch: bool = False

    @property
    def is_write(self) -> bool:
        return self.method in _WRITES

    @property
    def resource(self) -> str:
        """The plural and the subresource, such as `resourceclaims/status`."""
        parts = self.path.split("/")
        parts = parts[parts.index("namespaces") + 2 :] if "namespaces" in parts[:-2] else parts[-2:]
        return "/".join((parts[0], *parts[2:]))


@dataclass(slots=True)
class Proxy:
    """A running proxy. `after` is called when the API server has answered, before the program gets the answer."""

    port: int = 0
    calls: list[Call] = field(default_factory=list)
    after: Callable[[Call], None] = lambda call: None
    is_cut: bool = False
    """Whether nothing goes through, in either direction. What waits goes on afterwards, as with TCP."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def writes(self) -> list[Call]:
        return [call for call in list(self.calls) if call.is_write]

    async def healed(self) -> None:
        """Wait until the way is not cut."""
        while self.is_cut:  # noqa: ASYNC110 - set by another thread
            await asyncio.sleep(0.05)


@contextmanager
def run_proxy(cluster: Cluster) -> Iterator[Proxy]:
    """Serve in a thread that has entered the control plane's network."""
    proxy = Proxy()
    ready = threading.Event()
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()
    tls = ssl.create_default_context(cafile=str(cluster.control_plane.pki.crt("ca")))

    def serve() -> None:
        cluster.namespace.call(lambda: loop.run_until_complete(_serve(proxy, tls, ready, stop)))

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        if not ready.wait(_READY_S):
            raise TimeoutError(f"proxy: not ready within {_READY_S:g} s")
        yield proxy
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


async def _serve(proxy: Proxy, tls: ssl.SSLContext, ready: threading.Event, stop: asyncio.Event) -> None:
    connector = aiohttp.TCPConnector(ssl=tls, limit=0)
    async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as session:
        app = web.Application(client_max_size=2**26)
        app.router.add_route("*", "/{path:.*}", _handler(proxy, session))
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        proxy.port = runner.addresses[0][1]
        ready.set()
        await stop.wait()
        await runner.cleanup()
        if left := asyncio.all_tasks() - {asyncio.current_task()}:  # watches, of a program that was killed
            for task in left:
                task.cancel()
            await asyncio.wait(left)
    await asyncio.sleep(_GOODBYE_S)


def _handler(proxy: Proxy, session: aiohttp.ClientSession) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handle(request: web.Request) -> web.StreamResponse:
        await proxy.healed()
        call = Call(request.method, request.path, request.query.get("watch") in ("1", "true"))
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP_BY_HOP}
        timeout = aiohttp.ClientTimeout(total=None)
        async with session.request(
            request.method,
            f"{SERVER}{request.path_qs}",
            headers=headers,
            data=await request.read() or None,
            timeout=timeout,
            allow_redirects=False,
        ) as answer:
            body = b"" if call.is_watch else await answer.read()
            proxy.calls.append(call)
            proxy.after(call)
            await proxy.healed()
            kept = {name: value for name, value in answer.headers.items() if name.lower() not in _HOP_BY_HOP}
            response = web.StreamResponse(status=answer.status, headers=kept)
            with suppress(ConnectionError):  # whoever asked may be gone
                await response.prepare(request)
                await response.write(body)
                if call.is_watch:
                    async for chunk in answer.content.iter_any():
                        await proxy.healed()
                        await response.write(chunk)
                await response.write_eof()
            return response

    return handle
