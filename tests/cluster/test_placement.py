"""The controller and kube-scheduler are of one mind about which Pods a node can take."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from controller.placement import Misfit, Requested, find_misfit
from dra_driver.api.codec import decode
from dra_driver.api.core_v1 import Node, Pod
from dra_driver.api.quantity import Quantity
from tests.cluster.cluster import Cluster
from tests.cluster.image import BUSYBOX
from tests.cluster.scenario import Manifest, Workload

NODE = "node-a"
OTHER = "node-b"
TAINT = "test.local/level=7:NoSchedule"
LABEL = "test.local/size"
EXTENDED = "test.local/nic"


@pytest.fixture(scope="module", autouse=True)
def node(cluster: Cluster) -> Iterator[None]:
    """Make the node one that not every Pod may go to."""
    cluster.kubectl("taint", "node", NODE, TAINT)
    cluster.kubectl("label", "node", NODE, f"{LABEL}=7")
    change_capacity(cluster, "add")
    cluster.wait_for("the resource", lambda: EXTENDED in cluster.get("node", NODE)["status"]["allocatable"])
    yield
    cluster.kubectl("label", "node", NODE, f"{LABEL}-")
    cluster.kubectl("taint", "node", NODE, f"{TAINT}-")
    change_capacity(cluster, "remove")


def change_capacity(cluster: Cluster, operation: str) -> None:
    path = f"/status/capacity/{EXTENDED.replace('/', '~1')}"
    patch = msgspec.json.encode([{"op": operation, "path": path, "value": "2"}]).decode()
    cluster.kubectl("patch", "node", NODE, "--subresource=status", "--type=json", f"--patch={patch}")


def a_container(name: str, requests: Manifest, **fields: Any) -> Manifest:
    resources = {"requests": requests, "limits": {key: value for key, value in requests.items() if "/" in key}}
    return {"name": name, "image": BUSYBOX, "command": ["true"], "resources": resources, **fields}


def a_pod(cpu: str = "0", **spec: Any) -> Manifest:
    """Build a Pod that can go to the node only, and tolerates its taint, if nothing else is said."""
    values: Manifest = {
        "restartPolicy": "Never",
        "tolerations": [{"operator": "Exists"}],
        "containers": [a_container("main", {"cpu": cpu})],
        "terminationGracePeriodSeconds": 0,
    } | spec
    values["nodeSelector"] = {"kubernetes.io/hostname": NODE} | values.get("nodeSelector", {})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "placed"}, "spec": values}


def require(*terms: Manifest) -> Manifest:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


def label(operator: str, *values: str, key: str = LABEL) -> Manifest:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def name(operator: str, value: str) -> Manifest:
    return {"matchFields": [{"key": "metadata.name", "operator": operator, "values": [value]}]}


def sidecar(cpu: str) -> Manifest:
    return a_container("sidecar", {"cpu": cpu}, restartPolicy="Always")


def cases(all_cpu: int) -> Iterator[tuple[str, Manifest]]:
    """Yield Pods for a node with `all_cpu` milli-units of cpu."""

    def milli(amount: int) -> str:
        return f"{amount}m"

    half, most = all_cpu // 2, all_cpu - 200
    yield "nothing", a_pod()
    yield "all of it", a_pod(milli(all_cpu))
    yield "more", a_pod(milli(all_cpu + 1))
    yield "init beside no sidecar", a_pod("100m", initContainers=[a_container("init", {"cpu": milli(all_cpu)})])
    yield "init too large", a_pod("100m", initContainers=[a_container("init", {"cpu": milli(all_cpu + 1)})])
    yield "init beside a sidecar", a_pod(initContainers=[sidecar("300m"), a_container("init", {"cpu": milli(most)})])
    yield "init before a sidecar", a_pod(initContainers=[a_container("init", {"cpu": milli(most)}), sidecar("300m")])
    yield "container and sidecar", a_pod(milli(most), initContainers=[sidecar("300m")])
    yield "sidecar and the rest", a_pod(milli(most), initContainers=[sidecar("200m")])
    yield "pod level", a_pod(milli(half), resources={"requests": {"cpu": milli(all_cpu + 1)}})
    yield "pod level that fits", a_pod(milli(half), resources={"requests": {"cpu": milli(all_cpu)}})
    yield "extended", a_pod(containers=[a_container("main", {EXTENDED: "2"})])
    yield "extended, too many", a_pod(containers=[a_container("main", {EXTENDED: "3"})])
    yield "extended, unknown", a_pod(containers=[a_container("main", {"test.local/none": "1"})])
    yield "not tolerated", a_pod(tolerations=[])
    yield "key", a_pod(tolerations=[{"key": "test.local/level", "operator": "Exists"}])
    yield "value", a_pod(tolerations=[{"key": "test.local/level", "value": "7"}])
    yield "other value", a_pod(tolerations=[{"key": "test.local/level", "value": "8"}])
    yield "other effect", a_pod(tolerations=[{"operator": "Exists", "effect": "NoExecute"}])
    yield "selector", a_pod(nodeSelector={LABEL: "7"})
    yield "other selector", a_pod(nodeSelector={LABEL: "8"})
    yield "selector and no affinity", a_pod(nodeSelector={LABEL: "7"}, affinity=require(label("NotIn", "7")))
    yield "greater", a_pod(affinity=require(label("Gt", "6")))
    yield "not greater", a_pod(affinity=require(label("Gt", "7")))
    yield "less", a_pod(affinity=require(label("Lt", "8")))
    yield "second term", a_pod(affinity=require(label("In", "1", "2"), label("Exists")))
    yield "no label", a_pod(affinity=require(label("DoesNotExist", key="test.local/none")))
    yield "name", a_pod(affinity=require(name("In", NODE)))
    yield "other name", a_pod(affinity=require(name("In", OTHER)))
    yield "not the name", a_pod(affinity=require(name("NotIn", NODE)))
    yield "name and label", a_pod(affinity=require(name("In", NODE) | label("In", "8")))
    yield "empty term", a_pod(affinity=require({}))


def ask_scheduler(cluster: Cluster, workload: Workload, manifest: Manifest) -> tuple[Pod, bool]:
    """Let kube-scheduler decide; return the Pod as stored, not yet on a node, and whether it was placed."""
    workload.apply(manifest)

    def verdict() -> tuple[Manifest, str] | None:
        found = cluster.get("pod", "placed")
        conditions = found["status"].get("conditions", ())
        return next(((found, each["status"]) for each in conditions if each["type"] == "PodScheduled"), None)

    found, status = cluster.wait_for("a verdict", verdict)
    cluster.delete("pod", "placed", force=True)
    pod = decode(msgspec.json.encode(found | {"spec": found["spec"] | {"nodeName": ""}}), Pod)
    return pod, status == "True"


def ask_us(cluster: Cluster, pod: Pod, others: Requested) -> Misfit | None:
    return find_misfit(pod, decode(msgspec.json.encode(cluster.get("node", NODE)), Node), others)


def test_both_think_the_same_of_every_pod(cluster: Cluster, workload: Workload) -> None:
    cpu = Quantity.parse(cluster.get("node", NODE)["status"]["allocatable"]["cpu"]).milli_value()
    different, fitting = [], 0
    for title, manifest in cases(cpu):
        pod, placed = ask_scheduler(cluster, workload, manifest)
        misfit = ask_us(cluster, pod, Requested())
        fitting += placed
        if placed is not (misfit is None):
            different.append((title, placed, misfit))
    assert different == []
    assert fitting >= 15


def test_both_keep_off_a_node_that_is_cordoned(cluster: Cluster, workload: Workload) -> None:
    cluster.kubectl("cordon", NODE)
    try:
        for key, expected in (("node.kubernetes.io/unschedulable", True), ("test.local/other", False)):
            own = {"key": "test.local/level", "operator": "Exists"}
            pod, placed = ask_scheduler(cluster, workload, a_pod(tolerations=[own, {"key": key, "operator": "Exists"}]))
            assert placed is expected is (ask_us(cluster, pod, Requested()) is None)
    finally:
        cluster.kubectl("uncordon", NODE)


def test_both_count_the_pods_that_are_there(cluster: Cluster, workload: Workload) -> None:
    cpu = Quantity.parse(cluster.get("node", NODE)["status"]["allocatable"]["cpu"]).milli_value()
    there = a_pod(f"{cpu - 500}m")
    there["metadata"]["name"] = "there"
    there["spec"]["containers"][0]["command"] = ["sleep", "3600"]
    workload.run(there)
    others = Requested()
    others.add(decode(msgspec.json.encode(cluster.get("pod", "there")), Pod))
    for amount, expected in (("500m", True), ("501m", False)):
        pod, placed = ask_scheduler(cluster, workload, a_pod(amount))
        assert placed is expected is (ask_us(cluster, pod, others) is None)
