"""How long prepare and unprepare take over the kubelet's socket, with few and with many claims prepared.

A real plugin process, real sockets and files, and the API server of the tests, which answers the claim's GET.
With `--example`, upstream's example driver (kubernetes-sigs/dra-example-driver) is called by the same client in
the same run, call by call in turn, so that a noisy machine disturbs both alike.
It neither syncs its files nor checks whether a device is held already; its checkpoint is one file for all claims.
"""

import argparse
import asyncio
import contextlib
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.argument import find_program, parse_count
from benchmarks.profile import write_profile
from benchmarks.report import Cell, percentile, render_table
from benchmarks.usage import read_cpu_s, read_memory_kib
from dra_driver.api.resource_v1 import DeviceRequestAllocationResult
from dra_driver.devices.simulated.profile import MAX_DEVICES
from kubeletplugin.prepare.record import ClaimRef
from tests.support.api_server import Request, TestApiServer
from tests.support.builder import NODE, a_claim, a_ref, a_result, a_share
from tests.support.claim import put_claim
from tests.support.kubelet import Kubelet
from tests.support.plugin import PluginNode
from tests.support.wait import until

LOADS = (1, 200, 1000)
SHARES = 10
MOST = (MAX_DEVICES - 1) * SHARES
OPERATIONS = ("prepare", "unprepare")
OURS = "dra-driver"
EXAMPLE = "example driver"
_EXAMPLE_DRIVER = "gpu.example.com"
_UNLIMITED = 10_000
_CHUNK = 50


@dataclass(slots=True)
class Contender:
    """A plugin process that runs, its claims, and the milliseconds of its calls by operation and load.

    `cpu` is what the process used of its cores meanwhile: a busy machine changes it less.
    """

    name: str
    pid: int
    registrar: Path
    start_s: float
    held: list[ClaimRef] = field(default_factory=list)
    timed: list[ClaimRef] = field(default_factory=list)
    timings: dict[tuple[str, int], list[float]] = field(default_factory=dict)
    cpu: dict[tuple[str, int], list[float]] = field(default_factory=dict)
    memory_kib: int = 0

    async def measure(self, kubelet: Kubelet, load: int) -> None:
        """Prepare and unprepare one claim more."""
        for operation, call in (("prepare", kubelet.prepare), ("unprepare", kubelet.unprepare)):
            (ref,) = self.timed
            started, used = time.perf_counter(), read_cpu_s(self.pid)
            answers = await call(ref)
            self.timings.setdefault((operation, load), []).append((time.perf_counter() - started) * 1000)
            self.cpu.setdefault((operation, load), []).append((read_cpu_s(self.pid) - used) * 1000)
            if error := answers[ref.uid].error:
                raise RuntimeError(f"{self.name}: {error}")


async def measure(folder: Path, *, loads: Sequence[int], rounds: int, example: Path | None) -> list[Contender]:
    """Return what was measured of each."""
    async with TestApiServer() as server, contextlib.AsyncExitStack() as running:
        contenders = [await running.enter_async_context(_our_plugin(folder, server, most=max(loads)))]
        if example is not None:
            contenders.append(await running.enter_async_context(_example(folder, server, example, most=max(loads))))
        kubelets = [await running.enter_async_context(Kubelet.registered(each.registrar)) for each in contenders]
        pairs = list(zip(contenders, kubelets, strict=True))
        prepared = 0
        for load in sorted(loads):
            for contender, kubelet in pairs:
                await _hold(kubelet, contender.held[prepared:load])
            prepared = load
            for _ in range(rounds):
                for contender, kubelet in pairs:
                    await contender.measure(kubelet, load)
        for contender in contenders:
            contender.memory_kib = read_memory_kib(contender.pid)
    return contenders


async def _hold(kubelet: Kubelet, refs: Sequence[ClaimRef]) -> None:
    for first in range(0, len(refs), _CHUNK):
        answers = await kubelet.prepare(*refs[first : first + _CHUNK])
        if errors := {answer.error for answer in answers.values()} - {""}:
            raise RuntimeError("; ".join(sorted(errors)))


