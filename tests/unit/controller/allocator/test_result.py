"""What an allocation says besides the devices."""

from typing import Any

import pytest

from controller.allocator import Allocated, AllocationError, Features, Problem
from dra_driver.api.core_v1 import Node, NodeStatus
from dra_driver.api.meta_v1 import ObjectMeta
from dra_driver.api.resource_v1 import AllocationResult
from tests.support.allocation import (
    a_claim,
    a_class,
    a_device,
    a_problem,
    a_request,
    a_slice,
    a_subrequest,
    devices_of,
    solve,
)


def allocation(problem: Problem) -> AllocationResult:
    answer = solve(problem)
    assert isinstance(answer, Allocated)
    return answer.results[0]


def opaque(name: str, **fields: Any) -> dict[str, Any]:
    return {"opaque": {"driver": "gpu.example.com", "parameters": {"name": name}}} | fields


def selects(*values: str, key: str = "zone") -> dict[str, Any]:
    return {"nodeSelectorTerms": [{"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}]}


def configs(result: AllocationResult) -> list[tuple[str, tuple[str, ...], str]]:
    return [
        (config.source, config.requests, config.opaque.parameters["name"])
        for config in result.devices.config
        if config.opaque is not None
    ]


def test_configs_of_classes_come_first_and_name_what_they_concern() -> None:
    classes = {"any": a_class(config=[opaque("class")]), "other": a_class("other", config=[opaque("other")])}
    requests = [a_request("a"), a_request("b", deviceClassName="other"), a_request("c")]
    claim = a_claim(
        *requests, config=[opaque("all"), opaque("b", requests=["b"]), opaque("abc", requests=["a", "b", "c"])]
    )
    assert configs(allocation(a_problem(claim, a_slice(*devices_of(3)), classes=classes))) == [
        ("FromClass", ("a", "c"), "class"),
        ("FromClass", ("b",), "other"),
        ("FromClaim", (), "all"),
        ("FromClaim", ("b",), "b"),
        ("FromClaim", (), "abc"),
    ]


def test_configs_of_alternatives_that_were_not_chosen_are_left_out() -> None:
    choice = {"name": "main", "firstAvailable": [a_subrequest("two", count=2), a_subrequest("one")]}
    config = [
        opaque("two", requests=["main/two"]),
        opaque("one", requests=["main/one"]),
        opaque("main", requests=["main"]),
    ]
    result = allocation(a_problem(a_claim(choice, config=config), a_slice(*devices_of(1))))
    assert configs(result) == [("FromClaim", (), "one"), ("FromClaim", (), "main")]


def test_a_device_of_a_node_binds_the_claim_to_it() -> None:
    selector = allocation(a_problem(a_claim(a_request()), a_slice(*devices_of(1)))).node_selector
    assert selector is not None
    (requirement,) = selector.node_selector_terms[0].match_fields
    assert (requirement.key, requirement.operator, requirement.values) == ("metadata.name", "In", ("node-a",))


def test_node_selectors_are_joined_without_duplicates() -> None:
    slices = [
        a_slice(a_device("a"), pool="a", nodeSelector=selects("a", "b")),
        a_slice(a_device("b"), pool="b", nodeSelector=selects("b", "a")),
        a_slice(a_device("c"), pool="c", nodeSelector=selects("x", key="rack")),
        a_slice(a_device("d"), pool="d", allNodes=True),
    ]
    node = Node(metadata=ObjectMeta(name="node-a", labels={"zone": "a", "rack": "x"}))
    selector = allocation(a_problem(a_claim(a_request(count=4)), slices, node=node)).node_selector
    assert selector is not None
    assert [entry.key for entry in selector.node_selector_terms[0].match_expressions] == ["zone", "rack"]


def test_what_is_everywhere_has_no_node_selector() -> None:
    assert allocation(a_problem(a_claim(a_request()), a_slice(*devices_of(1), allNodes=True))).node_selector is None


def test_two_terms_cannot_be_joined() -> None:
    terms = selects("a")["nodeSelectorTerms"] + selects("b")["nodeSelectorTerms"]
    device = a_device("dev", {"nodeSelector": {"nodeSelectorTerms": terms}})
    with pytest.raises(AllocationError, match="has 2 terms"):
        solve(a_problem(a_claim(a_request()), a_slice(device, perDeviceNodeSelection=True)))


def test_tolerations_conditions_and_operations_are_copied() -> None:
    device = a_device("dev", {"bindingConditions": ["A"], "bindingFailureConditions": ["B"]})
    features = Features(optional_node_operations=True)
    problem = a_problem(
        a_claim(a_request(tolerations=[{"operator": "Exists"}])),
        a_slice(device, skipNodeOperations=["*"]),
        node=Node(
            metadata=ObjectMeta(name="node-a"), status=NodeStatus(declared_features=("DRAOptionalNodeOperations",))
        ),
        features=features,
    )
    (result,) = allocation(problem).devices.results
    assert result.tolerations[0].operator == "Exists"
    assert (result.binding_conditions, result.binding_failure_conditions) == (("A",), ("B",))
    assert result.skip_node_operations == ("*",)


def test_an_empty_claim_gets_an_empty_allocation() -> None:
    assert allocation(a_problem(a_claim(), [])) == AllocationResult()
