"""The chart, installed with the controller: two replicas run, and its example does what the README says."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.image import BUSYBOX, product_image
from tests.cluster.plugin import CHART, NAMESPACE
from tests.cluster.scenario import held
from tests.cluster.test_examples import README_BLOCK
from tests.support.manifest import EXAMPLES

REFERENCE = "test.local/dra-driver:controller"
NAME = "dra-controller"
LABEL = "dra-driver.io/allocator"
EXAMPLE = EXAMPLES / "controller"
VALUES = {
    "image.repository": REFERENCE.rpartition(":")[0],
    "image.tag": REFERENCE.rpartition(":")[2],
    "image.pullPolicy": "Never",
    "simulated.enabled": "true",
    "simulated.profile": "h100x8",
    "controller.enabled": "true",
}

# On the node that was given, and no gate left.
EXPECTED = re.compile(
    r"\Agates: \nnode-b/(gpu-\w{12})\nnode-b/(?!\1)gpu-\w{12}\n(?s:.*)^SIMULATED_DEVICE_", re.MULTILINE
)


@pytest.fixture
def release(cluster: Cluster, tmp_path: Path) -> Iterator[Cluster]:
    cluster.load_image(product_image(tmp_path, REFERENCE))
    cluster.kubectl("label", "node", "node-b", f"{LABEL}=controller")
    sets = (f"--set={name}={value}" for name, value in VALUES.items())
    flags = ("--namespace", NAMESPACE, "--create-namespace", "--wait", "--timeout=90s")
    try:
        cluster.helm("install", "dra-driver", CHART, *flags, *sets)
        yield cluster
    finally:
        cluster.helm("uninstall", "dra-driver", "--namespace", NAMESPACE, "--wait", "--ignore-not-found")
        cluster.wait_for("its Pods to be gone", lambda: not cluster.list("pods", NAMESPACE))
        cluster.delete("lease", NAME, NAMESPACE)
        cluster.kubectl("delete", "resourceslices", "--all")
        cluster.kubectl("label", "node", "node-b", f"{LABEL}-")


def taints_by_node(cluster: Cluster) -> dict[str, set[str]]:
    return {
        found["spec"]["nodeName"]: {
            f"{taint['key']}={taint['value']}:{taint['effect']}"
            for device in found["spec"]["devices"]
            for taint in device.get("taints", [{"key": "", "value": "", "effect": ""}])
        }
        for found in cluster.list("resourceslices")
    }


def test_an_installed_controller_allocates_on_the_node_that_it_was_given(release: Cluster, tmp_path: Path) -> None:
    assert taints_by_node(release) == {"node-a": {"=:"}, "node-b": {f"{LABEL}=controller:NoSchedule"}}
    pods = release.list("pods", NAMESPACE, f"app.kubernetes.io/name={NAME}")
    assert {pod["spec"]["nodeName"] for pod in pods} == {"node-a", "node-b"}
    names = {pod["metadata"]["name"] for pod in pods}
    release.wait_for("a leader", lambda: release.get("lease", NAME, NAMESPACE)["spec"]["holderIdentity"] in names)

    (tmp_path / "manifest.yaml").write_text((EXAMPLE / "manifest.yaml").read_text().replace("busybox:1", BUSYBOX))
    apply, look, clean = README_BLOCK.findall((EXAMPLE / "README.md").read_text())

    def probe() -> bool:
        output = release.shell(look)
        if not EXPECTED.search(output):
            raise LookupError(output)
        return True

    try:
        release.shell(f"cd {tmp_path}\n{apply}")
        release.wait_for("the README to hold", probe, timeout=20)
    finally:
        release.shell(f"cd {tmp_path}\n{clean}")
    release.wait_for("node-b to hold no claim", lambda: not held(release.nodes["node-b"]))
    for pod in release.list("pods", NAMESPACE):
        assert pod["status"]["containerStatuses"][0]["restartCount"] == 0, json.dumps(pod["status"])


def test_the_label_is_followed_while_the_plugin_runs(release: Cluster) -> None:
    given, own = {f"{LABEL}=controller:NoSchedule"}, {"=:"}
    release.kubectl("label", "node", "node-a", f"{LABEL}=controller")
    release.wait_for("the taint", lambda: taints_by_node(release) == {"node-a": given, "node-b": given})
    release.kubectl("label", "node", "node-a", f"{LABEL}-")
    release.wait_for("no taint", lambda: taints_by_node(release) == {"node-a": own, "node-b": given})
