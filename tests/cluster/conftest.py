"""Clusters for the tests of this folder, and what to show when one fails."""

import os
import shutil
import sys
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.scenario import Workload

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


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and "cluster" in getattr(item, "fixturenames", ()):
        for cluster in _running:
            report.sections.append(("cluster", cluster.describe()))
            report.sections.append(("logs of the cluster", cluster.tails()))
    return report
