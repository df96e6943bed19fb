"""How many Pods a second get devices from the controller, and how long each waits, beside kube-scheduler alone.

On a real Kubernetes whose nodes kwok plays (root, Go; kwok is built the first time), and on the sandbox's API server.
All Pods come at once, which shows the rate; then some come evenly, which shows how long one waits. Each allocator has a
cluster of its own with the same nodes, devices and claims. What creates and watches the Pods runs on the same machine.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

from benchmarks.pod_load import PER_NODE, PodLoad
from benchmarks.report import Cell, percentile, render_table
from benchmarks.usage import read_cpu_s, read_memory_kib
from dra_driver.kube.client import ApiClient
from dra_driver.kube.credential import Credential
from sandbox.api_server import ApiServer
from tests.cluster import program
from tests.cluster.cluster import Cluster
from tests.cluster.controller import CHART_VALUES, ControllerProcess
from tests.cluster.plugin import apply_chart_without_daemonset
from tests.cluster.proxy import Proxy, run_proxy

TITLES = (
    "allocator",
    "pods/s",
    "bound/s",
    "p50 ms",
    "p99 ms",
    "even p50 ms",
    "even p99 ms",
    "cpu ms/pod",
    "requests/pod",
    "MiB",
)
RELEASED = "kube-scheduler, as released"
UNLIMITED = "kube-scheduler, no client limit"
CONTROLLER = "controller"
SANDBOX = "controller, sandbox"

_UNLIMITED_FLAGS = ("--kube-api-qps=5000", "--kube-api-burst=10000")
_COUNTED = 50
_STAGES = (
    "node/fast/node-initialize.yaml",
    "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
    "pod/fast/pod-ready.yaml",
    "pod/fast/pod-delete.yaml",
)


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured: nodes, Pods at once, Pods that come evenly and how many of those a second."""

    nodes: int
    pods: int
    even: int
    rate: float


@dataclass(frozen=True, slots=True)
class Figures:
    """What was measured with one allocator."""

    name: str
    rate: float
    bound_rate: float | None
    waits_s: list[float]
    even_s: list[float]
    cpu_ms: float
    memory_mib: float
    requests: float | None = None

    def row(self) -> list[Cell]:
        """Return the table's row."""
        waits = [percentile(values, percent) * 1000 for values in (self.waits_s, self.even_s) for percent in (50, 99)]
        return [self.name, self.rate, self.bound_rate, *waits, self.cpu_ms, self.requests, self.memory_mib]


@dataclass(frozen=True, slots=True)
class Bench:
    """One allocator on one API server. `start` gives its process, `count` starts it anew behind a proxy that counts."""

    name: str
    kubeconfig: Path
    start: Callable[[], int]
    count: Callable[[], Proxy | None] = lambda: None


async def measure(bench: Bench, size: Size) -> Figures:
    """Make the fleet, start what allocates, and measure."""
    credential = await Credential.load(bench.kubeconfig)
    async with ApiClient(credential, timeout_s=60) as client:
        by_controller = bench.name in (CONTROLLER, SANDBOX)
        load = PodLoad(client, credential, by_controller=by_controller, has_scheduler=bench.name != SANDBOX)
        await load.make_fleet(size.nodes)
        pid = await asyncio.to_thread(bench.start)
        await load.run("warm", _COUNTED)
        before_s = read_cpu_s(pid)
        burst = await load.run("burst", size.pods)
        cpu_ms = (read_cpu_s(pid) - before_s) * 1000 / size.pods
        even = await load.run("even", size.even, rate=size.rate)
        memory = read_memory_kib(pid) / 1024
        requests = None
        proxy = await asyncio.to_thread(bench.count)
        if proxy is not None:
            before = len(proxy.calls)
            await load.run("counted", _COUNTED)
            about = [call for call in proxy.calls[before:] if "/leases/" not in call.path and not call.is_watch]
            requests = len(about) / _COUNTED
        await load.close()
        return Figures(bench.name, burst.rate, burst.bound_rate, burst.waits_s, even.waits_s, cpu_ms, memory, requests)


def measure_on_cluster(name: str, size: Size) -> Figures:
    """Measure on a real Kubernetes of its own."""
    kwok = program.build(program.KWOK) / "kwok"
    flags = () if name == RELEASED else _UNLIMITED_FLAGS
    with ExitStack() as stack:
        cluster = stack.enter_context(Cluster(nodes=(), scheduler_flags=flags))
        admin = cluster.control_plane.admin
        nodes = ("--manage-all-nodes=false", "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake")
        stages = [f"--config={path}" for path in find_stages()]
        command = (str(kwok), f"--kubeconfig={admin}", *nodes, "--node-lease-duration-seconds=200", *stages)
        cluster.processes.start("kwok", cluster.namespace.command(command))
        apply_chart_without_daemonset(cluster, *CHART_VALUES)
        if name == CONTROLLER:
            bench = _bench_of_controller(stack, cluster)
        else:
            bench = Bench(name, admin, lambda: cluster.processes["kube-scheduler"].pid)
        return cluster.namespace.call(lambda: asyncio.run(measure(bench, size)))


