"""What people and the kubelet ask a process over HTTP: is it alive, is it ready, how is it doing."""

from collections.abc import Awaitable, Callable, Mapping

import structlog
from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from dra_driver.errors import SettingError, explain_os_error

log = structlog.get_logger(__name__)

_LARGEST_PORT = 65535

Check = Callable[[], Awaitable[str | None]]
"""Returns None if all is well, else one line that says what is missing."""


def parse_http_address(text: str) -> tuple[str, int]:
    """Split `host:port`, `:port` or `[v6]:port`. Raises SettingError; the empty host means all addresses."""
    host, separator, port = text.rpartition(":")
    if not separator or not port.isdecimal() or not 0 <= int(port) <= _LARGEST_PORT:
        raise SettingError(f"--http-address: {text!r} is not an address, want host:port, such as ':8080'")
    return host.removeprefix("[").removesuffix("]"), int(port)


async def serve_http(
    address: str, *, registry: CollectorRegistry, alive: Mapping[str, Check], ready: Mapping[str, Check]
) -> web.AppRunner:
    """Serve `/metrics`, `/healthz` (alive) and `/readyz` (ready). The caller ends it with `cleanup()`.

    A failed check answers 503 with one line a check. Raises SettingError if the address cannot be used.
    """
    application = web.Application()
    application.router.add_get("/metrics", _metrics(registry))
    application.router.add_get("/healthz", _checks(alive))
    application.router.add_get("/readyz", _checks(ready))
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    host, port = parse_http_address(address)
    try:
        await web.TCPSite(runner, host or None, port).start()
    except OSError as error:
        await runner.cleanup()
        raise SettingError(f"--http-address: {address!r}: {explain_os_error(error)}") from error
    except UnicodeError as error:
        await runner.cleanup()
        raise SettingError(f"--http-address: {address!r}: no host can have that name") from error
    host, port, *_ = runner.addresses[0]
    log.info("http served", address=f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
    return runner


def _metrics(registry: CollectorRegistry) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(request: web.Request) -> web.Response:
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        return web.Response(body=encode(registry), headers={"Content-Type": content_type})

    return answer


def _checks(checks: Mapping[str, Check]) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(_: web.Request) -> web.Response:
        problems = {name: await check() for name, check in checks.items()}
        lines = [f"{name}: {problem or 'ok'}\n" for name, problem in problems.items()]
        return web.Response(text="".join(lines), status=503 if any(problems.values()) else 200)

    return answer
