"""Faults that the API server of the tests can be told to make."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from aiohttp import web

Action = Literal["status", "hang", "reset", "delay", "lose"]


@dataclass(slots=True)
class Fault:
    """Spoils the next `times` requests whose path contains `path` and whose method is `method` (any if empty).

    `watch` narrows it to watches (True) or to everything else (False), `query` to requests with that parameter.
    `delay` answers as usual once `released` is set, `lose` does what is asked and then cuts the connection, `reset`
    only cuts it, `hang` never answers.
    """

    action: Action
    path: str = ""
    method: str = ""
    watch: bool | None = None
    query: str = ""
    times: int = 1
    status: int = 503
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    released: asyncio.Event = field(default_factory=asyncio.Event)

    def matches(self, request: web.Request) -> bool:
        return (
            self.times > 0
            and self.path in request.path
            and self.method in ("", request.method)
            and self.watch in (None, "watch" in request.query)
            and (not self.query or self.query in request.query)
        )


async def commit(fault: Fault, request: web.Request, stopped: asyncio.Event) -> web.StreamResponse | None:
    """Do what the fault says; None lets the server answer after all."""
    fault.times -= 1
    match fault.action:
        case "status":
            if isinstance(fault.body, bytes):
                return web.Response(status=fault.status, headers=fault.headers, body=fault.body)
            body = fault.body or {"kind": "Status", "status": "Failure", "message": "injected", "code": fault.status}
            return web.json_response(body, status=fault.status, headers=fault.headers)
        case "hang":
            await stopped.wait()
        case "delay":
            await fault.released.wait()
            return None
        case "lose":
            return None
        case "reset":
            if request.transport is not None:
                request.transport.abort()
    return web.Response(status=500)