def _bench_of_controller(stack: ExitStack, cluster: Cluster) -> Bench:
    flags: dict[str, Any] = {"log_level": "warning", "lease_duration": 15, "renew_deadline": 10, "retry_period": 2}
    controller = ControllerProcess(cluster, **flags)

    def start() -> int:
        stack.enter_context(controller)
        cluster.wait_for("the controller to lead", lambda: controller.is_leading)
        return controller.process.pid

    def count() -> Proxy:
        controller.process.stop()
        proxy = stack.enter_context(run_proxy(cluster))
        counted = ControllerProcess(cluster, 1, server=proxy.url, **flags)
        stack.enter_context(counted)
        cluster.wait_for("the controller to lead", lambda: counted.is_leading)
        return proxy

    return Bench(CONTROLLER, cluster.control_plane.admin, start, count)


def find_stages() -> list[Path]:
    """List the files of kwok's own module that say how it plays nodes and Pods."""
    command = ("go", "mod", "download", "-json", "sigs.k8s.io/kwok")
    told = subprocess.run(command, cwd=program.KWOK.folder, check=True, capture_output=True)  # noqa: S603 - no input
    folder = Path(json.loads(told.stdout)["Dir"]) / "kustomize" / "stage"
    return [folder / part for part in _STAGES]


def measure_on_sandbox(size: Size) -> Figures:
    """Measure on the sandbox's API server, which is a process of its own."""
    with tempfile.TemporaryDirectory(prefix="dra-") as folder, ExitStack() as stack:
        kubeconfig = Path(folder) / "kubeconfig"
        stack.enter_context(_serve_sandbox(kubeconfig))
        flags = ("--no-leader-elect", "--http-address=127.0.0.1:0", "--log-level=warning")

        def start() -> int:
            command = (sys.executable, "-m", "controller", f"--kubeconfig={kubeconfig}", *flags)
            return stack.enter_context(_running(command)).pid

        return asyncio.run(measure(Bench(SANDBOX, kubeconfig, start), size))


@contextmanager
def _running(command: tuple[str, ...]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command)  # noqa: S603 - our own command
    try:
        yield process
    finally:
        process.terminate()
        process.wait(10)


@contextmanager
def _serve_sandbox(kubeconfig: Path) -> Iterator[None]:
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    process = context.Process(target=_serve, args=(kubeconfig, ready), daemon=True)
    process.start()
    try:
        if not ready.wait(60):
            raise TimeoutError("sandbox: not ready within 60 s")
        yield
    finally:
        process.terminate()
        process.join(10)


def _serve(kubeconfig: Path, ready: Event) -> None:
    async def serve() -> None:
        async with ApiServer() as server:
            server.kubeconfig(kubeconfig)
            ready.set()
            await asyncio.Event().wait()

    asyncio.run(serve())


def render_report(figures: list[Figures], size: Size) -> str:
    """Render the table, and the ratios to kube-scheduler."""
    lines = [
        f"{size.nodes} nodes of 8 devices; {size.pods} pods at once, and {size.even} pods at {size.rate:g} a second\n",
        render_table(TITLES, [each.row() for each in figures]),
    ]
    named = {each.name: each for each in figures}
    ours = named.get(CONTROLLER)
    for name in (RELEASED, UNLIMITED):
        other = named.get(name)
        if ours is None or other is None:
            continue
        waits = percentile(other.even_s, 50) / percentile(ours.even_s, 50)
        lines.append(
            f"controller / {name}: {ours.rate / other.rate:.2f} times the pods/s, {waits:.2f} times as quick\n"
        )
    return "".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.controller", description=__doc__)
    parser.add_argument("--nodes", type=int, default=500, help="nodes of 8 devices (default: 500)")
    parser.add_argument("--pods", type=int, default=500, help="pods that come at once (default: 500)")
    parser.add_argument("--even", type=int, default=100, help="pods that come evenly (default: 100)")
    parser.add_argument("--rate", type=float, default=5, help="how many of those a second (default: 5)")
    parser.add_argument("--only", action="append", help="only this allocator, by its name in the table")
    options = parser.parse_args()
    size = Size(options.nodes, options.pods, options.even, options.rate)
    if (wanted := size.pods + size.even + 2 * _COUNTED) > size.nodes * PER_NODE // 2:
        parser.error(f"--nodes: {size.nodes}, want {wanted * 2 // PER_NODE + 1} for that many pods")
    figures = []
    for name in (RELEASED, UNLIMITED, CONTROLLER, SANDBOX):
        if options.only and name not in options.only:
            continue
        if name != SANDBOX and os.geteuid() != 0:
            sys.stderr.write(f"{name}: not measured, want root for a real Kubernetes\n")
            continue
        sys.stderr.write(f"{name}: measuring\n")
        figures.append(measure_on_sandbox(size) if name == SANDBOX else measure_on_cluster(name, size))
    sys.stdout.write(render_report(figures, size))


if __name__ == "__main__":
    main()
