"""The chart is upgraded to another image while Pods hold devices and others start."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.image import product_image
from tests.cluster.mixture import MIXTURE, PROFILE, assert_each_has_its_own, container_ids, look_at, run_mixture
from tests.cluster.node import Node
from tests.cluster.plugin import CHART, DRIVER, NAMESPACE
from tests.cluster.scenario import Manifest, Workload, a_claim, a_pod, a_request, device_of

REPOSITORY = "test.local/dra-driver"
TAGS = ("before", "after")

# So small that there is room for every Pod that starts during the upgrade.
SMALL = a_request("device", "accelerator.dra-driver.io", capacity={"memory": "1Gi"})


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

    def waiting(self) -> set[str]:
        """Give what keeps containers of plugins from starting."""
        statuses = [
            status
            for pod in self.cluster.list("pods", NAMESPACE)
            for status in pod["status"].get("containerStatuses", ())
        ]
        return {status["state"]["waiting"]["reason"] for status in statuses if "waiting" in status["state"]}

    def wait_for_one_plugin_a_node(self) -> None:
        """Wait until the leaving plugins have left, and nothing of theirs is where the kubelet looks."""

        def is_so() -> bool:
            pods = self.cluster.list("pods", NAMESPACE)
            uids = {pod["metadata"]["uid"]: pod["spec"]["nodeName"] for pod in pods}
            return len(uids) == len(self.cluster.nodes) and all(
                [uid for uid, where in uids.items() if where == name] == self._registered(node)
                for name, node in self.cluster.nodes.items()
            )

        self.cluster.wait_for("one plugin a node", is_so)

    @staticmethod
    def _registered(node: Node) -> list[str]:
        sockets = (node.kubelet_dir / "plugins_registry").glob(f"{DRIVER}-*-reg.sock")
        return [path.name.removeprefix(f"{DRIVER}-").removesuffix("-reg.sock") for path in sockets]

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

    uids = {found["metadata"]["uid"] for found in slices}
    late: dict[str, str] = {}
    numbers = itertools.count()

    def is_done() -> bool:
        """Start a Pod on each node whenever the one before runs, and end that one, until all plugins are new ones."""
        for node in release.cluster.nodes:
            earlier = [name for name, where in late.items() if where == node]
            if not earlier or release.cluster.get("pod", earlier[-1])["status"]["phase"] == "Running":
                name = f"late-{next(numbers)}"
                workload.apply(a_claim(name, SMALL), a_pod(name, name, node=node))
                late[name] = node
                for over in earlier:
                    release.cluster.kubectl("delete", "pod", over, "--wait=false")
                    del late[over]
        assert {found["metadata"]["uid"] for found in release.slices()} == uids
        images = release.images()
        assert all(images.values())  # no node is ever without a plugin that is ready
        return images == {"node-a": {"after"}, "node-b": {"after"}}

    release.cluster.wait_for("the upgrade", is_done)
    for pod in late:
        workload.wait_for_phase(pod, "Running")
        assert workload.see(pod).given == {device_of(workload.claim(pod))[1]}
    assert set(late.values()) == set(release.cluster.nodes)
    assert release.slices() == slices  # not written again, so the same to the resource version
    assert look_at(workload, *MIXTURE) == before
    assert container_ids(workload, *MIXTURE) == containers
    assert_each_has_its_own(workload, *MIXTURE)
    for plugin in release.cluster.list("pods", NAMESPACE):
        assert plugin["status"]["containerStatuses"][0]["restartCount"] == 0
    release.wait_for_one_plugin_a_node()


def test_a_version_that_does_not_start_leaves_the_old_one_at_work(release: Release, workload: Workload) -> None:
    before, containers, slices = run_mixture(workload), container_ids(workload, *MIXTURE), release.slices()
    release.helm("upgrade", "missing")
    release.cluster.wait_for("a plugin that does not start", lambda: release.waiting() == {"ErrImageNeverPull"})
    for node in release.cluster.nodes:
        workload.run(a_claim(f"late-{node}", SMALL), a_pod(f"late-{node}", f"late-{node}", node=node))
    assert release.images() == {"node-a": {"before"}, "node-b": {"before"}}
    release.helm("upgrade", "before")
    release.wait_for_one_plugin_a_node()
    assert release.slices() == slices
    assert look_at(workload, *MIXTURE) == before
    assert container_ids(workload, *MIXTURE) == containers
