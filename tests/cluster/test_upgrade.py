"""The chart is upgraded to another image while Pods hold devices and others start."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.image import product_image
from tests.cluster.mixture import MIXTURE, PROFILE, SHARE, assert_each_has_its_own, container_ids, look_at, run_mixture
from tests.cluster.plugin import CHART, NAMESPACE
from tests.cluster.scenario import Manifest, Workload, a_claim, a_pod

REPOSITORY = "test.local/dra-driver"
TAGS = ("before", "after")


@dataclass(frozen=True, slots=True)
class Release:
    """The chart, installed with an image that is on every node under two tags."""

    cluster: Cluster

    def helm(self, action: str, tag: str, *flags: str) -> None:
        values = {
            "image.repository": REPOSITORY,
            "image.tag": tag,
            "image.pullPolicy": "Never",
            "simulated.enabled": "true",
            "simulated.profile": PROFILE,
        }
        sets = (f"--set={name}={value}" for name, value in values.items())
        self.cluster.helm(action, "dra-driver", CHART, "--namespace", NAMESPACE, *sets, *flags)

    def images(self) -> dict[str, set[str]]:
        """Give the tags of the plugins that are ready, by node."""
        found: dict[str, set[str]] = {node: set() for node in self.cluster.nodes}
        for pod in self.cluster.list("pods", NAMESPACE):
            ready = any(status["ready"] for status in pod["status"].get("containerStatuses", ()))
            if ready and "deletionTimestamp" not in pod["metadata"]:
                found[pod["spec"]["nodeName"]].add(pod["spec"]["containers"][0]["image"].rpartition(":")[2])
        return found

    def slices(self) -> list[Manifest]:
        return self.cluster.list("resourceslices")


@pytest.fixture
def release(cluster: Cluster, tmp_path: Path) -> Iterator[Release]:
    before, after = (f"{REPOSITORY}:{tag}" for tag in TAGS)
    cluster.load_image(product_image(tmp_path, before))
    for node in cluster.nodes.values():
        node.ctr("images", "tag", "--force", before, after)
    release = Release(cluster)
    release.helm("install", "before", "--create-namespace", "--wait", "--timeout=60s")
    try:
        yield release
    finally:
        cluster.helm("uninstall", "dra-driver", "--namespace", NAMESPACE, "--wait")
        cluster.wait_for("the plugins to be gone", lambda: not cluster.list("pods", NAMESPACE))
        cluster.kubectl("delete", "resourceslices", "--all")


@pytest.fixture
def workload(release: Release) -> Iterator[Workload]:
    workload = Workload(release.cluster)
    yield workload
    workload.remove()


def test_an_upgrade_of_the_chart_is_not_felt_by_pods(release: Release, workload: Workload) -> None:
    before, containers, slices = run_mixture(workload), container_ids(workload, *MIXTURE), release.slices()
    assert release.images() == {"node-a": {"before"}, "node-b": {"before"}}
    release.helm("upgrade", "after")

    late: list[str] = []

    def is_done() -> bool:
        """Start a Pod on each node, until the DaemonSet has replaced its Pods."""
        for node in release.cluster.nodes:
            name = f"late-{len(late)}"
            workload.apply(a_claim(name, SHARE), a_pod(name, name, node=node))
            late.append(name)
        assert {found["metadata"]["uid"] for found in release.slices()} == uids
        return release.images() == {"node-a": {"after"}, "node-b": {"after"}}

    uids = {found["metadata"]["uid"] for found in slices}
    release.cluster.wait_for("the upgrade", is_done)
    for pod in late:
        workload.wait_for_phase(pod, "Running")
    assert release.slices() == slices  # not written again, so the same to the resource version
    assert look_at(workload, *MIXTURE) == before
    assert container_ids(workload, *MIXTURE) == containers
    assert_each_has_its_own(workload, *MIXTURE)
    for plugin in release.cluster.list("pods", NAMESPACE):
        assert plugin["status"]["containerStatuses"][0]["restartCount"] == 0
