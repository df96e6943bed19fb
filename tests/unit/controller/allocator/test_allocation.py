"""The order in which devices are tried, and what keeps one from being taken."""

from typing import Any

import msgspec
import pytest

from controller.allocator import Features, Refused, Undecided
from dra_driver.api.codec import decode
from dra_driver.api.resource_v1 import DeviceAttribute, DeviceTaintRule
from tests.support.allocation import (
    a_claim,
    a_class,
    a_device,
    a_holder,
    a_problem,
    a_request,
    a_slice,
    a_subrequest,
    chosen,
    devices_of,
    solve,
)

TAINTED = {"taints": [{"key": "hot", "value": "x", "effect": "NoSchedule"}]}
BINDING = {"bindingConditions": ["Attached"], "bindingFailureConditions": ["Failed"]}


def test_pools_go_by_name_and_devices_in_slice_order() -> None:
    slices = [a_slice(a_device("b"), pool="two"), a_slice(a_device("z"), a_device("a"), pool="one")]
    assert chosen(solve(a_problem(a_claim(a_request(count=3)), slices))) == ["main=z", "main=a", "main=b"]


def test_slices_of_a_pool_go_by_name() -> None:
    slices = [a_slice(a_device("late"), name="b", of=2), a_slice(a_device("early"), name="a", of=2)]
    assert chosen(solve(a_problem(a_claim(a_request()), slices))) == ["main=early"]


def test_pools_with_binding_conditions_come_last() -> None:
    slices = [a_slice(a_device("bound", BINDING), pool="a"), a_slice(a_device("free"), pool="b")]
    assert chosen(solve(a_problem(a_claim(a_request()), slices))) == ["main=free"]


def test_old_generations_are_ignored() -> None:
    slices = [a_slice(a_device("old"), generation=1, name="a"), a_slice(a_device("new"), generation=2, name="b")]
    assert chosen(solve(a_problem(a_claim(a_request()), slices))) == ["main=new"]


def test_a_pool_that_lacks_a_slice_gives_no_devices() -> None:
    assert solve(a_problem(a_claim(a_request()), a_slice(a_device("dev"), of=2))) == Refused()


def test_a_device_in_use_is_not_taken_unless_with_admin_access() -> None:
    fields: dict[str, Any] = {"slices": a_slice(*devices_of(1)), "allocated": [a_holder("dev-0")]}
    assert solve(a_problem(a_claim(a_request()), **fields)) == Refused()
    assert chosen(solve(a_problem(a_claim(a_request(adminAccess=True)), **fields))) == ["main=dev-0"]


def test_admin_access_does_not_count_as_use() -> None:
    problem = a_problem(a_claim(a_request()), a_slice(*devices_of(1)), allocated=[a_holder("dev-0", adminAccess=True)])
    assert chosen(solve(problem)) == ["main=dev-0"]


def test_both_the_class_and_the_request_select() -> None:
    problem = a_problem(
        a_claim(a_request("main", "odd")), a_slice(*devices_of(4)), classes={"any": a_class("any", "big")}
    )
    answer = solve(
        problem,
        odd=lambda candidate: candidate.id[2] in ("dev-1", "dev-3"),
        big=lambda candidate: candidate.id[2] in ("dev-2", "dev-3"),
    )
    assert chosen(answer) == ["main=dev-3"]


def test_claims_share_what_is_given_away() -> None:
    claims = [a_claim(a_request(), name="one"), a_claim(a_request(), name="two")]
    assert chosen(solve(a_problem(claims, a_slice(*devices_of(2))))) == ["main=dev-0", "main=dev-1"]
    assert solve(a_problem(claims, a_slice(*devices_of(1)))) == Refused()


def test_the_search_goes_back_where_a_later_request_needs_the_device() -> None:
    problem = a_problem(a_claim(a_request("any"), a_request("first", "first")), a_slice(*devices_of(2)))
    answer = solve(problem, first=lambda candidate: candidate.id[2] == "dev-0")
    assert chosen(answer) == ["any=dev-1", "first=dev-0"]


@pytest.mark.parametrize(
    ("tolerations", "fits"),
    [
        pytest.param([], False, id="none"),
        pytest.param([{"key": "hot", "value": "x"}], True, id="equal"),
        pytest.param([{"key": "hot", "value": "y"}], False, id="other value"),
        pytest.param([{"operator": "Exists"}], True, id="everything"),
        pytest.param([{"key": "hot", "operator": "Exists", "effect": "NoExecute"}], False, id="other effect"),
        pytest.param([{"key": "hot", "operator": "Near"}], False, id="unknown operator"),
    ],
)
def test_a_taint_must_be_tolerated(tolerations: list[dict[str, Any]], fits: bool) -> None:
    problem = a_problem(a_claim(a_request(tolerations=tolerations)), a_slice(a_device("dev", TAINTED)))
    assert (solve(problem) != Refused()) is fits


