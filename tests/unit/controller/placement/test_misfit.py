"""Whether a node can take a Pod, and why not."""

from typing import Any

import pytest

from controller.placement import Misfit, MisfitCode, Requested, find_misfit, sum_requests
from dra_driver.api.core_v1 import Node, Pod
from tests.support.placement import a_container, a_node, a_pod


def misfit_of(pod: Pod, node: Node, *others: Pod, **options: Any) -> Misfit | None:
    requested = Requested()
    for other in others:
        requested.add(other)
    return find_misfit(pod, node, requested, **options)


def test_an_empty_node_takes_a_pod_that_asks_for_all_of_it() -> None:
    assert misfit_of(a_pod(a_container(cpu="4", memory="8Gi")), a_node()) is None


@pytest.mark.parametrize(
    ("pod", "code", "message"),
    [
        pytest.param(a_pod(a_container(cpu="2")), MisfitCode.RESOURCES, "cpu: 500m left, want 2", id="cpu"),
        pytest.param(a_pod(a_container(memory="2Gi")), MisfitCode.RESOURCES, "memory: 1Gi left, want 2Gi", id="memory"),
        pytest.param(
            a_pod(a_container(cpu="2", memory="1.5Gi")),
            MisfitCode.RESOURCES,
            "cpu: 500m left, want 2; memory: 1Gi left, want 1536Mi",
            id="all that is short",
        ),
        pytest.param(
            a_pod(a_container(**{"example.com/nic": "2"})),
            MisfitCode.RESOURCES,
            "example.com/nic: 1 left, want 2",
            id="extended",
        ),
        pytest.param(
            a_pod(a_container(**{"example.com/none": "1"})),
            MisfitCode.RESOURCES,
            "example.com/none: 0 left, want 1",
            id="extended, node has none",
        ),
        pytest.param(
            a_pod(a_container(**{"ephemeral-storage": "1Ki"})),
            MisfitCode.RESOURCES,
            "ephemeral-storage: 0 left, want 1Ki",
            id="disk",
        ),
    ],
)
def test_what_is_left_on_the_node_must_be_enough(pod: Pod, code: MisfitCode, message: str) -> None:
    node = a_node(allocatable={"example.com/nic": "3"})
    other = a_pod(a_container(cpu="3500m", memory="7Gi", **{"example.com/nic": "2"}), name="other")
    assert misfit_of(pod, node, other) == Misfit(code, message)


def test_what_is_not_asked_for_may_be_overdrawn() -> None:
    other = a_pod(a_container(cpu="9"), name="other")
    assert misfit_of(a_pod(a_container(memory="1Gi", cpu="0")), a_node(), other) is None
    found = misfit_of(a_pod(a_container(cpu="1")), a_node(), other)
    assert found == Misfit(MisfitCode.RESOURCES, "cpu: -5 left, want 1")


def test_pods_themselves_are_limited() -> None:
    full = misfit_of(a_pod(), a_node(allocatable={"pods": "1"}), a_pod(name="other"))
    assert full == Misfit(MisfitCode.PODS, "pods: 0 of 1 left, want 1")
    assert misfit_of(a_pod(), a_node(allocatable={"pods": "1"}), a_pod(name="other", phase="Failed")) is None


def test_an_extended_resource_of_a_class_is_a_matter_of_devices_where_the_node_has_none_of_its_own() -> None:
    pod = a_pod(a_container(**{"example.com/gpu": "1"}))
    assert misfit_of(pod, a_node(), class_resources=("example.com/gpu",)) is None
    full = misfit_of(pod, a_node(allocatable={"example.com/gpu": "1"}), pod, class_resources=("example.com/gpu",))
    assert full == Misfit(MisfitCode.RESOURCES, "example.com/gpu: 0 left, want 1")


def test_requests_that_the_caller_has_summed_are_taken_as_they_are() -> None:
    pod = a_pod(a_container(cpu="1"))
    assert misfit_of(pod, a_node(), requests=sum_requests(a_pod(a_container(cpu="5")))) is not None


EVERYTHING = {"operator": "Exists"}


@pytest.mark.parametrize(
    ("tolerations", "fits"),
    [
        pytest.param([], False, id="none"),
        pytest.param([{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}], True, id="key exists"),
        pytest.param([{"key": "node.kubernetes.io/unschedulable"}], True, id="equal to the empty value"),
        pytest.param(
            [{"key": "node.kubernetes.io/unschedulable", "effect": "NoExecute", "operator": "Exists"}],
            False,
            id="other effect",
        ),
        pytest.param([EVERYTHING], True, id="everything"),
    ],
)
def test_an_unschedulable_node_takes_only_pods_that_tolerate_it(tolerations: list[dict[str, str]], fits: bool) -> None:
    found = misfit_of(a_pod(tolerations=tolerations), a_node(unschedulable=True))
    wanted = Misfit(MisfitCode.UNSCHEDULABLE, "node: is unschedulable, want a schedulable one")
    assert found == (None if fits else wanted)


