"""A claim for a whole device, served by the Pods of the chart: the container sees that device and no other."""

from collections.abc import Iterator

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.image import product_image
from tests.cluster.plugin import CHART, DRIVER, NAMESPACE, SERVICE_ACCOUNT
from tests.cluster.scenario import (
    Manifest,
    Workload,
    a_claim,
    a_pod,
    a_request,
    device_of,
    results,
)

RELEASE = "dra-driver"
SHARED = {"/dev/nvidiactl", "/dev/nvidia-uvm"}


@pytest.fixture(scope="module", autouse=True)
def chart(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The chart is installed as its README says, with an image that the nodes have."""
    repository, tag = "test.local/dra-driver", "whole-device"
    cluster.load_image(product_image(tmp_path_factory.mktemp("image"), f"{repository}:{tag}"))
    values = f"simulated.enabled=true,image.repository={repository},image.tag={tag},image.pullPolicy=Never"
    release = (RELEASE, "--namespace", NAMESPACE)
    cluster.helm("install", *release, CHART, "--create-namespace", "--set", values, "--wait", "--timeout=60s")
    try:
        yield
    finally:
        cluster.helm("uninstall", *release, "--wait")
        cluster.wait_for("the plugins to be gone", lambda: not cluster.list("pods", NAMESPACE))
        cluster.kubectl("delete", "resourceslices", "--all")


def devices(cluster: Cluster) -> dict[tuple[str, str], Manifest]:
    """All published devices, by pool and name."""
    specs = [found["spec"] for found in cluster.list("resourceslices")]
    return {(spec["pool"]["name"], each["name"]): each for spec in specs for each in spec.get("devices", ())}


def test_the_plugin_of_every_node_runs_as_its_own_account_and_publishes_its_devices(cluster: Cluster) -> None:
    pods = cluster.list("pods", NAMESPACE)
    assert {pod["spec"]["nodeName"] for pod in pods} == set(cluster.nodes)
    for pod in pods:
        assert pod["spec"]["serviceAccountName"] == SERVICE_ACCOUNT
        assert pod["status"]["containerStatuses"][0]["restartCount"] == 0
    found = devices(cluster)
    assert len(found) == 16
    assert {pool for pool, _ in found} == set(cluster.nodes)


def test_the_plugin_of_every_node_hears_from_its_kubelet_what_pods_hold(cluster: Cluster) -> None:
    for pod in cluster.list("pods", NAMESPACE):
        log = cluster.pod_logs(pod["metadata"]["name"], NAMESPACE)
        assert "pool published" in log
        assert "pods' devices not known" not in log


def test_a_selector_picks_the_device_and_the_container_sees_nothing_of_the_others(
    cluster: Cluster, workload: Workload
) -> None:
    own = f'device.attributes["{DRIVER}"]'
    expression = f'{own}.model == "H100" && {own}.index == 5'
    workload.run(
        a_claim("sixth", a_request("device", "gpu.dra-driver.io", expression)),
        a_pod("sixth", "sixth", node="node-b"),
        a_pod("plain", node="node-b"),
    )
    pool, device = device_of(workload.claim("sixth"))
    published = {
        name: next(iter(typed.values())) for name, typed in devices(cluster)[pool, device]["attributes"].items()
    }
    assert (pool, published["index"]) == ("node-b", 5)

    view = workload.see("sixth").beyond(workload.see("plain"))
    assert set(view.devices) == {f"/dev/nvidia{published['minor']}", *SHARED}
    assert view.environment == {
        "NVIDIA_VISIBLE_DEVICES": "void",
        f"SIMULATED_DEVICE_{device.upper().replace('-', '_')}": published["uuid"],
    }
    info = f"/run/simulated-devices/{device}.json"
    assert set(view.mounts) == {info}
    assert {"ro", "nosuid", "nodev", "noexec"} <= set(view.mounts[info])


def open_device(workload: Workload, pod: str, path: str) -> str:
    """Say how the kernel answers a container that opens a device node."""
    return workload.exec(pod, f"(: <{path}) 2>&1 || true").rpartition(": ")[2].strip()


def test_the_device_cgroup_lets_a_container_use_its_own_device_only(workload: Workload) -> None:
    names = ("one", "other")
    workload.run(
        *(a_claim(name) for name in names),
        *(a_pod(name, name, node="node-a") for name in names),
        a_pod("plain", node="node-a"),
    )
    plain = workload.see("plain")
    one, other = (
        {path: at for path, at in workload.see(name).beyond(plain).devices.items() if path not in SHARED}
        for name in names
    )
    [(path, own)], [(_, foreign)] = one.items(), other.items()
    assert own != foreign
    # Behind the numbers is no driver, so this is as far as one gets once the cgroup has agreed.
    assert open_device(workload, "one", path) == "No such device or address"
    for name, (major, minor) in (("own", own), ("foreign", foreign)):
        workload.exec("one", f"mknod /tmp/{name} c {major} {minor}")
    assert open_device(workload, "one", "/tmp/own") == "No such device or address"
    assert open_device(workload, "one", "/tmp/foreign") == "Operation not permitted"


def test_two_devices_of_one_claim_are_both_seen(workload: Workload) -> None:
    workload.run(
        a_claim("pair", a_request("device", "gpu.dra-driver.io", count=2)), a_pod("pair", "pair"), a_pod("plain")
    )
    view = workload.see("pair").beyond(workload.see("plain"))
    found = {result["device"] for result in results(workload.claim("pair"))}
    assert len(found) == 2
    assert len(set(view.devices) - SHARED) == 2
    assert set(view.mounts) == {f"/run/simulated-devices/{device}.json" for device in found}
