"""Selectors and derived attributes in CEL."""

from typing import Any

import pytest

from controller.allocator import AllocationError, ErrorClass, Features, Refused, allocate
from controller.allocator.expression import CelCompiler
from controller.allocator.pool import gather_pools
from controller.allocator.slice_index import index_slices
from tests.support.allocation import DRIVER, a_claim, a_device, a_problem, a_request, a_slice, chosen

MODEL = f'device.attributes["{DRIVER}"].model'


def test_a_selector_is_cel() -> None:
    devices = [a_device("a", model="A100"), a_device("b", model="H100")]
    problem = a_problem(a_claim(a_request("main", f'{MODEL} == "H100"')), a_slice(*devices))
    assert chosen(allocate(problem)) == ["main=b"]


@pytest.mark.parametrize(
    ("expression", "error_class"),
    [
        pytest.param("device.atributes", ErrorClass.COMPILE, id="typing error"),
        pytest.param("device.driver", ErrorClass.COMPILE, id="not a bool"),
        pytest.param(f'device.attributes["{DRIVER}"].none == 1', ErrorClass.RUNTIME, id="missing key"),
        pytest.param(MODEL, ErrorClass.RUNTIME, id="not a bool at run time"),
    ],
)
def test_errors_have_their_class(expression: str, error_class: ErrorClass) -> None:
    with pytest.raises(AllocationError) as caught:
        allocate(a_problem(a_claim(a_request("main", expression)), a_slice(a_device("a", model="A100"))))
    assert caught.value.error_class is error_class


@pytest.mark.parametrize(
    ("expression", "fits"),
    [
        pytest.param("true", True, id="bool"),
        pytest.param(f'device.attributes["{DRIVER}"].index / 2', True, id="int"),
        pytest.param(f"{MODEL}.substring(0, 1)", True, id="string"),
        pytest.param('semver("1.0.0")', True, id="version"),
        pytest.param(f'[device.attributes["{DRIVER}"].index, dyn(7)]', True, id="list"),
        pytest.param(f'device.attributes["{DRIVER}"].index', False, id="all different"),
        pytest.param("[]", False, id="empty list"),
    ],
)
def test_derived_attributes_have_any_type(expression: str, fits: bool) -> None:
    devices = [a_device(f"dev-{index}", model=f"A{index}", index=index) for index in range(2)]
    derived: list[dict[str, Any]] = [{"name": f"{DRIVER}/derived", "expression": expression}]
    claim = a_claim(
        a_request(count=2, derivedAttributes=derived), constraints=[{"matchAttribute": f"{DRIVER}/derived"}]
    )
    features = Features(derived_attributes=True, list_type_attributes=True)
    answer = allocate(a_problem(claim, a_slice(*devices), features=features))
    assert (answer != Refused()) is fits


def test_equal_devices_are_evaluated_once() -> None:
    selector = CelCompiler().compile_selector(f'{MODEL} == "A"')
    devices = [a_device(f"dev-{index}", model="A", index=index) for index in range(3)]
    problem = a_problem(a_claim(a_request()), a_slice(*devices))
    (pool,) = gather_pools(problem.node, index_slices(problem.slices), problem.features)
    assert all(selector.evaluate(candidate) for candidate in pool.candidates)
    assert len(selector.verdicts) == 1  # type: ignore[attr-defined]