@contextlib.asynccontextmanager
async def _our_plugin(folder: Path, server: TestApiServer, *, most: int) -> AsyncIterator[Contender]:
    devices = (most + SHARES - 1) // SHARES + 1
    node = PluginNode(folder, server, profile=str(write_profile(folder, devices)))
    started = time.perf_counter()
    plugin = await node.start(discovery_interval=5)
    try:
        await _first_slice(server)
        start_s = time.perf_counter() - started
        await plugin.published()
        *shared, alone = node.devices()
        contender = Contender(OURS, plugin.pid, node.registrar, start_s)
        shares = [a_share(shared[index // SHARES], f"s{index}") for index in range(most)]
        contender.held = [_put_claim(server, f"ours-{index}", share) for index, share in enumerate(shares)]
        contender.timed = [_put_claim(server, "ours", a_result(alone))]
        yield contender
    finally:
        await plugin.terminate()


@contextlib.asynccontextmanager
async def _example(folder: Path, server: TestApiServer, program: Path, *, most: int) -> AsyncIterator[Contender]:
    registry, plugins = folder / "example-registry", folder / "example-plugins"
    for each in (registry, plugins):
        each.mkdir()
    flags = {
        "node-name": NODE,
        "kubeconfig": folder / "kubeconfig",
        "cdi-root": folder / "example-cdi",
        "kubelet-registrar-directory-path": registry,
        "kubelet-plugins-directory-path": plugins,
        "kube-api-qps": _UNLIMITED,
        "kube-api-burst": _UNLIMITED,
    }
    started = time.perf_counter()
    with (folder / "example.log").open("wb") as log:
        arguments = (f"--{name}={value}" for name, value in flags.items())
        process = await asyncio.create_subprocess_exec(program, *arguments, stdout=log, stderr=log)
    try:
        await _first_slice(server)
        start_s = time.perf_counter() - started
        await until(lambda: list(registry.glob("*.sock")))
        (registrar,) = registry.glob("*.sock")
        contender = Contender(EXAMPLE, process.pid, registrar, start_s)
        result = a_result("gpu-0", driver=_EXAMPLE_DRIVER)
        contender.held = [_put_claim(server, f"example-{index}", result) for index in range(most)]
        contender.timed = [_put_claim(server, "example", result)]
        yield contender
    finally:
        process.terminate()
        await process.wait()


async def _first_slice(server: TestApiServer) -> None:
    """Wait until somebody wants to create a slice. The example driver sends protobuf, which this server refuses."""
    server.requests.clear()
    await until(lambda: any(_creates_slice(each) for each in server.requests), within_s=60)


def _creates_slice(request: Request) -> bool:
    return request.method == "POST" and "resourceslices" in request.path and "dryRun" not in request.query


def _put_claim(server: TestApiServer, name: str, result: DeviceRequestAllocationResult) -> ClaimRef:
    return put_claim(server, a_claim(result, ref=a_ref(name=name)))


def render_report(contenders: Sequence[Contender], loads: Sequence[int]) -> str:
    """Render medians and 99th percentiles in milliseconds, how they grow, and how they compare."""
    rows: list[list[Cell]] = []
    for operation in OPERATIONS:
        for load in loads:
            for each in contenders:
                values, few = each.timings[operation, load], each.timings[operation, loads[0]]
                median = statistics.median(values)
                cpu = statistics.median(each.cpu[operation, load])
                row: list[Cell] = [operation, load, each.name, cpu, median, percentile(values, 99)]
                against = statistics.median(contenders[-1].timings[operation, load])
                rows.append([*row, median / statistics.median(few), median / against])
    columns = ("operation", "prepared", "driver", "CPU ms", "p50 ms", "p99 ms")
    titles = (*columns, f"p50 / at {loads[0]}", f"/ {contenders[-1].name}")
    table = render_table(titles, rows)
    lines = (
        f"{each.name}: first slice sent after {each.start_s:.2f} s, {each.memory_kib / 1024:.0f} MiB at the end\n"
        for each in contenders
    )
    return table + "".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prepare", description=__doc__)
    parser.add_argument(
        "--claims", type=parse_count, nargs="+", default=LOADS, help="how many are prepared (1 200 1000)"
    )
    parser.add_argument("--rounds", type=parse_count, default=300, help="calls of each kind and load (default: 300)")
    parser.add_argument("--example", type=find_program, help="the program dra-example-kubeletplugin")
    options = parser.parse_args()
    loads = sorted(options.claims)
    if loads[-1] > MOST:
        parser.error(f"--claims: {loads}, want numbers from 1 to {MOST}")
    with tempfile.TemporaryDirectory(prefix="dra-") as folder:
        contenders = asyncio.run(measure(Path(folder), loads=loads, rounds=options.rounds, example=options.example))
    sys.stdout.write(render_report(contenders, loads))


if __name__ == "__main__":
    main()
