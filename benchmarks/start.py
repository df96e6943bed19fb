"""How long it takes from the start of a plugin process until its devices are there, and what it needs when idle.

On a real API server (root, Go), where a watch tells when the first slice and when all devices are there. With
`--example`, upstream's example driver (kubernetes-sigs/dra-example-driver) is started in turn with ours, so that a
noisy machine disturbs both alike. Each round starts without slices, so that they have to be made.
Both find the API server as in a Pod: a service account's token, and where the server is in the environment.
"""

import argparse
import asyncio
import compileall
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from benchmarks.argument import find_program, parse_count
from benchmarks.profile import write_profile
from benchmarks.report import Cell, render_table
from benchmarks.usage import read_cpu_s, read_memory_kib
from dra_driver.kube.cache import Cache
from dra_driver.kube.client import ApiClient
from dra_driver.kube.credential import Credential
from dra_driver.kube.resource import RESOURCE_SLICES
from dra_driver.kube.watch import Watch
from tests.cluster.cluster import Cluster
from tests.cluster.image import PROJECT
from tests.cluster.network import SERVICE_ADDRESS
from tests.cluster.process import environment

DEVICES: Final = (1, 8, 120)
NODE: Final = "node-a"
OURS: Final = "dra-driver"
EXAMPLE: Final = "example driver"
TITLES: Final = ("devices", "driver", "first slice s", "all devices s", "cpu s", "rss MiB", "pss MiB")

_PACKAGES: Final = ("cdi", "dra_driver", "kubeletplugin")
_PATIENCE_S: Final = 60
_IDLE_S: Final = 3
_MOUNT: Final = """
folder=/run/secrets/kubernetes.io/serviceaccount
mount -t tmpfs tmpfs /run
mkdir -p $folder
mount --bind "$1" $folder
shift
exec "$@"
"""
_MEASURED: Final = ("first_s", "all_s", "cpu_s", "rss_mib", "pss_mib")


@dataclass(frozen=True, slots=True)
class Contender:
    """A driver. `program` is its command without flags."""

    name: str
    program: tuple[str, ...]

    def command(self, folder: Path, devices: int) -> list[str]:
        """Return the command that starts it with so many devices on a node of its own in `folder`."""
        kubelet = folder / "kubelet"
        (kubelet / "plugins_registry").mkdir(parents=True)
        (kubelet / "plugins").mkdir()
        flags: dict[str, object] = {"node-name": NODE}
        if self.name == OURS:
            flags |= {
                "kubelet-dir": kubelet,
                "cdi-dir": folder / "cdi",
                "backend": "simulated",
                "simulated-profile": write_profile(folder, devices),
                "simulated-dev-dir": folder / "dev",
                "http-address": "127.0.0.1:0",
            }
        else:
            flags |= {
                "num-devices": devices,
                "cdi-root": folder / "cdi",
                "kubelet-registrar-directory-path": kubelet / "plugins_registry",
                "kubelet-plugins-directory-path": kubelet / "plugins",
            }
        return [*self.program, *(f"--{name}={value}" for name, value in flags.items())]


