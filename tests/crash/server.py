"""The API server of the tests in a process of its own, which does not die with the plugin, and the kubelet's Pods."""

import asyncio
import json
import os
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from dra_driver.api import codec
from dra_driver.api.resource_v1 import ResourceClaim
from sandbox.api_server.kind import Kind
from sandbox.api_server.store import Change
from tests.crash.child import Child
from tests.support.api_server import TestApiServer
from tests.support.builder import NODE


class Server:
    """The server as others see it.

    The only Pods are those of MPS daemons: they run as soon as they are there, and are gone once that is wished.
    """

    def __init__(self, folder: Path) -> None:
        self._claims = list[Any]()
        self._child = Child(lambda channel: asyncio.run(_serve(channel, folder)))
        self._child.ask("ready")

    def keep(self, claims: Iterable[ResourceClaim]) -> None:
        """Have these claims after each `reset`, beside the Node."""
        self._claims = [msgspec.json.decode(codec.encode(claim)) for claim in claims]

    def reset(self) -> None:
        """Forget everything but the Node and the claims."""
        self._child.ask("reset", claims=self._claims)

    def read(self) -> list[Any]:
        """Return all Pods."""
        found: list[Any] = self._child.ask("pods")
        return found

    def replace(self, pods: list[Any]) -> None:
        """Have these Pods and no others."""
        self._child.ask("replace", pods=pods)

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
        pods, loop = server.kinds["pods"], asyncio.get_running_loop()

        def wake(_: Change) -> None:
            loop.call_soon(_run_pods, server)

        server.store.listen(pods, wake)
        while line := await reader.readline():
            command, arguments = json.loads(line)
            answer: Any = None
            if command == "reset":
                _reset(server, arguments["claims"])
            elif command == "delete":
                _delete(server, server.kinds["resourceslices"])
            elif command == "slices":
                answer = server.all("resourceslices")
            elif command == "pods":
                answer = server.all("pods")
            elif command == "replace":
                _delete(server, pods)
                for pod in arguments["pods"]:
                    server.put("pods", pod)
                _run_pods(server)
                await asyncio.sleep(0)  # nothing is done later to a disk that others replace
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


def _run_pods(server: TestApiServer) -> None:
    """Be the kubelet, of which no more is played than what a plugin sees of it."""
    for pod in server.all("pods"):
        metadata = pod["metadata"]
        if "deletionTimestamp" in metadata:
            server.remove("pods", metadata["name"], metadata["namespace"])
            continue
        for volume in pod["spec"]["volumes"]:
            folder = Path(volume["hostPath"]["path"])
            folder.mkdir(parents=True, exist_ok=True)
            if volume["name"] == "pipes" and not (folder / "control").exists():
                os.mkfifo(folder / "control")
        if pod["status"]["phase"] != "Running":
            status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
            server.put("pods", pod | {"status": status})


def _delete(server: TestApiServer, kind: Kind) -> None:
    for stored in server.store.all(kind):
        server.store.delete(kind, stored.key)
