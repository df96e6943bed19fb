"""The controller is killed after every write that an allocation takes, before it hears of it, and starts again."""

import signal
from collections.abc import Iterator

import pytest

from tests.cluster.claim_history import ClaimHistory, record_claims
from tests.cluster.cluster import Cluster
from tests.cluster.controller import DEVICE, ControllerProcess, gated, give_nodes, write_fleet_profile
from tests.cluster.plugin import PluginProcess
from tests.cluster.proxy import Call, Proxy, run_proxy
from tests.cluster.scenario import Workload, a_claim, a_pod, a_request, device_of

CLAIMS = ("one", "two")

WRITES = (*["resourceclaims", "resourceclaims/status"] * len(CLAIMS), "pods")
"""What is written for a Pod, in order: protect and allocate each claim, then remove the gate."""


@pytest.fixture(scope="module", autouse=True)
def plugins(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, PluginProcess]]:
    profile = str(write_fleet_profile(tmp_path_factory.mktemp("fleet")))
    with give_nodes(cluster, {"node-a": profile, "node-b": profile}) as plugins:
        yield plugins


@pytest.fixture(scope="module", autouse=True)
def history(cluster: Cluster, plugins: dict[str, PluginProcess]) -> Iterator[ClaimHistory]:
    with record_claims(cluster) as history:
        yield history
        assert history.assert_no_device_was_given_twice() > 0


@pytest.fixture(scope="module")
def proxy(cluster: Cluster) -> Iterator[Proxy]:
    with run_proxy(cluster) as proxy:
        yield proxy


@pytest.fixture
def controller(cluster: Cluster, proxy: Proxy, plugins: dict[str, PluginProcess]) -> Iterator[ControllerProcess]:
    with ControllerProcess(cluster, server=proxy.url) as controller:
        yield controller
        proxy.after = ignore


def ignore(call: Call) -> None:
    """Let the answer through."""


def is_about_pods(call: Call) -> bool:
    return call.is_write and call.resource in WRITES


def kill_after(controller: ControllerProcess, proxy: Proxy, step: int) -> list[str]:
    """Kill the controller when that many writes about Pods are done; returns a list that fills with what they were."""
    seen: list[str] = []

    def look(call: Call) -> None:
        if is_about_pods(call) and len(seen) < step:
            seen.append(call.resource)
            if len(seen) == step:
                controller.process.signal(signal.SIGKILL)

    proxy.after = look
    return seen


def apply_pod(workload: Workload) -> None:
    workload.apply(*(a_claim(name, a_request("device", DEVICE)) for name in CLAIMS), gated(a_pod("pod", *CLAIMS)))


@pytest.mark.parametrize("step", range(1, len(WRITES) + 1))
def test_a_controller_that_was_killed_goes_on_with_what_it_finds(
    workload: Workload, controller: ControllerProcess, proxy: Proxy, step: int
) -> None:
    seen = kill_after(controller, proxy, step)
    apply_pod(workload)
    controller.process.wait(30)
    assert sorted(seen) == sorted(WRITES[:step]) or step < len(WRITES)
    proxy.after = ignore
    controller.start()
    workload.wait_for_phase("pod", "Running")
    devices = {device_of(workload.claim(name)) for name in CLAIMS}
    assert len(devices) == len(CLAIMS)
    assert workload.see("pod").given == {device for _, device in devices}


@pytest.mark.parametrize("step", range(1, len(WRITES)))
def test_nothing_stays_allocated_for_a_pod_that_was_deleted_meanwhile(
    workload: Workload, controller: ControllerProcess, proxy: Proxy, step: int
) -> None:
    kill_after(controller, proxy, step)
    apply_pod(workload)
    controller.process.wait(30)
    proxy.after = ignore
    workload.delete("pod", "pod")
    controller.start()

    def is_free() -> bool:
        return not any("allocation" in workload.claim(name).get("status", {}) for name in CLAIMS)

    workload.cluster.wait_for("the claims to be free", is_free)
    for name in CLAIMS:
        workload.delete("resourceclaim", name)


def test_an_api_server_that_cannot_be_reached_is_waited_for(
    workload: Workload, controller: ControllerProcess, proxy: Proxy
) -> None:
    proxy.is_cut = True
    apply_pod(workload)
    workload.cluster.wait_for("the leadership to be lost", lambda: not controller.is_leading)
    assert not workload.claim("one").get("status")
    proxy.is_cut = False
    workload.wait_for_phase("pod", "Running")
