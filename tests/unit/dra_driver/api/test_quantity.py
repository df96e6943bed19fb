"""Quantities, against what k8s.io/apimachinery v0.37.2 answered (testdata), and against their own laws."""

import json
import time
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_driver.api.quantity import NANO, Format, Quantity

TESTDATA = Path(__file__).parent / "testdata"
SUFFIXES = ["", *"numkMGTPE", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E-2", "e+6"]


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (TESTDATA / name).read_text().splitlines()]


def numbers() -> st.SearchStrategy[str]:
    digits = st.text("0123456789", max_size=22)
    return st.builds(
        "{}{}{}".format, st.sampled_from(["", "-", "+"]), digits, st.one_of(st.just(""), digits.map(".{}".format))
    )


texts = st.builds("{}1{}".format, numbers(), st.sampled_from(SUFFIXES))
small = st.builds(Quantity, st.integers(-(10**27), 10**27), st.sampled_from(Format))


@pytest.mark.parametrize("row", rows("quantity.jsonl"), ids=lambda row: repr(row["text"]))
def test_text_reads_as_upstream_reads_it(row: dict[str, Any]) -> None:
    if "canonical" not in row:
        with pytest.raises(ValueError, match="want"):
            Quantity.parse(row["text"])
        return
    quantity = Quantity.parse(row["text"])
    assert (str(quantity), quantity.format) == (row["canonical"], row["format"])
    assert quantity.value() == row.get("value", quantity.value())
    assert quantity.milli_value() == row.get("milli", quantity.milli_value())


@pytest.mark.parametrize("row", rows("quantity_pair.jsonl"), ids=lambda row: f"{row['left']}:{row['right']}")
def test_pairs_compare_and_add_up_as_upstream(row: dict[str, Any]) -> None:
    left, right = Quantity.parse(row["left"]), Quantity.parse(row["right"])
    assert (left > right) - (left < right) == row["compare"]
    assert (str(left + right), str(left - right)) == (row["sum"], row["difference"])


@given(texts)
def test_the_canonical_form_means_the_same(text: str) -> None:
    quantity = Quantity.parse(text)
    again = Quantity.parse(str(quantity))
    assert again == quantity
    assert str(again) == str(quantity)


@given(numbers(), st.sampled_from(["n", "u", "m", "", "k", "M", "G", "T", "P", "E"]))
def test_a_decimal_is_exact_down_to_nano_units(number: str, suffix: str) -> None:
    with localcontext(prec=100):
        exponent = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}[suffix]
        exact = Decimal(f"{number}1").scaleb(exponent + 9)
        quantity = Quantity.parse(f"{number}1{suffix}")
        assert abs(exact) <= abs(quantity.nanos) < abs(exact) + 1
        assert quantity.sign() == (-1 if exact < 0 else 1)


@given(small, small)
def test_equality_order_and_hash_go_by_value(left: Quantity, right: Quantity) -> None:
    assert (left < right) == (left.nanos < right.nanos)
    assert (left == right) == (left.nanos == right.nanos)
    assert hash(left) == hash(Quantity(left.nanos, right.format))


@given(small, small)
def test_subtraction_undoes_addition(left: Quantity, right: Quantity) -> None:
    assert left + right - right == left
    assert left + -right == left - right


@given(small)
def test_values_round_away_from_zero(quantity: Quantity) -> None:
    assert abs(quantity.nanos) <= abs(quantity.value()) * NANO < abs(quantity.nanos) + NANO
    assert quantity.is_integer() == (quantity.value() * NANO == quantity.nanos)
    assert abs(quantity.nanos) <= abs(quantity.milli_value()) * 10**6 < abs(quantity.nanos) + 10**6


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0"),
        (1, "1"),
        (1000, "1k"),
        (1023, "1023"),
        (1024, "1Ki"),
        (1536, "1536"),
        (80 << 30, "80Gi"),
        (85094039552, "81152Mi"),
    ],
)
def test_bytes_print_with_a_binary_suffix(count: int, text: str) -> None:
    assert str(Quantity.of_bytes(count)) == text
    assert Quantity.of_bytes(count).value() == count


@pytest.mark.parametrize(
    "text",
    ["1e1000000000", "1E3000000000", "1e-3000000000", "1" * 1001, "1e" + "9" * 900, "0." + "0" * 5000 + "1"],
    ids=["large", "beyond 32 bits", "below 32 bits", "long", "long exponent", "long fraction"],
)
def test_hostile_text_is_refused_at_once(text: str) -> None:
    before = time.process_time()
    with pytest.raises(ValueError, match="want at most"):
        Quantity.parse(text)
    assert time.process_time() - before < 0.5


@pytest.mark.parametrize("text", ["1e-30000000", "1e-2147483647", "9" * 900 + "e-2000000000"])
def test_a_vanishing_amount_is_one_nano_unit_at_once(text: str) -> None:
    before = time.process_time()
    assert Quantity.parse(text).nanos == 1
    assert time.process_time() - before < 0.5


def test_a_decimal_amount_beyond_the_last_suffix_keeps_its_value() -> None:
    assert str(Quantity.parse("1000E")) == "1000E"


def test_a_quantity_cannot_be_changed() -> None:
    with pytest.raises(AttributeError, match="immutable"):
        Quantity.parse("1")._nanos = 2


def test_a_quantity_is_not_a_number() -> None:
    assert Quantity.parse("1") != 1
    assert not Quantity.parse("0")
    assert repr(Quantity.of_int(5000)) == "Quantity('5k')"
