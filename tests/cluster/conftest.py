"""Clusters for the tests of this folder, and what to show when one fails."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.cluster import program
from tests.cluster.cluster import Cluster
from tests.cluster.scenario import Workload
from tests.support.manifest import CHART, Manifest, parse_manifests

_FOLDER = Path(__file__).parent
_TEST_TIMEOUT = 300

# The programs that are not built here, and the Debian packages that bring them.
_WANTED = {
    "/usr/lib/cni/bridge": "containernetworking-plugins",
    "busybox": "busybox-static",
    "ip": "iproute2",
    "nsenter": "util-linux",
    "openssl": "openssl",
    "runc": "runc",
    "unshare": "util-linux",
}

ENABLED = "simulated.enabled=true"

Helm = Callable[..., "subprocess.CompletedProcess[str]"]
Render = Callable[..., dict[tuple[str, str], Manifest]]
OneNodeCluster = Callable[[Mapping[str, bool]], AbstractContextManager[Cluster]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    ours = [item for item in items if item.path.is_relative_to(_FOLDER)]
    if ours and (problem := _explain_why_not()):
        raise pytest.UsageError(f"tests/cluster: {problem}")
    for item in ours:
        # The fixtures have deadlines of their own: the first one may build the programs, for 12 minutes.
        if not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(_TEST_TIMEOUT, func_only=True))


def _explain_why_not() -> str:
    """Say what this machine lacks, or nothing."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "not root on Linux, want both since containers are run; `make test` wants neither"
    if missing := [name for name in _WANTED if shutil.which(name) is None]:
        return (
            f"{', '.join(missing)}: not on the PATH, want Debian's {', '.join(sorted({_WANTED[n] for n in missing}))}"
        )
    return ""


_running: list[Cluster] = []


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Two nodes, `node-a` and `node-b`, and the feature gates as the release has them. Shared by all tests."""
    with Cluster(nodes=("node-a", "node-b")) as cluster:
        _running.append(cluster)
        yield cluster
        _running.remove(cluster)


@pytest.fixture
def one_node_cluster() -> OneNodeCluster:
    """Make clusters of one node, `node-a`, with other feature gates, as `with` blocks."""
    return lambda feature_gates: Cluster(nodes=("node-a",), feature_gates=feature_gates)


@pytest.fixture
def workload(cluster: Cluster) -> Iterator[Workload]:
    """Apply what a test needs, and take it away afterwards, even if the test has failed."""
    workload = Workload(cluster)
    yield workload
    workload.remove()


@pytest.fixture(scope="session")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Run helm, away from the settings of whoever runs the tests."""
    command = program.build(program.HELM) / "helm"
    home = tmp_path_factory.mktemp("helm")
    environment = {f"HELM_{name}_HOME": str(home) for name in ("CACHE", "CONFIG", "DATA")} | {"HOME": str(home)}

    def run(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            (command, *arguments), env=environment, capture_output=True, text=True, timeout=60, check=False
        )

    return run


@pytest.fixture(scope="session")
def template(helm: Helm) -> Helm:
    def run(*values: str, version: str = "1.37.2", chart: Path = CHART) -> "subprocess.CompletedProcess[str]":
        settings = [part for value in values for part in ("--set", value)]
        return helm("template", "rendered", chart, "--namespace", "dra-driver", "--kube-version", version, *settings)

    return run


@pytest.fixture(scope="session")
def render(template: Helm) -> Render:
    """Render the chart; objects by kind and name."""

    def run(*values: str, version: str = "1.37.2") -> dict[tuple[str, str], Manifest]:
        done = template(ENABLED, *values, version=version)
        assert done.returncode == 0, done.stderr
        manifests = parse_manifests(done.stdout)
        named = {(manifest["kind"], manifest["metadata"]["name"]): manifest for manifest in manifests}
        assert len(named) == len(manifests)
        return named

    return run


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and "cluster" in getattr(item, "fixturenames", ()):
        for cluster in _running:
            report.sections.append(("cluster", cluster.describe()))
            report.sections.append(("logs of the cluster", cluster.tails()))
    return report
