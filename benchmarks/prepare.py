"""How long prepare and unprepare take over the kubelet's socket, with few and with many claims prepared.

A real plugin process, real sockets and files, and the API server of the tests, which answers the claim's GET.
The loads take turns in one run, so that a noisy machine disturbs them alike.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from dra_driver.api import codec
from dra_driver.api.resource_v1 import DeviceRequestAllocationResult
from kubeletplugin.prepare.record import ClaimRef
from tests.support.api_server import TestApiServer
from tests.support.builder import a_claim, a_ref, a_result, a_share
from tests.support.kubelet import Kubelet
from tests.support.plugin import PluginNode

FEW = 1
TURNS = 4
SHARES = 2
OPERATIONS = ("prepare", "unprepare")

Timings = dict[tuple[str, int], list[float]]


async def measure(folder: Path, *, many: int, rounds: int) -> tuple[Timings, int]:
    """Return the milliseconds of each call by operation and load, and the plugin's memory in KiB at the end."""
    timings: Timings = {(name, load): [] for name in OPERATIONS for load in (FEW, many)}
    async with TestApiServer() as server:
        sharers = (many + SHARES - 1) // SHARES
        node = PluginNode(folder, server, profile=str(_write_profile(folder, devices=sharers + 1)))
        plugin = await node.start_ready(discovery_interval=5)
        try:
            *shared, alone = node.devices()
            held = [_put_claim(node, index, a_share(shared[index // SHARES], f"s{index}")) for index in range(many)]
            measured = _put_claim(node, many, a_result(alone))
            async with Kubelet.registered(node.registrar) as kubelet:
                for turn in range(TURNS):
                    load = (FEW, many)[turn % 2]
                    await kubelet.prepare(*held[:load])
                    for name, values in (await _measure_calls(kubelet, measured, rounds * 2 // TURNS)).items():
                        timings[name, load] += values
                    await kubelet.unprepare(*held[:load])
            return timings, _memory_kib(plugin.pid)
        finally:
            await plugin.terminate()


async def _measure_calls(kubelet: Kubelet, ref: ClaimRef, rounds: int) -> dict[str, list[float]]:
    timings: dict[str, list[float]] = {name: [] for name in OPERATIONS}
    for _ in range(rounds):
        for name, call in (("prepare", kubelet.prepare), ("unprepare", kubelet.unprepare)):
            started = time.perf_counter()
            answers = await call(ref)
            timings[name].append((time.perf_counter() - started) * 1000)
            if error := answers[ref.uid].error:
                raise RuntimeError(error)
    return timings


def _write_profile(folder: Path, *, devices: int) -> Path:
    path = folder / "many.yaml"
    path.write_text(
        f"description: many\ndevices:\n"
        f"  - {{count: {devices}, vendor: nvidia, type: gpu, model: H100, memory: 80Gi, shareEnforcement: shim}}\n",
        encoding="utf-8",
    )
    return path


def _put_claim(node: PluginNode, index: int, result: DeviceRequestAllocationResult) -> ClaimRef:
    claim = a_claim(result, ref=a_ref(name=f"claim-{index}"))
    metadata = node.server.put("resourceclaims", msgspec.json.decode(codec.encode(claim)))["metadata"]
    return ClaimRef(metadata["namespace"], metadata["name"], metadata["uid"])


def _memory_kib(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))


def render_report(timings: Timings, memory_kib: int, *, many: int) -> str:
    """Render medians, 99th percentiles and ratios."""
    lines = [f"{'operation':<10} {'claims':>6} {'p50 ms':>8} {'p99 ms':>8} {'calls':>6}"]
    for (name, load), values in timings.items():
        p99 = statistics.quantiles(values, n=100)[98]
        lines.append(f"{name:<10} {load:>6} {statistics.median(values):>8.2f} {p99:>8.2f} {len(values):>6}")
    for name in OPERATIONS:
        ratio = statistics.median(timings[name, many]) / statistics.median(timings[name, FEW])
        lines.append(f"{name}: {many} claims / {FEW} claim = {ratio:.2f} (ratio of medians)")
    lines.append(f"memory of the plugin: {memory_kib / 1024:.0f} MiB")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prepare", description=__doc__)
    parser.add_argument("--claims", type=int, default=200, help="how many claims are many (default: 200)")
    parser.add_argument("--rounds", type=int, default=400, help="calls of each kind and load (default: 400)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dra-") as folder:
        timings, memory = asyncio.run(measure(Path(folder), many=options.claims, rounds=options.rounds))
    sys.stdout.write(render_report(timings, memory, many=options.claims))


if __name__ == "__main__":
    main()
