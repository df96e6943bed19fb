"""The composition root of the sandbox: API server, control plane and nodes, all in this process.

async with Sandbox(build_nodes(3, ["h100x8", "a100x8"])) as sandbox:
await sandbox.ready()
...  # sandbox.client, or kubectl with sandbox.kubeconfig
"""

import asyncio
import contextlib
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from controller.app import Controller
from controller.setting import Settings as ControllerSettings
from dra_driver.errors import ApiConflictError
from dra_driver.kube.client import ApiClient
from dra_driver.kube.credential import Credential
from dra_driver.kube.resource import DEVICE_CLASSES
from kubeletplugin.setting import DEFAULT_DRIVER
from sandbox.api_server import ApiServer
from sandbox.device_class import build_device_classes
from sandbox.manager.manager import Manager
from sandbox.node.feed import PodFeed
from sandbox.node.node import NodeSettings, SimulatedNode

_CONNECTIONS: Final = 100_000
"""No limit: every node has a watch, which keeps a connection."""

_AT_ONCE: Final = 16
_THREADS: Final = 16
_POLL_S: Final = 0.01
_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz"


def build_nodes(count: int, profiles: Sequence[str] = ("h100x8",)) -> tuple[NodeSettings, ...]:
    """Describe `count` nodes, which have the profiles in turn: `node-a` and so on, beyond 26 `node-000` and so on.

    With many nodes each looks less often for what changes.
    """
    names = [f"node-{_ALPHABET[index] if count <= len(_ALPHABET) else f'{index:03}'}" for index in range(count)]
    slower = max(1.0, count / 20)
    return tuple(
        NodeSettings(
            name=name,
            profile=profiles[index % len(profiles)],
            look_every_s=0.1 * slower,
            discovery_interval_s=2.0 * slower,
        )
        for index, name in enumerate(names)
    )


class Sandbox:
    """A cluster for as long as the block. Objects are in memory, or in the SQLite file `data`.

    `folder` is where the nodes have their files, with a short path, since sockets are in it; without one a temporary
    folder is made, and removed at the end. With `controller` the controller runs, too, and allocates on the nodes that
    have its label.
    """

    def __init__(
        self,
        nodes: Iterable[NodeSettings],
        *,
        data: Path | None = None,
        folder: Path | None = None,
        controller: bool = False,
    ) -> None:
        self._settings = tuple(nodes)
        self._has_controller = controller
        self._data = data
        self._given_folder = folder
        self._stack = AsyncExitStack()
        self._nodes: dict[str, SimulatedNode] = {}

    @property
    def nodes(self) -> Mapping[str, SimulatedNode]:
        """The nodes by name."""
        return self._nodes

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException:
            await self._stack.__aexit__(*sys.exc_info())
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            await self._stack.__aexit__(kind, error, traceback)
        except BaseExceptionGroup as group:
            if group.exceptions != (error,):  # else the block's own error comes out, and not in a group
                raise

    async def _start(self) -> None:
        """Start the parts, those first that others need."""
        stack = self._stack
        self.folder = self._given_folder or stack.enter_context(_temporary_folder())
        self.server = await stack.enter_async_context(ApiServer(self._data))
        self.kubeconfig = self.folder / "kubeconfig"
        await asyncio.to_thread(self.server.kubeconfig, self.kubeconfig)
        credential = await Credential.load(self.kubeconfig)
        credential.configuration.connection_pool_maxsize = _CONNECTIONS
        self.client = await stack.enter_async_context(ApiClient(credential, user_agent="sandbox"))
        executor = stack.enter_context(ThreadPoolExecutor(_THREADS, thread_name_prefix="sandbox"))
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        self.manager = Manager(self.client)
        feed = PodFeed(self.client)
        for work in (self.manager.run(), feed.run()):
            stack.callback(tasks.create_task(work).cancel)
        if self._has_controller:
            stop = asyncio.Event()
            stack.callback(stop.set)
            settings = ControllerSettings(identity="sandbox", leader_elect=False, http_address="127.0.0.1:0")
            tasks.create_task(Controller(settings, self.client).run(stop))
        for each in build_device_classes(DEFAULT_DRIVER):
            with contextlib.suppress(ApiConflictError):
                await self.client.create(DEVICE_CLASSES, each)
        self._nodes = {
            each.name: SimulatedNode(
                each, folder=self.folder / str(index), client=self.client, feed=feed, executor=executor
            )
            for index, each in enumerate(self._settings)
        }
        stack.push_async_callback(self._stop_nodes)
        await self._start_nodes()

    async def _start_nodes(self) -> None:
        turn = asyncio.Semaphore(_AT_ONCE)

        async def start(node: SimulatedNode) -> None:
            async with turn:
                await node.start()

        async with asyncio.TaskGroup() as tasks:
            for node in self._nodes.values():
                tasks.create_task(start(node))

    async def _stop_nodes(self) -> None:
        results = await asyncio.gather(*(node.stop() for node in self._nodes.values()), return_exceptions=True)
        errors = [result for result in results if isinstance(result, Exception)]
        if errors:
            raise ExceptionGroup("nodes ended badly", errors)

    async def ready(self) -> None:
        """Wait until every node's plugin is registered and all its slices are published. Bound it with a timeout."""
        with self.manager.view.slices.subscribe() as subscription:
            while not self._is_published():
                await subscription.next()
        while not all(node.is_registered for node in self._nodes.values()):  # noqa: ASYNC110 - they soon hold
            await asyncio.sleep(_POLL_S)

    def _is_published(self) -> bool:
        published = Counter(slice_.spec.node_name for slice_ in self.manager.view.slices.list())
        wanted = {
            slice_.spec.node_name: slice_.spec.pool.resource_slice_count for slice_ in self.manager.view.slices.list()
        }
        return all(published[name] == wanted.get(name) for name in self._nodes)


@contextlib.contextmanager
def _temporary_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="dra-sandbox-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)
