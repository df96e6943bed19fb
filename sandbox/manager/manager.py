"""The control plane of the sandbox beside its API server: everything that turns a claim's manifest into devices."""

import asyncio

from dra_driver.kube.client import ApiClient
from dra_driver.kube.event import EventRecorder
from sandbox.manager.claim_controller import ClaimController
from sandbox.manager.garbage import GarbageCollector
from sandbox.manager.scheduler import Scheduler
from sandbox.manager.view import ClusterView


class Manager:
    """What kube-controller-manager and kube-scheduler do. Someone runs `run`."""

    def __init__(self, client: ApiClient) -> None:
        self.view = ClusterView(client)
        self._scheduler_events = EventRecorder(client, component="default-scheduler", host="sandbox")
        self._controller_events = EventRecorder(client, component="resource-claim-controller", host="sandbox")
        self._parts = (
            ClaimController(client, self.view, self._controller_events),
            GarbageCollector(client, self.view),
            Scheduler(client, self.view, self._scheduler_events),
        )

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.view.run())
            tasks.create_task(self._scheduler_events.run())
            tasks.create_task(self._controller_events.run())
            for part in self._parts:
                tasks.create_task(part.run())
