"""How a whole cluster is decided about: its state built from bytes, then claim after claim, in one process.

40,000 devices on 5,000 nodes, half of them in use: nodes of eight linked devices (some full, some free, some mixed),
nodes with shared devices and nodes with partitions. Each decision looks at all nodes, is written into the state, and
claims of the same kind are released, so that half stays in use. Another process writes the bytes.
"""

import argparse
import gc
import json
import multiprocessing
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count, islice
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from benchmarks.report import Cell, percentile, render_table
from benchmarks.usage import read_memory_kib
from controller.allocator import CelCompiler, Cluster, Placed, SelectorCache
from dra_driver.api.codec import decode
from dra_driver.api.core_v1 import Node
from dra_driver.api.resource_v1 import DeviceClass, ResourceClaim, ResourceSlice

DRIVER = "gpu.example.com"
NODES = 5000
PER_NODE = 8
PAGE = 500
MODELS = ("H100", "H100", "A100", "L40S")
KINDS = (*["linked"] * 7, "shared", "partitioned", "shared")
GPU_SLOTS = (4, 2, 1, 1)
GOAL_BUILD_S, GOAL_BUILD_MB, GOAL_P99_MS, GOAL_RATE = 5, 500, 5, 1000
MIX = {"single": 55, "domain": 15, "share": 20, "partition": 10}
_T = TypeVar("_T")

Raw = dict[str, Any]


def write_fleet(folder: Path, nodes: int) -> None:
    """Write nodes, slices and claims as pages of JSON lists, as an API server gives them."""
    source = random.Random(nodes)  # noqa: S311 - the same fleet in every run
    names = [f"node-{index:05}" for index in range(nodes)]
    kinds = [KINDS[index % len(KINDS)] for index in range(nodes)]
    _write(folder / "nodes", ({"metadata": {"name": name, "labels": {"zone": "a"}}} for name in names))
    slices = (
        slice_
        for index, name in enumerate(names)
        for slice_ in _slices(name, kinds[index], MODELS[index % len(MODELS)])
    )
    _write(folder / "slices", slices)
    claims = (claim for index, name in enumerate(names) for claim in _holders(name, kinds[index], source))
    _write(folder / "claims", claims)


def _write(folder: Path, objects: Iterable[Raw]) -> None:
    folder.mkdir()
    iterator = iter(objects)
    for number in count():
        page = list(islice(iterator, PAGE))
        if not page:
            return
        (folder / f"{number:05}.json").write_text(json.dumps(page), encoding="utf-8")


def _slices(node: str, kind: str, model: str) -> Iterator[Raw]:
    total = 2 if kind == "partitioned" else 1
    spec = {
        "driver": DRIVER,
        "nodeName": node,
        "pool": {"name": node, "generation": 1, "resourceSliceCount": total},
    }
    devices = [_device(node, kind, model, index) for index in range(PER_NODE)]
    yield {"metadata": {"name": f"{node}-{DRIVER}-a"}, "spec": spec | {"devices": devices}}
    if kind == "partitioned":
        sets = [{"name": f"gpu-{gpu}", "counters": {"slots": {"value": "7"}}} for gpu in range(2)]
        yield {"metadata": {"name": f"{node}-{DRIVER}-b"}, "spec": spec | {"sharedCounters": sets}}


