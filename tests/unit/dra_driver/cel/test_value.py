"""Which values are one key of a map: numbers, texts and types by what they are, lists and most others by identity."""

import pytest

from dra_driver.cel import DeviceInput, compile_selector

ONE = "timestamp('1970-01-01T00:00:01%s')"
SAME = {
    "a_list_and_itself": "cel.bind(a, [], a in {a: 1}) && cel.bind(a, [1], a in {a: 1})",
    "a_map_and_itself": "cel.bind(a, {}, a in {a: 1})",
    "a_list_with_nothing_added": "cel.bind(a, [], {a + []: 1} == {a: 1})",
    "a_list_that_was_in_another": "cel.bind(a, [], [a].first().value() in {a: 1})",
    "a_list_that_a_loop_is_over": "[[]].all(a, a in {a: 1})",
    "a_list_in_a_constant_map": "cel.bind(m, {[]: 1}, m == m && m.all(k, k in m))",
    "times_of_one_whole_hour": f"{ONE % '+14:00'} in {{{ONE % '+14:00'}: 1}}",
    "times_without_offset": f"{ONE % '-00:00'} in {{{ONE % '+00:00'}: 1}}",
    "a_time_of_half_an_hour_and_itself": f"cel.bind(t, {ONE % '+01:30'}, (t + duration('0s')) in {{t: 1}})",
    "a_time_in_utc_and_a_number": f"{ONE % 'Z'} in {{timestamp(1): 1}}",
}
OTHER = {
    "two_empty_lists": "[] in {[]: 1} || {[]: 1} == {[]: 1}",
    "two_empty_lists_in_one_map": "{[]: 1, []: 2}.size() == 1",
    "an_empty_sum": "{[] + []: 1} == {[] + []: 1}",
    "what_a_macro_left_empty": "[1].filter(x, x > 1) in {[1].filter(x, x > 1): 1}",
    "what_a_loop_with_an_index_left_empty": "[1].transformList(i, v, i > 3, v) in {[]: 1}",
    "an_empty_part": "[1].slice(0, 0) in {[1].slice(0, 0): 1}",
    "a_part_that_is_the_whole": "cel.bind(a, [1], a.slice(0, 1) in {a: 1})",
    "an_empty_range": "lists.range(0) in {lists.range(0): 1}",
    "what_no_pattern_found": "'a'.findAll('b') in {'a'.findAll('b'): 1}",
    "a_list_with_nothing_optional": "[?optional.none()] in {[?optional.none()]: 1}",
    "an_empty_list_of_json": "google.protobuf.ListValue{} in {google.protobuf.ListValue{}: 1}",
    "an_empty_list_in_json": "cel.bind(l, google.protobuf.ListValue{values: [[]]}, l[0] in {l[0]: 1})",
    "times_in_utc_and_without_offset": f"{ONE % 'Z'} in {{{ONE % '+00:00'}: 1}}",
    "times_of_half_an_hour": f"{ONE % '+01:30'} in {{{ONE % '+01:30'}: 1}}",
    "times_of_an_hour_out_of_use": f"{ONE % '-13:00'} in {{{ONE % '-13:00'}: 1}}",
}


@pytest.mark.parametrize("expression", SAME.values(), ids=SAME)
def test_a_key_is_found_by_itself(expression: str) -> None:
    assert compile_selector(expression).evaluate(DeviceInput("d")) is True


@pytest.mark.parametrize("expression", OTHER.values(), ids=OTHER)
def test_a_key_is_not_found_by_what_only_equals_it(expression: str) -> None:
    assert compile_selector(expression).evaluate(DeviceInput("d")) is False