def test_a_pod_that_names_its_node_goes_nowhere_else() -> None:
    assert misfit_of(a_pod(nodeName="node-a"), a_node("node-a")) is None
    found = misfit_of(a_pod(nodeName="node-b"), a_node("node-a"))
    assert found == Misfit(MisfitCode.OTHER_NODE, "node: is 'node-a', want 'node-b'")


def test_the_taint_that_keeps_a_pod_away_is_named() -> None:
    taints = [{"key": "a", "effect": "PreferNoSchedule"}, {"key": "b", "value": "c", "effect": "NoExecute"}]
    found = misfit_of(a_pod(), a_node(taints=taints))
    assert found == Misfit(MisfitCode.TAINT, "node taint b=c:NoExecute: not tolerated, want a toleration")


def require(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


def label(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def name(operator: str, *values: str) -> dict[str, Any]:
    return {"matchFields": [{"key": "metadata.name", "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("spec", "code", "message"),
    [
        pytest.param(
            {"nodeSelector": {"zone": "b"}},
            MisfitCode.NODE_SELECTOR,
            "node selector: label zone is 'a', want 'b'",
            id="selector, other value",
        ),
        pytest.param(
            {"nodeSelector": {"zone": "a", "rack": ""}},
            MisfitCode.NODE_SELECTOR,
            "node selector: label rack is absent, want ''",
            id="selector, label absent",
        ),
        pytest.param(
            {"nodeSelector": {"zone": "a"}, "affinity": require(label("zone", "NotIn", "a"))},
            MisfitCode.NODE_AFFINITY,
            "node affinity: label zone is 'a', want NotIn 'a'",
            id="selector holds, affinity does not",
        ),
        pytest.param(
            {"nodeSelector": {"zone": "b"}, "affinity": require(label("zone", "In", "a"))},
            MisfitCode.NODE_SELECTOR,
            "node selector: label zone is 'a', want 'b'",
            id="affinity holds, selector does not",
        ),
        pytest.param(
            {"affinity": require(label("zone", "In", "b", "c"), label("size", "Gt", "7"))},
            MisfitCode.NODE_AFFINITY,
            "node affinity: label zone is 'a', want In 'b', 'c' or label size is '7', want Gt '7'",
            id="no term",
        ),
        pytest.param(
            {"affinity": require(name("In", "node-b"))},
            MisfitCode.NODE_AFFINITY,
            "node affinity: metadata.name is 'node-a', want In 'node-b'",
            id="name",
        ),
        pytest.param(
            {"affinity": require(label("rack", "Exists"))},
            MisfitCode.NODE_AFFINITY,
            "node affinity: label rack is absent, want Exists",
            id="absent",
        ),
        pytest.param(
            {"affinity": require({})},
            MisfitCode.NODE_AFFINITY,
            "node affinity: empty term, want a requirement",
            id="empty term",
        ),
        pytest.param(
            {"affinity": require()},
            MisfitCode.NODE_AFFINITY,
            "node affinity: no term, want at least one",
            id="no term at all",
        ),
        pytest.param(
            {"affinity": require(label("size", "Gt", "many"))},
            MisfitCode.NODE_AFFINITY,
            "node affinity: matchExpressions 'size': 'many' is not an integer, want one for 'Gt'",
            id="malformed",
        ),
    ],
)
def test_a_pod_goes_only_to_nodes_that_it_names(spec: dict[str, Any], code: MisfitCode, message: str) -> None:
    node = a_node("node-a", labels={"zone": "a", "size": "7"})
    assert misfit_of(a_pod(**spec), node) == Misfit(code, message)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"nodeSelector": {"zone": "a"}, "affinity": require(label("size", "Gt", "6"))}, id="both hold"),
        pytest.param({"affinity": require(label("size", "Lt", "8"), label("zone", "In", "b"))}, id="the first term"),
        pytest.param({"affinity": require(label("size", "Gt", "many"), name("In", "node-a"))}, id="beside a malformed"),
        pytest.param(
            {"affinity": require(name("NotIn", "node-b") | label("rack", "DoesNotExist"))}, id="name and label"
        ),
        pytest.param({"affinity": {}}, id="affinity to nothing"),
        pytest.param({"affinity": {"nodeAffinity": {}}}, id="no required affinity"),
    ],
)
def test_a_node_that_is_named_takes_the_pod(spec: dict[str, Any]) -> None:
    assert misfit_of(a_pod(**spec), a_node("node-a", labels={"zone": "a", "size": "7"})) is None


def test_filters_speak_in_the_order_of_kube_scheduler() -> None:
    pod = a_pod(a_container(cpu="9"), nodeName="x", nodeSelector={"a": "b"})
    node = a_node(unschedulable=True, taints=[{"key": "t", "effect": "NoSchedule"}])
    found = misfit_of(pod, node)
    assert found is not None
    assert found.code is MisfitCode.UNSCHEDULABLE