@dataclass(frozen=True, slots=True)
class PodLike:
    """What a Pod gives a process: the folder of a service account, mounted where it belongs, and the environment."""

    service_account: Path

    @contextmanager
    def run(self, command: Sequence[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
        """Run a command until the block ends. What is mounted is seen by that process only."""
        within = ("unshare", "--mount", "sh", "-e", "-c", _MOUNT, "sh", str(self.service_account))
        place = {"KUBERNETES_SERVICE_HOST": SERVICE_ADDRESS, "KUBERNETES_SERVICE_PORT": "443"}
        with log.open("wb") as output:
            process = subprocess.Popen((*within, *command), stdout=output, stderr=output, env=environment(place))  # noqa: S603 - our own command
        try:
            yield process
        except TimeoutError as error:
            error.add_note(log.read_text(errors="replace"))
            raise
        finally:
            process.terminate()
            process.wait(10)


@dataclass(slots=True)
class Figures:
    """What was measured of one driver with one number of devices, once a round."""

    first_s: list[float] = field(default_factory=list)
    all_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    rss_mib: list[float] = field(default_factory=list)
    pss_mib: list[float] = field(default_factory=list)

    @property
    def medians(self) -> list[float]:
        """The medians, in the order of the titles."""
        return [statistics.median(getattr(self, name)) for name in _MEASURED]


class Slices:
    """The slices of the cluster, as a watch tells them."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._cache = Cache(Watch(client, RESOURCE_SLICES))

    async def follow(self) -> None:
        """Watch until cancelled."""
        await self._cache.run()

    async def remove_all(self) -> None:
        """Delete all, and wait until that was seen."""
        await self._cache.synced()
        for item in self._cache.list():
            await self._client.delete(RESOURCE_SLICES, item.metadata.name)
        await self.reach(lambda slices, _: slices == 0)

    async def reach(self, is_reached: Callable[[int, int], bool]) -> float:
        """Wait for numbers of slices and devices, and return when they were seen."""
        with self._cache.subscribe() as changes:
            async with asyncio.timeout(_PATIENCE_S):
                while not is_reached(*self._count()):
                    await changes.next()
                return time.monotonic()

    def _count(self) -> tuple[int, int]:
        found = self._cache.list()
        return len(found), sum(len(item.spec.devices) for item in found)


async def measure(
    kubeconfig: Path, pod: PodLike, contenders: Sequence[Contender], sizes: Sequence[int], rounds: int
) -> dict[tuple[int, str], Figures]:
    """Return what was measured, by number of devices and name."""
    found = {(size, each.name): Figures() for size in sizes for each in contenders}
    credential = await Credential.load(kubeconfig)
    async with ApiClient(credential, user_agent="benchmark") as client:
        slices = Slices(client)
        following = asyncio.create_task(slices.follow())
        for size in sizes:
            for _ in range(rounds):
                for each in contenders:
                    await slices.remove_all()
                    await _measure_one(pod, each, size, slices, found[size, each.name])
        await slices.remove_all()
        following.cancel()
        await asyncio.wait([following])
    return found


async def _measure_one(pod: PodLike, contender: Contender, size: int, slices: Slices, figures: Figures) -> None:
    with tempfile.TemporaryDirectory(prefix="dra-") as name:
        command = contender.command(Path(name), size)
        started_s = time.monotonic()
        with pod.run(command, Path(name) / "log") as process:
            figures.first_s.append(await slices.reach(lambda count, _: count > 0) - started_s)
            figures.all_s.append(await slices.reach(lambda _, devices: devices == size) - started_s)
            await asyncio.sleep(_IDLE_S)
            figures.cpu_s.append(read_cpu_s(process.pid))
            figures.rss_mib.append(read_memory_kib(process.pid) / 1024)
            figures.pss_mib.append(read_memory_kib(process.pid, "Pss", "smaps_rollup") / 1024)


def _write_service_account(cluster: Cluster) -> Path:
    """Write what a Pod finds of a service account that may do everything; the drivers ask for different rights."""
    cluster.kubectl("create", "serviceaccount", "driver")
    cluster.kubectl(
        "create", "clusterrolebinding", "driver", "--clusterrole=cluster-admin", "--serviceaccount=default:driver"
    )
    folder = cluster.folder / "service-account"
    folder.mkdir()
    (folder / "token").write_text(cluster.kubectl("create", "token", "driver"), encoding="utf-8")
    (folder / "ca.crt").write_bytes(cluster.control_plane.pki.crt("ca").read_bytes())
    (folder / "namespace").write_text("default", encoding="utf-8")
    return folder


def render_report(found: Mapping[tuple[int, str], Figures]) -> str:
    """Render the medians, and how ours compare with the example driver's."""
    rows: list[list[Cell]] = []
    for (size, name), figures in found.items():
        rows.append([size, name, *figures.medians])
        ours = found[size, OURS]
        if name != OURS:
            pairs = zip(ours.medians, figures.medians, strict=True)
            rows.append([size, f"{OURS} / {name}", *(mine / theirs for mine, theirs in pairs)])
    return render_table(TITLES, rows)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.start", description=__doc__)
    parser.add_argument(
        "--devices",
        type=parse_count,
        nargs="+",
        default=DEVICES,
        help="how many devices (1 8 120, the most that are simulated)",
    )
    parser.add_argument("--rounds", type=parse_count, default=5, help="starts of each driver and number (default: 5)")
    parser.add_argument("--example", type=find_program, help="the program dra-example-kubeletplugin")
    options = parser.parse_args()
    if os.geteuid() != 0:
        parser.error("not root, want root for a real Kubernetes")
    for package in _PACKAGES:  # as in the image
        compileall.compile_dir(PROJECT / package, quiet=1)
    contenders = [Contender(OURS, (sys.executable, "-m", "kubeletplugin"))]
    if options.example:
        contenders.append(Contender(EXAMPLE, (str(options.example),)))
    with Cluster(nodes=()) as cluster:
        cluster.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
        pod = PodLike(_write_service_account(cluster))
        work = measure(cluster.control_plane.admin, pod, contenders, options.devices, options.rounds)
        found = cluster.namespace.call(lambda: asyncio.run(work))
    sys.stdout.write(render_report(found))


if __name__ == "__main__":
    main()