def _device(node: str, kind: str, model: str, index: int) -> Raw:
    attributes = {
        "model": {"string": model},
        "type": {"string": kind},
        "uuid": {"string": f"GPU-{node}-{index}"},
        "numa": {"int": index // 4},
        "driverVersion": {"version": "550.54.15"},
        "resource.kubernetes.io/pcieRoot": {"string": f"pci0000:{index:02x}"},
    }
    device: Raw = {"name": f"gpu-{index}", "attributes": attributes, "capacity": {"memory": {"value": "80Gi"}}}
    match kind:
        case "linked":
            attributes["linkDomain"] = {"string": node}
        case "shared":
            device["allowMultipleAllocations"] = True
        case _:
            slots = GPU_SLOTS[index % len(GPU_SLOTS)]
            attributes["slots"] = {"int": slots}
            counters = {"slots": {"value": str(slots)}}
            device["consumesCounters"] = [{"counterSet": f"gpu-{index // len(GPU_SLOTS)}", "counters": counters}]
    return device


def _holders(node: str, kind: str, source: random.Random) -> Iterator[Raw]:
    """Let half of the devices be in use."""
    if kind == "shared":
        for index in source.sample(range(PER_NODE), PER_NODE // 2):
            for share in range(2):
                yield _holder(node, f"share-{index}-{share}", [index], memory="20Gi", share=index * 2 + share)
        return
    if kind == "partitioned":
        yield _holder(node, "partition-0", [0])
        for index in (2, 6, 7):
            yield _holder(node, f"partition-{index}", [index])
        return
    fate = source.random()
    if fate < 0.3:  # noqa: PLR2004 - three in ten are full, three free
        yield _holder(node, "domain", list(range(PER_NODE)))
    elif fate < 0.7:  # noqa: PLR2004 - a share of them
        for index in source.sample(range(PER_NODE), PER_NODE // 2):
            yield _holder(node, f"single-{index}", [index])


def _holder(node: str, name: str, indexes: list[int], memory: str = "", share: int = 0) -> Raw:
    results: list[Raw] = [
        {"request": "main", "driver": DRIVER, "pool": node, "device": f"gpu-{index}"} for index in indexes
    ]
    if memory:
        share_id = f"00000000-0000-4000-8000-{share:012x}"
        results[0] |= {"shareID": share_id, "consumedCapacity": {"memory": memory}}
    return {
        "metadata": {"name": f"{node}-{name}", "namespace": name.partition("-")[0], "uid": f"uid-{node}-{name}"},
        "spec": {"devices": {"requests": [{"name": "main", "exactly": {"deviceClassName": "gpu"}}]}},
        "status": {"allocation": {"devices": {"results": results}}},
    }


@dataclass(slots=True)
class Fleet:
    """The cluster, its nodes, and who holds devices by kind."""

    cluster: Cluster
    nodes: list[str] = field(default_factory=list)
    held: dict[str, list[str]] = field(default_factory=lambda: {kind: [] for kind in MIX})


def build_fleet(folder: Path) -> Fleet:
    """Build the state from bytes, with the pools of every node."""
    numbers = count()
    fleet = Fleet(Cluster(SelectorCache(CelCompiler()), lambda: f"00000000-0000-4000-9000-{next(numbers):012x}"))
    cluster = fleet.cluster
    selectors = [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]
    cluster.set_class(decode(json.dumps({"metadata": {"name": "gpu"}, "spec": {"selectors": selectors}}), DeviceClass))
    for node in _read(folder / "nodes", Node):
        cluster.set_node(node)
        fleet.nodes.append(node.metadata.name)
    for slice_ in _read(folder / "slices", ResourceSlice):
        cluster.set_slice(slice_)
    for claim in _read(folder / "claims", ResourceClaim):
        cluster.set_claim(claim)
        fleet.held[claim.metadata.namespace].append(f"{claim.metadata.namespace}/{claim.metadata.name}")
    for name in fleet.nodes:
        cluster.pools(name)
    return fleet


def _read(folder: Path, kind: type[_T]) -> Iterator[_T]:
    for path in sorted(folder.iterdir()):
        yield from decode(path.read_bytes(), tuple[kind, ...])  # type: ignore[valid-type]


def a_claim(kind: str, number: int, source: random.Random) -> ResourceClaim:
    """A claim of a kind; sizes and models vary."""
    attributes, capacity = f'device.attributes["{DRIVER}"]', f'device.capacity["{DRIVER}"]'
    exactly: Raw = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    devices: Raw = {}
    match kind:
        case "single":
            expression = (
                f'{attributes}.type == "linked" && {attributes}.model == "{source.choice(MODELS)}"'
                f' && {capacity}.memory.compareTo(quantity("40Gi")) >= 0'
            )
        case "domain":
            expression = f'{attributes}.type == "linked"'
            exactly["count"] = PER_NODE
            devices["constraints"] = [{"matchAttribute": f"{DRIVER}/linkDomain"}]
        case "share":
            expression = "device.allowMultipleAllocations == true"
            exactly["capacity"] = {"requests": {"memory": source.choice(("10Gi", "20Gi", "40Gi"))}}
        case _:
            slots = source.choice(GPU_SLOTS)
            expression = f'{attributes}.type == "partitioned" && {attributes}.slots == {slots}'
    exactly["selectors"] = [{"cel": {"expression": expression}}]
    devices["requests"] = [{"name": "main", "exactly": exactly}]
    metadata = {"name": f"new-{number}", "namespace": kind, "uid": f"uid-new-{number}"}
    return decode(json.dumps({"metadata": metadata, "spec": {"devices": devices}}), ResourceClaim)


@dataclass(slots=True)
class Decisions:
    """Seconds of each decision by kind, by the clock and of CPU, and those of decisions and updates together."""

    times: dict[str, list[tuple[float, float]]] = field(default_factory=lambda: {kind: [] for kind in MIX})
    unplaced: dict[str, int] = field(default_factory=lambda: dict.fromkeys(MIX, 0))
    total: float = 0.0
    cpu: float = 0.0

    @property
    def all(self) -> list[tuple[float, float]]:
        """All decisions."""
        return [took for times in self.times.values() for took in times]


def decide(fleet: Fleet, claims: int, source: random.Random) -> Decisions:
    """Decide about `claims` claims of the mix, write each into the state and release as many as came."""
    decisions = Decisions()
    kinds = source.choices(list(MIX), list(MIX.values()), k=claims)
    asked = [(kind, a_claim(kind, number, source)) for number, kind in enumerate(kinds)]
    cluster = fleet.cluster
    for kind, claim in asked:
        released = source.randrange(len(fleet.held[kind]))
        used, started = time.process_time(), time.perf_counter()
        placed = cluster.place([claim], fleet.nodes)
        took = (time.perf_counter() - started, time.process_time() - used)
        if isinstance(placed, Placed):
            status = msgspec.structs.replace(claim.status, allocation=placed.answer.results[0])
            cluster.set_claim(msgspec.structs.replace(claim, status=status))
            fleet.held[kind].append(f"{kind}/{claim.metadata.name}")
            fleet.held[kind][released], last = fleet.held[kind][-1], fleet.held[kind][released]
            fleet.held[kind].pop()
            cluster.remove_claim(last)
        else:
            decisions.unplaced[kind] += 1
        decisions.total += time.perf_counter() - started
        decisions.cpu += time.process_time() - used
        decisions.times[kind].append(took)
    return decisions


def render_decisions(decisions: Decisions) -> str:
    """Render p50 and p99 by kind and of all, and claims a second."""
    rows: list[tuple[Cell, ...]] = [
        (kind, len(times), *_figures(times), decisions.unplaced[kind])
        for kind, times in decisions.times.items()
        if times
    ]
    rows.append(("all", len(decisions.all), *_figures(decisions.all), sum(decisions.unplaced.values())))
    p99 = _p99_ms(decisions)
    rate = len(decisions.all) / decisions.total
    return (
        render_table(("kind", "claims", "p50 ms", "p99 ms", "max ms", "CPU p50", "CPU p99", "unplaced"), rows)
        + f"p99 {p99:.2f} ms, goal {GOAL_P99_MS} ms: {_met(p99 < GOAL_P99_MS)}\n"
        + f"{rate:.0f} claims/s with updates ({len(decisions.all) / decisions.cpu:.0f} by CPU time), "
        + f"goal {GOAL_RATE}: {_met(rate >= GOAL_RATE)}\n"
    )


def _figures(times: list[tuple[float, float]]) -> tuple[float, ...]:
    clock, cpu = ([value * 1000 for value in column] for column in zip(*times, strict=True))
    return (statistics.median(clock), percentile(clock, 99), max(clock), statistics.median(cpu), percentile(cpu, 99))


def _p99_ms(decisions: Decisions) -> float:
    return percentile([clock for clock, _ in decisions.all], 99) * 1000


def _met(is_met: bool) -> str:  # noqa: FBT001 - a goal is met or missed
    return "met" if is_met else "missed"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet", description=__doc__)
    parser.add_argument("--nodes", type=int, default=NODES, help="nodes of eight devices (default: 5000)")
    parser.add_argument("--claims", type=int, default=5000, help="decisions (default: 5000)")
    parser.add_argument("--quick", action="store_true", help="500 nodes, 500 claims")
    options = parser.parse_args()
    nodes, claims = (500, 500) if options.quick else (options.nodes, options.claims)
    with tempfile.TemporaryDirectory(prefix="dra-") as folder:
        writer = multiprocessing.get_context("spawn").Process(target=write_fleet, args=(Path(folder), nodes))
        writer.start()
        writer.join()
        before = read_memory_kib(os.getpid()) / 1024
        used, started = time.process_time(), time.perf_counter()
        fleet = build_fleet(Path(folder))
        took, cpu = time.perf_counter() - started, time.process_time() - used
    grown = read_memory_kib(os.getpid()) / 1024 - before
    is_small = took < GOAL_BUILD_S and grown < GOAL_BUILD_MB
    in_use = sum(map(len, fleet.held.values()))
    peak = read_memory_kib(os.getpid(), "VmHWM") / 1024
    sys.stdout.write(
        f"{nodes * PER_NODE} devices on {nodes} nodes, {in_use} claims: state from bytes in {took:.2f} s "
        f"({cpu:.2f} s CPU), {grown:.0f} MB (peak of the process {peak:.0f} MB), "
        f"goal {GOAL_BUILD_S} s and {GOAL_BUILD_MB} MB: {_met(is_small)}\n"
    )
    # What stays for hours need not be searched for garbage again and again.
    gc.collect()
    gc.freeze()
    source = random.Random(claims)  # noqa: S311 - the same claims in every run
    warm_up = decide(fleet, claims // 10, source)
    sys.stdout.write(f"the first {len(warm_up.all)} claims: p99 {_p99_ms(warm_up):.1f} ms\n")
    sys.stdout.write(render_decisions(decide(fleet, claims, source)))


if __name__ == "__main__":
    main()
