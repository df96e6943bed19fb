"""Clusters for the tests of this folder, and what to show when one fails."""

import os
import sys
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster

_FOLDER = Path(__file__).parent
_TEST_TIMEOUT = 300

OneNodeCluster = Callable[[Mapping[str, bool]], AbstractContextManager[Cluster]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    ours = [item for item in items if item.path.is_relative_to(_FOLDER)]
    if ours and (sys.platform != "linux" or os.geteuid() != 0):
        raise pytest.UsageError("tests/cluster: need root on Linux, since they run containers; `make test` does not")
    for item in ours:
        # The fixtures have deadlines of their own: the first one may build the programs, for 12 minutes.
        if not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(_TEST_TIMEOUT, func_only=True))


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


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and "cluster" in getattr(item, "fixturenames", ()):
        for cluster in _running:
            report.sections.append(("cluster", cluster.describe()))
            report.sections.append(("logs of the cluster", cluster.tails()))
    return report
