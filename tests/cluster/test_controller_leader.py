"""Two replicas of the controller, of which one leads, under load."""

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.cluster.claim_history import record_claims
from tests.cluster.cluster import Cluster
from tests.cluster.controller import ControllerProcess, give_nodes, write_fleet_profile
from tests.cluster.controller_load import a_load, wait_until_done
from tests.cluster.plugin import PluginProcess
from tests.cluster.scenario import Workload

PODS = 12


@pytest.fixture(scope="module", autouse=True)
def plugins(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, PluginProcess]]:
    profile = str(write_fleet_profile(tmp_path_factory.mktemp("fleet")))
    with give_nodes(cluster, {"node-a": profile, "node-b": profile}) as plugins:
        yield plugins


@pytest.fixture
def replicas(cluster: Cluster, plugins: dict[str, PluginProcess]) -> Iterator[list[ControllerProcess]]:
    with ExitStack() as stack:
        yield [stack.enter_context(ControllerProcess(cluster, replica)) for replica in (0, 1)]


def find_leader(cluster: Cluster, replicas: list[ControllerProcess]) -> ControllerProcess:
    def leader() -> ControllerProcess | None:
        return next((each for each in replicas if each.process.returncode is None and each.is_leading), None)

    return cluster.wait_for("a replica to lead", leader)


def kill(leader: ControllerProcess) -> None:
    leader.process.kill()


def stop(leader: ControllerProcess) -> None:
    leader.process.signal(signal.SIGSTOP)


@pytest.mark.parametrize("end", [kill, stop])
def test_a_leader_that_goes_under_load_is_followed_by_the_other(
    workload: Workload, replicas: list[ControllerProcess], end: Callable[[ControllerProcess], None]
) -> None:
    cluster = workload.cluster
    with record_claims(cluster) as history:
        leader = find_leader(cluster, replicas)
        [other] = [each for each in replicas if each is not leader]
        workload.apply(*a_load("load", PODS))

        def some_are_allocated() -> bool:
            claims = cluster.list("resourceclaims")
            return any("allocation" in claim.get("status", {}) for claim in claims)

        cluster.wait_for("the first allocations", some_are_allocated)
        end(leader)
        cluster.wait_for("the other to lead", lambda: other.is_leading)
        if leader.process.returncode is None:
            leader.process.signal(signal.SIGCONT)
            cluster.wait_for("the first to know that it does not lead", lambda: not leader.is_leading)
        wait_until_done(workload, PODS)
        assert other.is_leading
        assert history.assert_no_device_was_given_twice() > 3 * PODS
