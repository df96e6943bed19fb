"""The simulated kubelet: a task a Pod, which prepares its claims, starts its containers, and undoes both at its end."""

import asyncio
import random
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import structlog

from dra_driver.api.meta_v1 import render_time
from dra_driver.errors import ApiError, ApiNotFoundError
from dra_driver.kube.backoff import Backoff
from dra_driver.kube.client import ApiClient, Preconditions
from dra_driver.kube.event import EventRecorder, EventType, reference_to
from sandbox.node.claim_manager import ClaimManager
from sandbox.node.error import NodeError
from sandbox.node.health import DeviceKey, build_allocated_resources
from sandbox.node.health_watch import REOPEN_S, HealthWatch
from sandbox.node.pod import PODS, Pod
from sandbox.node.pod_resource import serve_pod_resources
from sandbox.node.pod_status import Ended, Running, State, Waiting, build_status
from sandbox.node.registration import Registry
from sandbox.node.runtime import Runtime
from sandbox.node.wiper import SliceWiper, wait_for

log = structlog.get_logger(__name__)

_RETRY: Final = Backoff(initial_s=0.1, max_s=5.0)
_API_RETRY: Final = Backoff(initial_s=0.05, max_s=2.0)


@dataclass(slots=True, eq=False)
class _Worker:
    """A Pod on this node, as last seen. `gone` says that the API server has it no more.

    `running_since` is when its containers were started; `health_changed`, that its status does not tell yet how its
    devices are.
    """

    pod: Pod
    gone: bool = False
    running_since: str = ""
    health_changed: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    @property
    def is_ending(self) -> bool:
        return self.gone or self.pod.metadata.deletion_timestamp is not None


