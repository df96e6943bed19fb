from concurrent.futures import ThreadPoolExecutor

import pytest

from dra_driver.api.resource_v1 import DeviceAttribute
from dra_driver.api.semver import Semver
from dra_driver.cel import CompileError, DeviceInput, EvaluationError, InterruptError, Options, compile_attribute
from dra_driver.cel import compile_selector as compile_


@pytest.mark.parametrize("attribute", [DeviceAttribute(), DeviceAttribute(version="1.02.3")])
def test_an_attribute_without_a_usable_value_fails_every_expression(attribute: DeviceAttribute) -> None:
    with pytest.raises(EvaluationError, match="attribute 'bad'"):
        compile_("true").evaluate(DeviceInput("d", {"bad": attribute}))


def test_names_without_a_domain_are_of_the_driver() -> None:
    device = DeviceInput("d", {"a": DeviceAttribute(int=1), "e/b": DeviceAttribute(int=2)})

    assert compile_('device.attributes["d"].a == 1 && device.attributes["e"].b == 2').evaluate(device)
    assert compile_('device.attributes.map(k, k).sort() == ["d", "e"]').evaluate(device)


def test_a_device_that_is_larger_than_the_api_allows_is_counted() -> None:
    expression = 'device.attributes["d"].all(k, v, v.matches("(a|b)*"))'
    device = DeviceInput("d", {f"a{i}": DeviceAttribute(string="ab" * 500) for i in range(100)})

    with pytest.raises(EvaluationError, match="limit exceeded"):
        compile_(expression, options=Options(cost_limit=10_000)).evaluate(device)


def test_an_evaluation_stops_when_it_is_asked_to() -> None:
    asked = []

    def interrupt() -> bool:
        asked.append(1)
        return len(asked) > 2

    with pytest.raises(InterruptError):
        compile_("lists.range(1000).all(x, x >= 0)").evaluate(DeviceInput("d"), interrupt)
    assert len(asked) == 3


def test_a_choice_with_presence_test_of_cost_zero_exceeds_the_limit_as_upstream_does() -> None:
    with pytest.raises(EvaluationError, match="limit exceeded"):
        compile_('has((dyn([1]) ? {"a": 1} : {"b": 1}).a)').evaluate(DeviceInput("d"))


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1 + 1", 2),
        ('"a"', "a"),
        ("true", True),
        ('semver("1.2.3")', Semver(1, 2, 3)),
        ("[1, 2]", (1, 2)),
        ('device.attributes["d"].a', 7),
    ],
)
def test_a_derived_attribute_has_a_value(expression: str, value: object) -> None:
    assert compile_attribute(expression).evaluate(DeviceInput("d", {"a": DeviceAttribute(int=7)})) == value


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("dyn(string)", "string"),
        ("[dyn(int), dyn(type('a'))]", ("int", "string")),
        ("dyn(type(device))", "map"),
        ("dyn(optional.of(1))", 1),
        ("[dyn(optional.of(1)), dyn(optional.of(optional.of(2)))]", (1, 2)),
    ],
)
def test_a_type_as_an_attribute_is_its_name_and_an_optional_its_value(expression: str, value: object) -> None:
    assert compile_attribute(expression).evaluate(DeviceInput("d")) == value


@pytest.mark.parametrize("expression", ["1.5", "{}", "[[1]]", 'quantity("1")', "null"])
def test_a_derived_attribute_of_another_type_is_refused(expression: str) -> None:
    with pytest.raises(CompileError):
        compile_attribute(expression)


def test_a_list_is_a_derived_attribute_only_where_lists_are() -> None:
    with pytest.raises(CompileError):
        compile_attribute("[1]", options=Options(stored=False))


def test_selectors_are_shared_between_threads() -> None:
    selector = compile_('device.attributes["d"].list.exists(x, cel.bind(y, x + 1, y == device.attributes["d"].a))')
    devices = [
        DeviceInput("d", {"a": DeviceAttribute(int=n), "list": DeviceAttribute(ints=(1, 2, 3))}) for n in range(200)
    ]
    expected = [2 <= n <= 4 for n in range(200)]

    with ThreadPoolExecutor(16) as pool:
        for verdicts in pool.map(lambda _: [selector.evaluate(device) for device in devices], range(16)):
            assert verdicts == expected
