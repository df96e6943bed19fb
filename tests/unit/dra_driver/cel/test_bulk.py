"""Calls that would look through too much at once end the evaluation before they begin."""

import pytest

from dra_driver.cel import DeviceInput, EvaluationError, compile_selector
from dra_driver.cel.bulk import weight
from dra_driver.cel.value import Map

LONG = "'" + "a" * 2000 + "'.replace('a', '" + "b" * 4500 + "')"
LISTS = "cel.bind(a, lists.range(1000), cel.bind(b, [" + ", ".join(["a"] * 900) + "], %s))"
REFUSED = {
    "comparing_lists_of_lists": LISTS % "b == b",
    "looking_for_a_list_in_lists": LISTS % "lists.range(1000) in b",
    "the_place_of_a_list_in_lists": LISTS % "b.indexOf([1]) == 0",
    "sets_of_lists": LISTS % "sets.contains(b, b)",
    "flattening_lists_of_lists": LISTS % "b.flatten().size() > 0",
    "printing_lists_of_lists": LISTS % "'%s'.format([b]) == ''",
    "a_message_of_lists_of_lists": LISTS % "google.protobuf.ListValue{values: b}.size() > 0",
    "all_parts_of_a_long_text": f"{LONG}.findAll('b').size() > 0",
    "a_long_url": f"isURL('/' + {LONG})",
    "a_text_longer_than_any_look_at_it_may_cost": "'" + "a" * 4000 + "'.replace('a', '" + "b" * 5000 + "') == ''",
    "sorting_a_long_list": "lists.range(900000).sort().size() > 0",
    "a_pattern_on_a_long_text": f"{LONG}.matches('(b|c)*d')",
}


@pytest.mark.parametrize("expression", REFUSED.values(), ids=REFUSED)
def test_a_call_that_looks_through_too_much_is_not_begun(expression: str) -> None:
    with pytest.raises(EvaluationError, match="want at most"):
        compile_selector(expression).evaluate_with_cost(DeviceInput("d"))


def test_a_call_is_charged_before_it_begins() -> None:
    selector = compile_selector("lists.range(5000).sort().size() / 0 == 0")

    with pytest.raises(EvaluationError, match="actual cost limit exceeded") as caught:
        selector.evaluate_with_cost(DeviceInput("d"))

    assert caught.value.cost == 5011 + 2 * 5000 * 5000 + 11


def test_a_list_that_is_in_another_many_times_is_counted_each_time_and_looked_at_once() -> None:
    value: object = (1, 2)
    for _ in range(60):
        value = (value, value)

    assert weight(value) == 2**60 * 3 + sum(3 * 2**depth for depth in range(60))


def test_a_map_weighs_what_is_in_it() -> None:
    assert weight(Map.of([("a", (1, 2)), ("b", 3)])) == 1 + 2 + 3


def test_a_call_that_ends_the_evaluation_costs_nothing() -> None:
    selector = compile_selector("dyn(b'a') in {1: 7}")

    with pytest.raises(EvaluationError, match="key of a map") as caught:
        selector.evaluate_with_cost(DeviceInput("d"))

    assert caught.value.cost == 0
