"""What users are told of common mistakes: where, what was found, and what to write instead."""

import pytest

from dra_driver.api.quantity import Quantity
from dra_driver.api.resource_v1 import DeviceAttribute, DeviceCapacity
from dra_driver.cel import CompileError, DeviceInput, EvaluationError, compile_selector

A = 'device.attributes["d"]'
M = 'device.capacity["d"].memory'
MISTAKES = {
    "a_misspelt_field": ('device.atributes["d"].model == "a"', 7, "no such field", "did you mean 'attributes'?"),
    "a_misspelt_variable": ('devices.driver == "d"', 1, "unknown name 'devices'", "did you mean 'device'?"),
    "no_domain": ('device.attributes.model == "a"', 25, "map(string, dyn) == string", "name the domain"),
    "an_attribute_for_a_domain": ('device.attributes["model"] == "a"', 28, "map(string, dyn)", "name the domain"),
    "a_single_equals_sign": (f'{A}.model = "a"', 30, "'='", "want '=='"),
    "three_equals_signs": (f'{A}.model === "a"', 32, "'='", "want '=='"),
    "a_single_ampersand": (f"{A}.healthy & true", 32, "'&'", "want '&&'"),
    "a_single_bar": (f"{A}.healthy | true", 32, "'|'", "want '||'"),
    "and": (f"{A}.healthy and true", 32, "unexpected 'and'", "want '&&'"),
    "or": (f"{A}.healthy or true", 32, "unexpected 'or'", "want '||'"),
    "not": (f"not {A}.healthy", 5, "unexpected 'device'", "want '!'"),
    "unequal_as_in_sql": (f'{A}.model <> "a"', 31, "unexpected '>'", "want '!='"),
    "like_as_in_sql": ('device.driver like "a%"', 15, "unexpected 'like'", "want '.matches(…)'"),
    "curly_quotes": (f"{A}.model == “H100”", 33, "'“'", "want a straight quote"),
    "no_quotes": (f"{A}.model == H100", 33, "unknown name 'H100'", 'write "H100"'),
    "a_quote_that_is_not_closed": (f'{A}.model == "H100', 33, "string without an end", "want a closing quote"),
    "an_escape_in_a_pattern": (r'device.driver.matches("\d+")', 23, "unknown escape", r"raw, as in r'\d+'"),
    "a_capital_true": (f"{A}.healthy == True", 35, "unknown name 'True'", "did you mean 'true'?"),
    "a_quantity_with_an_int": (f"{M} >= 80", 29, "Quantity >= int", 'a.compareTo(quantity("80")) >= 0'),
    "a_quantity_with_a_text": (f'{M} >= "80Gi"', 29, "Quantity >= string", 'a.compareTo(quantity("80Gi")) >= 0'),
    "a_quantity_equal_to_a_text": (f'{M} == "80Gi"', 29, "Quantity == string", 'a.compareTo(quantity("80Gi")) == 0'),
    "a_quantity_without_quotes": (f"{M} >= 80Gi", 34, "unexpected 'Gi'", 'write quantity("80Gi")'),
    "quantities_with_an_order_sign": (f'{M} >= quantity("1")', 29, "Quantity >= ", "a.compareTo(quantity("),
    "a_quantity_compared_to_a_text": (f'{M}.compareTo("1Gi") >= 0', 38, "compareTo(string)", 'quantity("1Gi")'),
    "a_comparison_that_is_not_a_bool": (f'{M}.compareTo(quantity("1"))', 1, "gives an int", "want a bool; compare it"),
    "a_version_with_a_text": (f'{A}.version.isGreaterThan("1.2.3")', 45, "isGreaterThan(string)", 'semver("1.2.3")'),
    "a_version_with_an_order_sign": ('semver("1.2.3") >= "1.2.3"', 17, "Semver >= string", "a.compareTo(semver("),
    "in_with_a_text": ('"H" in "H100"', 5, "in(string, string)", "write text.contains(part)"),
    "a_misspelt_function": ('device.driver.startWith("a")', 24, "unknown function", "did you mean 'startsWith'?"),
    "a_function_of_another_language": ('device.driver.toLower() == "a"', 22, "unknown function", "'lowerAscii'?"),
    "length": ("device.driver.length() > 1", 21, "unknown function 'length'", "did you mean 'size'?"),
    "too_many_arguments": (
        'device.driver.startsWith("a", "b")',
        25,
        "string, string)",
        "want string.startsWith(string)",
    ),
    "an_argument_of_another_type": ("device.driver.contains(1)", 23, "contains(int)", "want string.contains(string)"),
    "a_macro_without_its_variable": (
        "[1].filter(true) == []",
        11,
        "'filter'",
        "want list.filter(x, expression with x)",
    ),
    "an_arrow": ("[1].all(x => x > 0)", 11, "'=>'", "want a comma: list.all(x, expression with x)"),
    "a_parenthesis_that_is_not_closed": ('(device.driver == "a"', 22, "unexpected end", "want ')'"),
    "a_bracket_that_is_not_closed": ('device.attributes["d".model == "a"', 35, "unexpected end", "want ']'"),
    "a_parenthesis_too_many": ('device.driver == "a")', 21, "unexpected ')'", "want an operator or the end"),
    "a_result_that_is_no_bool": ("device.driver", 1, "gives a string", "want a bool; compare it, as in a == b"),
    "elements_of_two_types": ('device.driver in ["a", 1]', 24, "a int after a string", "wrap all in dyn(…)"),
    "numbers_of_two_types": ("1 + 1.0 == 2.0", 3, "int + double", "convert one with int(…)"),
    "nothing": ("", 1, "unexpected end", "want an expression"),
    "if": ('true if device.driver == "a" else false', 6, "'if' is a reserved word", "want condition ? value : other"),
    "then": ("if true then true else false", 1, "'if' is a reserved word", "want condition ? value : other"),
    "an_int_as_a_condition": ("true && 1", 9, "a int", "want a bool"),
    "an_optional_that_is_compared": (f'{A}.?model == "H100"', 31, "optional_type(dyn) == string", "a.orValue(…) == b"),
    "an_optional_as_the_result": (f"{A}.?healthy", 1, "gives an optional_type(dyn)", "write a.orValue(…)"),
    "has_of_an_index": (f"has({A})", 22, "has()", "as in has(a.b)"),
    "a_pattern_that_is_not_closed": ('device.driver.matches("[a-")', 23, "missing ]", "want a pattern of RE2"),
    "a_pattern_that_looks_ahead": ('device.driver.matches("(?=a)b")', 23, "no pattern", "which has no look-around"),
    "a_duration_in_words": ('duration("1 hour") > duration("1s")', 10, "'1 hour' is no duration", "like '1h30m'"),
    "a_comment_of_another_language": ("true # gpu", 6, "'#'", "want '//' before a comment"),
    "an_end_mark": ("true;", 5, "';'", "want a single expression"),
    "a_reserved_word_as_a_field": (f"{A}.in == 1", 24, "'in' is a reserved word", "want the name of a field"),
    "a_number_that_is_too_large": (
        "9223372036854775808 > 0",
        1,
        "9223372036854775808",
        "does not fit an int of 64 bits",
    ),
}
DEVICE = DeviceInput(
    "d",
    {"model": DeviceAttribute(string="H100"), "version": DeviceAttribute(version="1.2.3")},
    {"memory": DeviceCapacity(value=Quantity.parse("80Gi"))},
    name="gpu-0",
)
FAULTS = {
    "an_attribute_that_is_missing": (f'{A}.vendor == "a"', "no such key: vendor"),
    "a_capacity_that_is_missing": ('device.capacity["d"].cores.isInteger()', "no such key: cores"),
    "a_quantity_that_is_none": (f'{M}.compareTo(quantity("80GB")) >= 0', "80GB"),
    "a_version_that_is_none": ('semver("1.2") == semver("1.2.0")', "1.2"),
    "an_attribute_of_another_type": (f"{A}.model > 1", "no such overload"),
}


@pytest.mark.parametrize(("expression", "column", "found", "wanted"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_told_with_its_place_and_what_to_write(
    expression: str, column: int, found: str, wanted: str
) -> None:
    with pytest.raises(CompileError) as caught:
        compile_selector(expression)

    issue = caught.value.issues[-1]
    assert (issue.line, issue.column + 1) == (1, column)
    assert found in str(issue)
    assert wanted in str(issue)
    assert "\n" not in str(issue)


@pytest.mark.parametrize(("expression", "reason"), FAULTS.values(), ids=FAULTS)
def test_a_mistake_that_only_a_device_shows_is_told_with_the_device(expression: str, reason: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        compile_selector(expression).evaluate(DEVICE)

    assert "gpu-0" in str(caught.value)
    assert repr(expression) in str(caught.value)
    assert reason in str(caught.value)


def test_a_missing_attribute_is_told_with_the_guard() -> None:
    with pytest.raises(EvaluationError, match=r"has\(|\.\?"):
        compile_selector(f'{A}.vendor == "a"').evaluate(DEVICE)
