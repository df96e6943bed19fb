"""What `%f` and `%e` print in Kubernetes 1.37."""

import pytest

from dra_driver.cel import DeviceInput, compile_attribute

FIXED = {
    "a_negative_zero_has_no_sign": ("'%.2f'.format([-0.0])", "0.00"),
    "what_rounds_to_zero_keeps_its_sign": ("'%.2f'.format([-0.001])", "-0.00"),
    "rounding_goes_by_the_exact_value_upwards": ("'%.2f'.format([0.025])", "0.03"),
    "rounding_goes_by_the_exact_value_downwards": ("'%.2f'.format([2.675])", "2.67"),
    "a_tie_goes_to_the_even_digit": ("'%.1f'.format([0.25])", "0.2"),
    "more_digits_than_a_double_has_are_its_exact_value": ("'%.20f'.format([0.1])", "0.10000000000000000555"),
    "zeros_at_the_end_are_counted_modulo_256": ("'%.258f'.format([3.0])", "3.00"),
    "digits_beyond_16_bits_are_the_shortest": ("'%.32768f'.format([1234567.5])", "1,234,567.5"),
    "a_number_too_large_hides_the_verb": ("'%.99999999f!'.format([3.0])", "%!(NOVERB)!"),
}
SCIENTIFIC = {
    "a_negative_zero_has_no_sign": ("'%e'.format([-0.0])", "0.000000×10⁰⁰"),  # noqa: RUF001 - as Go prints powers
    "a_precision_is_the_width": ("'%.16e'.format([1.25])", "   1.250000×10⁰⁰"),  # noqa: RUF001 - as Go prints powers
    "a_small_width_changes_nothing": ("'%.1e'.format([9.99])", "9.990000×10⁰⁰"),  # noqa: RUF001 - as Go prints powers
    "rounding_up_moves_the_exponent": (
        "'%e'.format([9.9999999])",
        "1.000000×10⁰¹",  # noqa: RUF001 - as Go prints powers
    ),
    "infinity_is_padded": ("'%.9e'.format(['-Infinity'])", "       -∞"),
    "the_smallest_double_has_all_digits": (
        "'%e'.format([-5e-324])",
        "-4.940656×10⁻³²⁴",  # noqa: RUF001 - as Go prints powers
    ),
}


@pytest.mark.parametrize(("expression", "text"), FIXED.values(), ids=FIXED)
def test_fixed_point_prints_as_go_does(expression: str, text: str) -> None:
    assert compile_attribute(expression).evaluate(DeviceInput("gpu.example.com")) == text


@pytest.mark.parametrize(("expression", "text"), SCIENTIFIC.values(), ids=SCIENTIFIC)
def test_scientific_notation_prints_as_go_does(expression: str, text: str) -> None:
    assert compile_attribute(expression).evaluate(DeviceInput("gpu.example.com")) == text
