"""Which errors are raised, of which class, and which are not since nothing reaches them."""

from typing import Any

import pytest

from controller.allocator import AllocationError, ErrorClass, Features, Refused, features_of_gates, features_of_version
from controller.allocator.candidate import Candidate
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


def fails(candidate: Candidate) -> bool:
    raise KeyError("size")


SLICE = a_slice(*devices_of(2))


def refuse(problem: Any, **functions: Any) -> AllocationError:
    with pytest.raises(AllocationError) as caught:
        solve(problem, **functions)
    return caught.value


def test_an_error_names_the_claim_the_selector_and_the_device() -> None:
    error = refuse(a_problem(a_claim(a_request("main", "size")), SLICE), size=fails)
    assert error.error_class is ErrorClass.RUNTIME
    assert str(error) == "claim default/claim: selector #0 on device gpu.example.com/pool/dev-0: no such key: 'size'"


def test_a_class_that_is_false_hides_errors_of_the_request() -> None:
    problem = a_problem(a_claim(a_request("main", "size")), SLICE, classes={"any": a_class("any", "no")})
    assert solve(problem, size=fails, no=lambda _: False) == Refused()


def test_an_error_on_a_device_that_is_not_reached_does_not_matter() -> None:
    problem = a_problem(a_claim(a_request("main", "first")), SLICE)
    assert chosen(solve(problem, first=lambda candidate: {"dev-0": True}[candidate.id[2]])) == ["main=dev-0"]


def test_an_error_on_a_device_in_use_matters_for_all_only() -> None:
    fields: dict[str, Any] = {"slices": SLICE, "allocated": [a_holder("dev-0")]}
    functions = {"second": lambda candidate: {"dev-1": True}[candidate.id[2]]}
    assert chosen(solve(a_problem(a_claim(a_request("main", "second")), **fields), **functions)) == ["main=dev-1"]
    error = refuse(a_problem(a_claim(a_request("main", "second", allocationMode="All")), **fields), **functions)
    assert error.error_class is ErrorClass.RUNTIME


def test_an_expression_that_does_not_compile_is_an_error() -> None:
    assert refuse(a_problem(a_claim(a_request("main", "((")), SLICE)).error_class is ErrorClass.COMPILE


@pytest.mark.parametrize(
    ("slices", "error_class"),
    [
        pytest.param([SLICE, a_slice(pool="half", of=2)], ErrorClass.INCOMPLETE, id="incomplete"),
        pytest.param([a_slice(a_device("a"), a_device("a"))], ErrorClass.INVALID, id="invalid"),
    ],
)
def test_all_wants_sound_pools(slices: Any, error_class: ErrorClass) -> None:
    error = refuse(a_problem(a_claim(a_request(allocationMode="All")), slices))
    assert (error.error_class, error.node_only) == (error_class, False)


def test_an_invalid_pool_is_an_error_of_the_node_where_nothing_else_fits() -> None:
    invalid = a_slice(a_device("a"), a_device("a"), pool="bad")
    error = refuse(a_problem(a_claim(a_request()), invalid))
    assert (error.error_class, error.node_only) == (ErrorClass.INVALID, True)
    assert "duplicate device name 'a'" in str(error)
    assert chosen(solve(a_problem(a_claim(a_request()), [invalid, SLICE]))) == ["main=dev-0"]


def test_all_with_a_violated_constraint_is_an_error() -> None:
    devices = [a_device("a", numa=0), a_device("b", numa=1)]
    claim = a_claim(a_request(allocationMode="All"), constraints=[{"matchAttribute": "gpu.example.com/numa"}])
    assert refuse(a_problem(claim, a_slice(*devices))).error_class is ErrorClass.OTHER


def test_a_claim_holds_at_most_32_devices() -> None:
    error = refuse(a_problem(a_claim(a_request(count=33)), SLICE))
    assert error.error_class is ErrorClass.LIMIT
    devices = a_slice(*devices_of(40))
    choice = {"name": "main", "firstAvailable": [a_subrequest("many", count=33), a_subrequest("few", count=1)]}
    assert chosen(solve(a_problem(a_claim(choice), devices))) == ["main/few=dev-0"]


@pytest.mark.parametrize(
    ("request_", "gate"),
    [
        pytest.param(a_request(adminAccess=False), "admin_access", id="admin access, even false"),
        pytest.param(a_request(capacity={}), "consumable_capacity", id="capacity, even empty"),
        pytest.param({"name": "r", "firstAvailable": [a_subrequest("s")]}, "prioritized_list", id="subrequests"),
        pytest.param(
            a_request(derivedAttributes=[{"name": "gpu.example.com/a", "expression": "b"}]),
            "derived_attributes",
            id="derived attributes",
        ),
    ],
)
def test_a_request_that_needs_a_gate_is_an_error_without_it(request_: dict[str, Any], gate: str) -> None:
    problem = a_problem(a_claim(request_), SLICE, features=Features(**{gate: False}))
    assert refuse(problem).error_class is ErrorClass.OTHER


@pytest.mark.parametrize(
    "claim",
    [
        pytest.param(a_claim(a_request(deviceClassName="other")), id="unknown class"),
        pytest.param(a_claim(a_request(allocationMode="Some")), id="unknown mode"),
        pytest.param(a_claim(a_request(), constraints=[{}]), id="constraint without attribute"),
        pytest.param(a_claim(a_request(selectors=[{}])), id="selector without expression"),
    ],
)
def test_what_is_no_claim_is_an_error(claim: Any) -> None:
    assert refuse(a_problem(claim, SLICE)).error_class is ErrorClass.OTHER


def test_gates_go_by_version_and_by_name() -> None:
    assert features_of_version("1.37") == Features()
    oldest = features_of_version("v1.34.2")
    assert (oldest.prioritized_list, oldest.consumable_capacity, oldest.device_binding_and_status) == (
        True,
        False,
        False,
    )
    assert features_of_version("1.37", {"DRAConsumableCapacity": False}) == Features(consumable_capacity=False)
    assert features_of_gates({"DRADeviceBindingConditions"}).device_binding_and_status is False
    with pytest.raises(ValueError, match=r"want 1\.34 to 1\.37"):
        features_of_version("1.33")