def test_a_taint_rule_taints_what_it_selects() -> None:
    def rule(selector: dict[str, str] | None) -> DeviceTaintRule:
        spec = {"deviceSelector": selector, "taint": {"key": "drain", "effect": "NoExecute"}}
        return decode(msgspec.json.encode({"metadata": {"name": "rule"}, "spec": spec}), DeviceTaintRule)

    slices = a_slice(*devices_of(2))
    one = a_problem(a_claim(a_request()), slices, taint_rules=[rule({"device": "dev-0"})])
    assert chosen(solve(one)) == ["main=dev-1"]
    assert solve(a_problem(a_claim(a_request()), slices, taint_rules=[rule({})])) == Refused()
    assert chosen(solve(a_problem(a_claim(a_request()), slices, taint_rules=[rule(None)]))) == ["main=dev-0"]


def test_the_first_alternative_that_fits_wins() -> None:
    request = {"name": "main", "firstAvailable": [a_subrequest("two", count=2), a_subrequest("one")]}
    assert chosen(solve(a_problem(a_claim(request), a_slice(*devices_of(1))))) == ["main/one=dev-0"]
    assert chosen(solve(a_problem(a_claim(request), a_slice(*devices_of(2))))) == ["main/two=dev-0", "main/two=dev-1"]


def test_all_takes_every_device_or_nothing() -> None:
    fields: dict[str, Any] = {"slices": a_slice(*devices_of(2))}
    claim = a_claim(a_request(allocationMode="All"))
    assert chosen(solve(a_problem(claim, **fields))) == ["main=dev-0", "main=dev-1"]
    assert solve(a_problem(claim, **fields, allocated=[a_holder("dev-1")])) == Refused()
    assert solve(a_problem(claim, a_slice())) == Refused()


def test_devices_of_other_nodes_are_not_taken() -> None:
    devices = [a_device("there", {"nodeName": "node-b"}), a_device("here", {"nodeName": "node-a"})]
    problem = a_problem(a_claim(a_request()), a_slice(*devices, perDeviceNodeSelection=True))
    assert chosen(solve(problem)) == ["main=here"]


def test_a_match_is_found_after_going_back() -> None:
    devices = [a_device(f"dev-{index}", numa=numa) for index, numa in enumerate((0, 1, 1))]
    constraints = [{"matchAttribute": "gpu.example.com/numa"}]
    problem = a_problem(a_claim(a_request(count=2), constraints=constraints), a_slice(*devices))
    assert chosen(solve(problem)) == ["main=dev-1", "main=dev-2"]


def test_distinct_compares_with_every_device_before() -> None:
    devices = [a_device(f"dev-{index}", numa=numa) for index, numa in enumerate((0, 1, 0, 2))]
    constraints = [{"distinctAttribute": "gpu.example.com/numa"}]
    problem = a_problem(a_claim(a_request(count=3), constraints=constraints), a_slice(*devices))
    assert chosen(solve(problem)) == ["main=dev-0", "main=dev-1", "main=dev-3"]


def test_lists_match_by_what_they_have_in_common() -> None:
    devices = [a_device(f"dev-{index}", links=links) for index, links in enumerate(([0, 1], [1, 2], [2], [1]))]
    claim = a_claim(a_request(count=3), constraints=[{"matchAttribute": "gpu.example.com/links"}])
    with_lists = a_problem(claim, a_slice(*devices), features=Features(list_type_attributes=True))
    assert chosen(solve(with_lists)) == ["main=dev-0", "main=dev-1", "main=dev-3"]
    assert solve(a_problem(claim, a_slice(*devices))) == Refused()


def test_derived_attributes_hide_those_of_the_device() -> None:
    devices = [a_device(f"dev-{index}", numa=index) for index in range(2)]
    request = a_request(count=2, derivedAttributes=[{"name": "gpu.example.com/numa", "expression": "same"}])
    claim = a_claim(request, constraints=[{"matchAttribute": "gpu.example.com/numa"}])
    problem = a_problem(claim, a_slice(*devices), features=Features(derived_attributes=True))
    answer = solve(problem, same=lambda _: DeviceAttribute(int=7))
    assert chosen(answer) == ["main=dev-0", "main=dev-1"]


def test_equal_questions_have_equal_answers_and_change_nothing() -> None:
    problem = a_problem(a_claim(a_request(count=2)), a_slice(*devices_of(3)), allocated=[a_holder("dev-1")])
    assert chosen(solve(problem)) == chosen(solve(problem)) == ["main=dev-0", "main=dev-2"]


def test_giving_up_is_no_refusal() -> None:
    claim = a_claim(a_request("any"), a_request("first", "first"))
    problem = a_problem(claim, a_slice(*devices_of(2)), budget=1)
    assert solve(problem, first=lambda candidate: candidate.id[2] == "dev-0") == Undecided()
