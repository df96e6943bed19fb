"""Starts, awaits and stops the Pods of MPS control daemons through the API server."""

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Final, TypeVar

import structlog

from dra_driver.devices.model import Device
from dra_driver.errors import ApiConflictError, ApiError, ApiNotFoundError, DeviceError, StateError
from dra_driver.file import read_names, remove_directory
from dra_driver.kube.client import ApiClient
from dra_driver.kube.resource import NODES, Selection
from kubeletplugin.sharing.mps_pod import (
    DAEMON_PODS,
    DEVICE_LABEL,
    DaemonPod,
    DaemonSettings,
    build_pod,
    render_pod_name,
    render_selector,
)
from kubeletplugin.sharing.mps_state import DaemonState

log = structlog.get_logger(__name__)

START_S: Final = 30.0
"""How long a daemon may take to start: the kubelet gives a whole prepare 45 s."""

STOP_S: Final = 20.0
POLL_S: Final = 0.2

_T = TypeVar("_T")


class PodDaemons:
    """See `MpsDaemons`: one Pod a device. Called from worker threads, never from that of `loop`."""

    def __init__(  # noqa: PLR0913 - all but two are keywords
        self,
        client: ApiClient,
        settings: DaemonSettings,
        *,
        loop: asyncio.AbstractEventLoop,
        start_s: float = START_S,
        stop_s: float = STOP_S,
        poll_s: float = POLL_S,
    ) -> None:
        self._client = client
        self._settings = settings
        self._loop = loop
        self._start_s = start_s
        self._stop_s = stop_s
        self._poll_s = poll_s

    def start(self, device: Device, backend: str) -> None:
        """See `MpsDaemons.start`. A daemon that runs is left as it is, whichever version of the plugin started it."""
        self._wait(self._start(device, backend))

    def mend(self, device: Device, backend: str) -> None:
        """See `MpsDaemons.mend`."""
        self._wait(self._step(device, backend))

    def stop(self, device: str) -> None:
        """See `MpsDaemons.stop`."""
        self._wait(self._stop(device))

    def remove(self, device: str) -> None:
        """See `MpsDaemons.remove`: its folders, the one that `read_left` finds last."""
        folders = self._settings.folders
        for folder in (folders.memory_of(device), folders.pipes_of(device)):
            try:
                remove_directory(folder)
            except StateError as error:
                log.warning("folder of an MPS daemon not removed", device=device, error=str(error))

    def read_left(self) -> frozenset[str]:
        """See `MpsDaemons.read_left`. The folders of memory tell nothing: simulated nodes of one host share theirs."""
        try:
            return read_names(self._settings.folders.pipes)
        except StateError as error:
            raise DeviceError(f"MPS daemon: {error}") from error

    def read_states(self) -> Mapping[str, DaemonState]:
        """See `MpsDaemons.read_states`."""
        return self._wait(self._read_states())

    def _wait(self, coroutine: Coroutine[None, None, _T]) -> _T:
        try:
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()
        except ApiError as error:
            raise DeviceError(f"MPS daemon: {error}") from error

    async def _start(self, device: Device, backend: str) -> None:
        pod = None
        try:
            async with asyncio.timeout(self._start_s):
                while (pod := await self._step(device, backend)) is None or not pod.ready:  # noqa: ASYNC110 - polled
                    await asyncio.sleep(self._poll_s)
        except TimeoutError as error:
            how = pod.explain() if pod is not None else "another one is ending"
            raise DeviceError(
                f"device {device.name}: MPS daemon {self._subject(device.name)} not ready in {self._start_s:g} s, {how}"
            ) from error

    async def _step(self, device: Device, backend: str) -> DaemonPod | None:
        """Look once, and do what is missing. Returns the Pod as it is, None if it is on its way out."""
        pod = await self._find(device.name)
        if pod is None:
            return await self._create(device, backend)
        if pod.metadata.deletion_timestamp is not None:
            return None
        if pod.ended:
            await self._delete(device.name)
            return None
        return pod

    async def _create(self, device: Device, backend: str) -> DaemonPod | None:
        node = await self._client.get(NODES, self._settings.node_name)
        try:
            return await self._client.create(DAEMON_PODS, build_pod(device, backend, node.metadata.uid, self._settings))
        except ApiConflictError:
            return None

    async def _stop(self, device: str) -> None:
        try:
            async with asyncio.timeout(self._stop_s):
                while (pod := await self._find(device)) is not None:
                    if pod.metadata.deletion_timestamp is None:
                        await self._delete(device)
                    await asyncio.sleep(self._poll_s)
        except TimeoutError as error:
            raise DeviceError(
                f"device {device}: MPS daemon {self._subject(device)} still there after {self._stop_s:g} s"
            ) from error

    async def _find(self, device: str) -> DaemonPod | None:
        name = render_pod_name(device, self._settings.node_name)
        try:
            return await self._client.get(DAEMON_PODS, name, namespace=self._settings.namespace)
        except ApiNotFoundError:
            return None

    async def _delete(self, device: str) -> None:
        name = render_pod_name(device, self._settings.node_name)
        try:
            await self._client.delete(DAEMON_PODS, name, namespace=self._settings.namespace)
        except ApiNotFoundError:
            return

    async def _read_states(self) -> Mapping[str, DaemonState]:
        selector = render_selector(self._settings.node_name)
        selection = Selection(namespace=self._settings.namespace, label_selector=selector)
        found = await self._client.list(DAEMON_PODS, selection)
        states = {pod.metadata.labels.get(DEVICE_LABEL, ""): pod.state for pod in found.items}
        return {device: state for device, state in states.items() if device}

    def _subject(self, device: str) -> str:
        return f"{self._settings.namespace}/{render_pod_name(device, self._settings.node_name)}"
