"""The API server of the tests in a process of its own, which does not die with the plugin."""

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import msgspec

from dra_driver.api import codec
from dra_driver.api.resource_v1 import ResourceClaim
from sandbox.api_server.kind import Kind
from tests.crash.child import Child
from tests.support.api_server import TestApiServer
from tests.support.builder import NODE


class Server:
    """The server as others see it. `claims` are what is there after each `reset`, beside the Node."""

    def __init__(self, folder: Path, claims: list[ResourceClaim]) -> None:
        self._claims = [msgspec.json.decode(codec.encode(claim)) for claim in claims]
        self._child = Child(lambda channel: asyncio.run(_serve(channel, folder)))
        self._child.ask("ready")

    def reset(self) -> None:
        """Forget everything but the Node and the claims."""
        self._child.ask("reset", claims=self._claims)

    def slices(self) -> list[dict[str, Any]]:
        """Return all ResourceSlices."""
        found: list[dict[str, Any]] = self._child.ask("slices")
        return found

    def delete_slices(self) -> None:
        """Delete all ResourceSlices, as the kubelet does when it starts."""
        self._child.ask("delete")

    def close(self) -> None:
        """End it."""
        self._child.close()


async def _serve(channel: socket.socket, folder: Path) -> None:
    reader, writer = await asyncio.open_connection(sock=channel, limit=2**24)
    async with TestApiServer() as server:
        server.kubeconfig(folder / "kubeconfig")
        while line := await reader.readline():
            command, arguments = json.loads(line)
            answer: Any = None
            if command == "reset":
                _reset(server, arguments["claims"])
            elif command == "delete":
                _delete(server, server.kinds["resourceslices"])
            elif command == "slices":
                answer = server.all("resourceslices")
            writer.write(json.dumps(answer).encode() + b"\n")
            await writer.drain()


def _reset(server: TestApiServer, claims: list[dict[str, Any]]) -> None:
    server.requests.clear()
    for kind in server.store:
        _delete(server, kind)
    server.compact()
    server.put("nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
    kind = server.kinds["resourceclaims"]
    for claim in claims:
        server.put("resourceclaims", claim)
        (stored,) = (each for each in server.store.all(kind) if each.key.name == claim["metadata"]["name"])
        metadata = stored.value["metadata"] | {"uid": claim["metadata"]["uid"]}
        server.store.write(kind, stored.key, stored.value | {"metadata": metadata})


def _delete(server: TestApiServer, kind: Kind) -> None:
    for stored in server.store.all(kind):
        server.store.delete(kind, stored.key)
