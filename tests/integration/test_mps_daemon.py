"""Daemon Pods through an API server; a kubelet of the test runs each as a real process, the stand-in's own script."""

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from dra_driver.errors import DeviceError
from kubeletplugin.sharing.mps_daemon import PodDaemons
from kubeletplugin.sharing.mps_edits import CONTAINER_PIPES, MpsFolders
from kubeletplugin.sharing.mps_pod import DaemonSettings
from kubeletplugin.sharing.mps_state import DaemonState
from tests.support.api_server import TestApiServer
from tests.support.builder import NODE, a_device
from tests.support.kube import a_client
from tests.support.wait import until

DEVICE = a_device("GPU-0")
NAMESPACE = "dra-driver"


@dataclass
class Kubelet:
    """Runs the daemons of the API server's Pods: `broken` ones are never ready."""

    server: TestApiServer
    folders: MpsFolders
    broken: bool = False
    processes: dict[str, asyncio.subprocess.Process] = field(default_factory=dict)

    async def run(self) -> None:
        while True:
            for pod in self.server.all("pods"):
                await self._sync(pod)
            await asyncio.sleep(0.01)

    def pipe(self) -> Path:
        return self.folders.pipes_of(DEVICE.name) / "control"

    async def end(self) -> None:
        for process in self.processes.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()

    async def _sync(self, pod: dict[str, Any]) -> None:
        uid, metadata = pod["metadata"]["uid"], pod["metadata"]
        if "deletionTimestamp" in metadata:
            await self._stop(uid)
            self.server.remove("pods", metadata["name"], metadata["namespace"])
        elif uid not in self.processes and not self.broken:
            await self._start(uid, pod)
        elif uid in self.processes and pod["status"]["phase"] == "Pending" and self.pipe().is_fifo():
            status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
            self.server.put("pods", {**pod, "status": status})

    async def _start(self, uid: str, pod: dict[str, Any]) -> None:
        [container] = pod["spec"]["containers"]
        pipes, memory = self.folders.pipes_of(DEVICE.name), self.folders.memory_of(DEVICE.name)
        for folder in (pipes, memory):
            folder.mkdir(parents=True, exist_ok=True)
        places = {CONTAINER_PIPES: pipes, "/dev/shm": memory}
        command = container["command"]
        for inside, outside in places.items():
            command = [part.replace(inside, str(outside)) for part in command]
        self.processes[uid] = await asyncio.create_subprocess_exec(*command, start_new_session=True)

    async def _stop(self, uid: str) -> None:
        if (process := self.processes.pop(uid, None)) is not None:
            process.terminate()
            await process.wait()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


@dataclass
class Bench:
    kubelet: Kubelet
    daemons: PodDaemons

    @property
    def pods(self) -> list[dict[str, Any]]:
        return self.kubelet.server.all("pods")

    async def start(self) -> None:
        await asyncio.to_thread(self.daemons.start, DEVICE, "simulated")

    async def mend(self) -> None:
        await asyncio.to_thread(self.daemons.mend, DEVICE, "simulated")

    async def stop(self) -> None:
        await asyncio.to_thread(self.daemons.stop, DEVICE.name)

    async def remove(self) -> None:
        await asyncio.to_thread(self.daemons.remove, DEVICE.name)

    async def states(self) -> Mapping[str, DaemonState]:
        return await asyncio.to_thread(self.daemons.read_states)


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    folders = MpsFolders(pipes=tmp_path / "pipes", memory=tmp_path / "memory")
    settings = DaemonSettings(namespace=NAMESPACE, node_name=NODE, image="image", folders=folders)
    async with TestApiServer() as server, a_client(server, tmp_path) as client:
        server.put("nodes", {"metadata": {"name": NODE}})
        kubelet = Kubelet(server, folders)
        loop = asyncio.get_running_loop()
        daemons = PodDaemons(client, settings, loop=loop, start_s=5, stop_s=5, poll_s=0.01)
        running = asyncio.create_task(kubelet.run())
        try:
            yield Bench(kubelet, daemons)
        finally:
            running.cancel()
            await asyncio.wait([running])
            await kubelet.end()


async def test_a_daemon_is_there_when_start_returns_and_gone_when_stop_does(bench: Bench) -> None:
    await bench.start()
    assert bench.kubelet.pipe().is_fifo()
    [pod] = bench.pods
    await bench.start()
    assert [each["metadata"]["uid"] for each in bench.pods] == [pod["metadata"]["uid"]]
    assert {name: state.problem for name, state in (await bench.states()).items()} == {DEVICE.name: None}
    await bench.stop()
    assert bench.pods == []
    assert set(bench.daemons.read_left()) == {DEVICE.name}
    await bench.remove()
    assert not bench.daemons.read_left()
    folders = bench.kubelet.folders
    assert [path for folder in (folders.pipes, folders.memory) for path in folder.iterdir()] == []
    await bench.stop()
    await bench.remove()


async def test_two_that_start_a_daemon_at_once_have_one(bench: Bench) -> None:
    await asyncio.gather(bench.start(), bench.start(), bench.start())
    assert len(bench.pods) == 1


async def test_a_daemon_that_was_evicted_is_replaced(bench: Bench) -> None:
    await bench.start()
    [pod] = bench.pods
    bench.kubelet.server.put("pods", {**pod, "status": {"phase": "Failed"}})
    await bench.start()
    [other] = bench.pods
    assert other["metadata"]["uid"] != pod["metadata"]["uid"]


async def test_mending_waits_for_nothing_and_ends_with_a_daemon(bench: Bench) -> None:
    bench.kubelet.broken = True
    await bench.mend()
    [state] = (await bench.states()).values()
    assert state.problem is not None
    bench.kubelet.broken = False
    await until(lambda: bench.kubelet.pipe().is_fifo())
    [pod] = bench.pods
    bench.kubelet.server.put("pods", {**pod, "status": {"phase": "Failed"}})
    await bench.mend()
    await until(lambda: bench.pods == [])
    await bench.mend()
    [other] = bench.pods
    assert other["metadata"]["uid"] != pod["metadata"]["uid"]


async def test_the_memory_that_clients_share_is_open_to_those_that_are_not_root(bench: Bench) -> None:
    await bench.start()
    assert bench.kubelet.folders.memory_of(DEVICE.name).stat().st_mode & 0o7777 == 0o1777


async def test_a_folder_that_cannot_be_removed_stops_nobody(bench: Bench) -> None:
    await bench.start()
    folders = bench.kubelet.folders
    shutil.rmtree(folders.pipes)
    folders.pipes.write_text("no folder")
    await bench.stop()
    await bench.remove()
    assert (bench.pods, folders.memory_of(DEVICE.name).exists()) == ([], False)


async def test_a_daemon_that_never_is_ready_is_an_error_that_says_how_it_is(bench: Bench, tmp_path: Path) -> None:
    bench.kubelet.broken = True
    bench.daemons._start_s = 0.3
    with pytest.raises(
        DeviceError, match=f"device {DEVICE.name}: MPS daemon {NAMESPACE}/mps-daemon-.* not ready in 0.3 s"
    ):
        await bench.start()
    await bench.stop()
    await until(lambda: bench.pods == [])


async def test_an_api_server_that_is_away_is_an_error_of_the_device(bench: Bench) -> None:
    await bench.kubelet.server.stop()
    with pytest.raises(DeviceError, match="MPS daemon: "):
        await bench.stop()
    await bench.kubelet.server.start()
