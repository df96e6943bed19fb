"""The controller and kube-scheduler allocate in one cluster at once, each its own nodes' devices."""

from collections.abc import Iterator

import pytest

from tests.cluster.claim_history import record_claims
from tests.cluster.cluster import Cluster
from tests.cluster.controller import ControllerProcess, give_nodes, write_fleet_profile
from tests.cluster.controller_load import a_load, wait_until_done
from tests.cluster.plugin import PluginProcess
from tests.cluster.scenario import Workload, a_claim, a_pod

PODS = 16


@pytest.fixture(scope="module", autouse=True)
def plugins(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, PluginProcess]]:
    """Only node-a is the controller's."""
    profile = str(write_fleet_profile(tmp_path_factory.mktemp("fleet")))
    with (
        give_nodes(cluster, {"node-a": profile, "node-b": profile}, given=["node-a"]) as plugins,
        ControllerProcess(cluster),
    ):
        yield plugins


def test_no_device_is_given_twice_at_any_moment(workload: Workload) -> None:
    with record_claims(workload.cluster) as history:
        workload.apply(
            *a_load("ours", PODS),
            *a_load(
                "theirs", PODS, gpu="accelerator.dra-driver.io", part="partition.dra-driver.io", by_controller=False
            ),
        )
        pods = wait_until_done(workload, 2 * PODS)
        assert history.assert_no_device_was_given_twice() > 4 * PODS
    nodes = {pod["metadata"]["name"].partition("-")[0]: pod["spec"]["nodeName"] for pod in pods}
    assert nodes == {"ours": "node-a", "theirs": "node-b"}


def test_a_claim_of_the_schedulers_class_never_gets_a_device_of_the_controllers_node(workload: Workload) -> None:
    workload.apply(a_claim("theirs"), a_pod("theirs", "theirs", node="node-a"))
    assert "cannot allocate all claims" in workload.wait_until_unschedulable("theirs")
