"""What Pods request of a node."""

from typing import Any

import pytest

from controller.placement import Requested, sum_requests
from dra_driver.api.quantity import Quantity
from tests.support.placement import a_container, a_pod, a_sidecar


def requests_of(*containers: dict[str, Any], **spec: Any) -> dict[str, str]:
    return {name: str(Quantity(nanos)) for name, nanos in sum_requests(a_pod(*containers, **spec)).items()}


@pytest.mark.parametrize(
    ("containers", "spec", "cpu"),
    [
        pytest.param([], {}, None, id="nothing"),
        pytest.param([a_container(cpu="1"), a_container("b", cpu="500m")], {}, "1500m", id="containers add up"),
        pytest.param([a_container(limits={"cpu": "2"})], {}, "2", id="a limit is the default of a request"),
        pytest.param([a_container(cpu="1", limits={"cpu": "2"})], {}, "1", id="a request goes before a limit"),
        pytest.param(
            [a_container(cpu="1")], {"initContainers": [a_container("i", cpu="3")]}, "3", id="a larger init container"
        ),
        pytest.param(
            [a_container(cpu="2")], {"initContainers": [a_container("i", cpu="1")]}, "2", id="a smaller init container"
        ),
        pytest.param(
            [a_container(cpu="1")],
            {"initContainers": [a_container("i", cpu="2"), a_container("j", cpu="2")]},
            "2",
            id="init containers run one after the other",
        ),
        pytest.param([a_container(cpu="1")], {"initContainers": [a_sidecar(cpu="1")]}, "2", id="a sidecar runs on"),
        pytest.param(
            [a_container(cpu="1")],
            {"initContainers": [a_sidecar(cpu="1"), a_container("i", cpu="3")]},
            "4",
            id="a sidecar runs beside the init containers after it",
        ),
        pytest.param(
            [a_container(cpu="1")],
            {"initContainers": [a_container("i", cpu="3"), a_sidecar(cpu="1")]},
            "3",
            id="and not beside those before it",
        ),
        pytest.param(
            [a_container(cpu="1")],
            {"initContainers": [a_sidecar(cpu="2"), a_sidecar(cpu="2")], "overhead": {"cpu": "250m"}},
            "5250m",
            id="overhead comes on top",
        ),
        pytest.param(
            [a_container(cpu="1")], {"resources": {"requests": {"cpu": "3"}}}, "3", id="the Pod's own request"
        ),
        pytest.param([a_container(cpu="3")], {"resources": {"requests": {"cpu": "1"}}}, "1", id="replaces the sum"),
        pytest.param(
            [a_container(cpu="3")],
            {"resources": {"requests": {"cpu": "1"}}, "overhead": {"cpu": "1"}},
            "2",
            id="not the overhead",
        ),
        pytest.param([a_container()], {"resources": {"limits": {"cpu": "3"}}}, "3", id="the Pod's own limit"),
        pytest.param(
            [a_container(cpu="1")], {"resources": {"limits": {"cpu": "3"}}}, "1", id="gives way to what containers ask"
        ),
        pytest.param([a_container(cpu="100u"), a_container("b", cpu="1u")], {}, "1m", id="rounded up to 1m"),
    ],
)
def test_requests_are_summed_as_kube_scheduler_does(
    containers: list[dict[str, Any]], spec: dict[str, Any], cpu: str | None
) -> None:
    assert requests_of(*containers, **spec).get("cpu") == cpu


def test_other_resources_are_counted_by_the_same_rules_and_in_whole_units() -> None:
    container = a_container(memory="1.5", **{"example.com/nic": "2", "hugepages-2Mi": "4Mi"})
    assert requests_of(container, initContainers=[a_container("i", **{"example.com/nic": "3"})]) == {
        "memory": "2",
        "example.com/nic": "3",
        "hugepages-2Mi": "4194304",
    }


def test_a_pod_as_a_whole_asks_for_cpu_memory_and_huge_pages_only() -> None:
    wanted = {"memory": "1", "hugepages-2Mi": "2Mi", "example.com/nic": "9"}
    assert requests_of(a_container(**{"example.com/nic": "1"}), resources={"requests": wanted}) == {
        "memory": "1",
        "hugepages-2Mi": "2097152",
        "example.com/nic": "1",
    }


def test_what_is_removed_leaves_nothing_behind() -> None:
    requested = Requested()
    pods = [a_pod(a_container(cpu="1", memory="1Gi")), a_pod(a_container(cpu="500m"))]
    for pod in pods:
        requested.add(pod)
    assert requested == Requested({"cpu": 1_500_000_000, "memory": (1 << 30) * 10**9}, pods=2)
    for pod in pods:
        requested.remove(pod)
    assert requested == Requested()


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_holds_nothing(phase: str) -> None:
    requested = Requested()
    requested.add(a_pod(a_container(cpu="1"), phase=phase))
    assert requested == Requested()
    requested.remove(a_pod(a_container(cpu="1"), phase=phase))
    assert requested == Requested()


@pytest.mark.parametrize("phase", ["", "Pending", "Running", "Unknown"])
def test_any_other_pod_holds_what_it_requests(phase: str) -> None:
    requested = Requested()
    requested.add(a_pod(a_container(cpu="1"), phase=phase))
    assert requested.pods == 1
