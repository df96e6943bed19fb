"""Thousands of prepares and unprepares over the kubelet's socket, while the plugin is killed at random and restarted.

A killed call is made again with the next process, as the kubelet does.
What must not grow is read before and after: files, partitions, descriptors, memory.
Claims take turns: a whole device, a share, a partition.
"""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from dataclasses import dataclass, fields
from pathlib import Path

import grpc

from benchmarks.argument import parse_count
from benchmarks.report import render_table
from benchmarks.usage import read_memory_kib
from kubeletplugin.prepare.record import ClaimRef
from tests.crash.node import PROFILE
from tests.support.api_server import TestApiServer
from tests.support.builder import a_claim, a_ref, a_result, a_share
from tests.support.claim import put_claim
from tests.support.kubelet import Kubelet
from tests.support.plugin import PluginNode, PluginProcess

_LATEST_KILL_S = 0.01


@dataclass(frozen=True, slots=True)
class Usage:
    """What a node with nothing prepared holds: entries of folders, and what the plugin takes of the system."""

    records: int
    cdi_specs: int
    shim_folders: int
    partitions: int
    all_files: int
    descriptors: int
    memory_kib: int


@dataclass(slots=True)
class Tally:
    """How often things were done."""

    cycles: int = 0
    kills: int = 0
    repeated: int = 0


def read_usage(node: PluginNode, plugin: PluginProcess) -> Usage:
    """Look from outside."""
    process = Path("/proc", str(plugin.pid))
    return Usage(
        records=_count(node.plugin_dir / "claims"),
        cdi_specs=_count(node.cdi_dir),
        shim_folders=_count(node.plugin_dir / "shim"),
        partitions=_count(node.plugin_dir / "simulated" / "partitions"),
        all_files=sum(1 for folder in (node.kubelet_dir, node.cdi_dir) for _ in folder.rglob("*")),
        descriptors=_count(process / "fd"),
        memory_kib=read_memory_kib(plugin.pid),
    )


def _count(folder: Path) -> int:
    return sum(1 for path in folder.iterdir() if not path.name.startswith(".lock")) if folder.is_dir() else 0


class Soak:
    """A node whose plugin does not live long."""

    def __init__(self, node: PluginNode, chance: random.Random, *, kills_every: int) -> None:
        self.node = node
        self.tally = Tally()
        self._chance = chance
        self._kills_every = kills_every
        self._killing: set[asyncio.Task[None]] = set()
        self.plugin: PluginProcess

    async def start(self) -> None:
        """Start the plugin, and see that it serves and has published."""
        self.plugin = await self.node.start_ready(discovery_interval=5)

    async def warm_up(self, refs: list[ClaimRef]) -> None:
        """Do everything once, so that what is made once is there before it is measured."""
        async with Kubelet.registered(self.node.registrar) as kubelet:
            for ref in refs:
                await self._check(kubelet, ref)

    async def run(self, refs: list[ClaimRef], cycles: int) -> None:
        """Prepare and unprepare each claim in turn. Raises RuntimeError if one is refused."""
        while self.tally.cycles < cycles:
            try:
                async with Kubelet.registered(self.node.registrar) as kubelet:
                    while self.tally.cycles < cycles:
                        if self._chance.randrange(self._kills_every) == 0:
                            self._kill_soon()
                        await self._check(kubelet, refs[self.tally.cycles % len(refs)])
                        self.tally.cycles += 1
            except grpc.RpcError:
                self.tally.repeated += 1
                await self.plugin.wait()
                await self.start()
        await asyncio.gather(*self._killing)

    async def _check(self, kubelet: Kubelet, ref: ClaimRef) -> None:
        for call in (kubelet.prepare, kubelet.unprepare):
            if error := (await call(ref))[ref.uid].error:
                raise RuntimeError(error)

    def _kill_soon(self) -> None:
        """Kill it in the middle of what it does next."""
        plugin = self.plugin

        async def kill() -> None:
            await asyncio.sleep(self._chance.uniform(0, _LATEST_KILL_S))
            if not plugin.ended:
                self.tally.kills += 1
                await plugin.kill()

        task = asyncio.create_task(kill())
        self._killing.add(task)
        task.add_done_callback(self._killing.discard)


def _put_claims(node: PluginNode) -> list[ClaimRef]:
    first, second, split, *partitions = node.devices()
    whole = (a_result(first), a_result(split), a_share(second, "share"))
    results = (*whole, *(a_result(each) for each in partitions[:2]))
    return [
        put_claim(node.server, a_claim(result, ref=a_ref(name=f"claim-{index}")))
        for index, result in enumerate(results)
    ]


async def measure(folder: Path, *, cycles: int, kills_every: int, seed: int) -> tuple[Usage, Usage, Tally]:
    """Return what was held before and after, and what was done in between."""
    profile = folder / "profile.yaml"
    profile.write_text(PROFILE, encoding="utf-8")
    async with TestApiServer() as server:
        node = PluginNode(folder, server, profile=str(profile))
        soak = Soak(node, random.Random(seed), kills_every=kills_every)  # noqa: S311 - the same kills in every run
        await soak.start()
        try:
            refs = _put_claims(node)
            await soak.warm_up(refs)
            before = read_usage(node, soak.plugin)
            await soak.run(refs, cycles)
            if soak.plugin.ended:
                await soak.start()
                await soak.warm_up(refs)
            return before, read_usage(node, soak.plugin), soak.tally
        finally:
            for plugin in node.started:
                await plugin.kill()


def main() -> None:
    """Measure and print; fail if anything is left."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument(
        "--cycles", type=parse_count, default=20_000, help="prepares with their unprepares (default: 20000)"
    )
    parser.add_argument(
        "--kills-every", type=parse_count, default=100, help="cycles between two kills, about (default: 100)"
    )
    parser.add_argument("--seed", type=int, default=1, help="another seed kills at other moments (default: 1)")
    options = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="dra-") as folder:
        before, after, tally = asyncio.run(
            measure(Path(folder), cycles=options.cycles, kills_every=options.kills_every, seed=options.seed)
        )
    names = [each.name for each in fields(Usage)]
    rows = [(name.replace("_", " "), getattr(before, name), getattr(after, name)) for name in names]
    sys.stdout.write(render_table(("", "before", "after"), rows))
    sys.stdout.write(
        f"{tally.cycles} cycles, {tally.kills} kills, {tally.repeated} calls made again, "
        f"{time.monotonic() - started:.0f} s\n"
    )
    held = names[: names.index("descriptors")]
    if left := [name for name in held if getattr(after, name) > getattr(before, name)]:
        sys.exit(f"more than before: {', '.join(left)}")


if __name__ == "__main__":
    main()