class Kubelet:
    """One node's kubelet. It is told of the node's Pods, runs as long as `run` does, and forgets nothing at its end.

    `directory` is its root directory, with `plugins_registry` in it; containers are below `pods`.
    """

    def __init__(  # noqa: PLR0913 - what it works with, by keyword
        self,
        node_name: str,
        *,
        directory: Path,
        cdi_dir: Path,
        client: ApiClient,
        look_every_s: float = 0.2,
        wipe_after_s: float = 30.0,
        reopen_s: float = REOPEN_S,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.node_name = node_name
        self.registry = Registry(
            directory / "plugins_registry", look_every_s=look_every_s, changed=self._drivers_changed
        )
        self.runtime = Runtime(directory / "pods", cdi_dir)
        self.claims = ClaimManager(directory, client, self.registry)
        self._directory = directory
        self._client = client
        self._recorder = EventRecorder(client, component="kubelet", host=node_name)
        self._health = HealthWatch(self.registry, self._health_changed, reopen_s=reopen_s)
        self._wiper = SliceWiper(client, self.registry, node_name, wipe_after_s)
        self._clock = clock
        self._workers: dict[str, _Worker] = {}
        self._tasks: asyncio.TaskGroup | None = None

    async def run(self, started: asyncio.Event) -> None:
        """Run until cancelled; set `started` once it may be told of Pods. Raises NodeError if its state is unusable."""
        await self.claims.read()
        await self._wiper.wipe()
        try:
            async with serve_pod_resources(self._directory), asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                tasks.create_task(self.registry.run())
                tasks.create_task(self._recorder.run())
                tasks.create_task(self._wiper.run())
                tasks.create_task(self._health.run())
                started.set()
        finally:
            self._tasks = None
            self._workers.clear()

    def replace(self, pods: Iterable[Pod]) -> None:
        """Take over all Pods of the node; what is here of any other Pod is undone."""
        listed = {pod.metadata.uid: pod for pod in pods}
        for pod in listed.values():
            self.observe(pod)
        left = self._workers.keys() | self.claims.pods | self.runtime.pods()
        for uid in left - listed.keys():
            self._lose(uid)

    def observe(self, pod: Pod) -> None:
        """Take note of a Pod that is new or has changed."""
        uid = pod.metadata.uid
        worker = self._workers.get(uid)
        if worker is not None:
            worker.pod = pod
            worker.changed.set()
        elif self._tasks is not None:
            worker = self._workers[uid] = _Worker(pod)
            worker.task = self._tasks.create_task(self._work(worker))

    def forget(self, pod: Pod) -> None:
        """Take note that a Pod is gone from the API server, whether or not this node was done with it."""
        if pod.metadata.uid in self._workers:
            self._lose(pod.metadata.uid)

    def _lose(self, uid: str) -> None:
        worker = self._workers.get(uid)
        if worker is not None:
            worker.gone = True
            worker.changed.set()
        elif self._tasks is not None:
            self._tasks.create_task(self._clean(uid))

    def _drivers_changed(self) -> None:
        """Let Pods that wait for a driver try again."""
        self._wiper.changed.set()
        self._health.changed.set()
        for worker in self._workers.values():
            worker.changed.set()

    def _health_changed(self, devices: frozenset[DeviceKey]) -> None:
        """Let Pods that have one of these devices tell so in their status."""
        for uid in self.claims.pods_with(devices):
            if (worker := self._workers.get(uid)) is not None:
                worker.health_changed = True
                worker.changed.set()

    async def _work(self, worker: _Worker) -> None:
        uid = worker.pod.metadata.uid
        try:
            if not worker.pod.is_final and await self._start(worker):
                await self._hold(worker)
            await self._clean(uid)
            await self._finish(worker)
        finally:
            self._workers.pop(uid, None)

    async def _start(self, worker: _Worker) -> bool:
        """Bring a Pod up, however often it takes. Returns whether it is up, or ended before."""
        attempt = 0
        while not worker.is_ending:
            worker.changed.clear()
            pod = worker.pod
            try:
                await self.claims.prepare(pod)
                await asyncio.to_thread(self._start_containers, pod)
            except NodeError as error:
                await self._tell_waiting(worker, error, is_first=attempt == 0)
                await wait_for(worker.changed, _delay_s(_RETRY, attempt))
                attempt += 1
            else:
                return True
        return False

    def _start_containers(self, pod: Pod) -> None:
        """Start the containers that are not there, as after a restart of the kubelet they are."""
        for container in pod.spec.containers:
            if not self.runtime.is_started(pod.metadata.uid, container.name):
                self.runtime.start(pod, container, self.claims.cdi_ids(pod, container))

    async def _tell_waiting(self, worker: _Worker, error: NodeError, *, is_first: bool) -> None:
        log.warning("pod not started", pod=str(worker.pod), node=self.node_name, error=str(error))
        message = f"Failed to prepare dynamic resources: {error}"
        self._recorder.record(
            reference_to(worker.pod), "FailedPrepareDynamicResources", message, type=EventType.WARNING
        )
        if is_first and worker.pod.status.phase != "Running":  # containers that run go on, claims prepared anew or not
            await self._write_status(worker, Waiting())

    async def _hold(self, worker: _Worker) -> None:
        """Wait until the containers of a Pod are to end."""
        pod = worker.pod
        worker.running_since = pod.running_since or self._now()
        if pod.status.phase != "Running":
            log.info("pod started", pod=str(pod), node=self.node_name)
            worker.health_changed = True
        end = None if pod.run_for_s is None else time.monotonic() + pod.run_for_s
        while not worker.is_ending and (end is None or time.monotonic() < end):
            worker.changed.clear()
            if worker.health_changed:
                worker.health_changed = False
                await self._write_status(worker, Running(worker.running_since))
            else:
                await wait_for(worker.changed, None if end is None else end - time.monotonic())

    async def _clean(self, uid: str) -> None:
        """Stop the containers of a Pod and unprepare its claims, however often it takes."""
        attempt = 0
        while True:
            await asyncio.to_thread(self.runtime.stop, uid)
            try:
                await self.claims.unprepare(uid)
            except NodeError as error:
                log.warning("claims not unprepared", pod_uid=uid, node=self.node_name, error=str(error))
                await asyncio.sleep(_delay_s(_RETRY, attempt))
                attempt += 1
            else:
                return

    async def _finish(self, worker: _Worker) -> None:
        """Tell that a Pod has ended, and let it go if that is wanted. A Pod that has ended stays until then."""
        if not worker.gone and not worker.pod.is_final:
            since = worker.pod.status.start_time or self._now()
            await self._write_status(worker, Ended(since, self._now()))
        while not worker.is_ending:
            worker.changed.clear()
            await worker.changed.wait()
        metadata = worker.pod.metadata
        attempt = 0
        while not worker.gone:
            try:
                await self._client.delete(
                    PODS,
                    metadata.name,
                    namespace=metadata.namespace,
                    preconditions=Preconditions(uid=metadata.uid),
                    grace_period_s=0,
                )
            except ApiNotFoundError:
                return
            except ApiError as error:
                log.warning("pod not deleted", pod=str(worker.pod), error=str(error))
                await asyncio.sleep(_delay_s(_API_RETRY, attempt))
                attempt += 1
            else:
                log.info("pod ended", pod=str(worker.pod), node=self.node_name)
                return

    async def _write_status(self, worker: _Worker, state: State) -> None:
        """Write a Pod's status, until it is written or the Pod is gone."""
        attempt = 0
        while not worker.gone:
            pod = worker.pod
            metadata = pod.metadata
            patch = build_status(pod, state, self._now(), self._resources(pod)) | {"metadata": {"uid": metadata.uid}}
            try:
                await self._client.patch(PODS, metadata.name, patch, namespace=metadata.namespace, subresource="status")
            except ApiNotFoundError:
                return
            except ApiError as error:
                log.warning("pod status not written", pod=str(pod), error=str(error))
                await asyncio.sleep(_delay_s(_API_RETRY, attempt))
                attempt += 1
            else:
                return

    def _resources(self, pod: Pod) -> dict[str, list[dict[str, Any]]]:
        """Say how the devices of each container are."""
        try:
            records = self.claims.records_of(pod)
        except NodeError:
            return {}  # a claim is not made yet
        now = time.monotonic()
        return {
            container.name: build_allocated_resources(container, records, self._health.cache, now)
            for container in pod.spec.containers
        }

    def _now(self) -> str:
        return render_time(self._clock())


def _delay_s(backoff: Backoff, attempt: int) -> float:
    return backoff.delay_s(attempt, random.random())  # noqa: S311 - jitter
