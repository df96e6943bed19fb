"""Quantities that remember how upstream holds them.

A `resource.Quantity` is a whole number with a decimal exponent if that fits 64 bits when it is parsed, else a decimal
of any size. `isInteger`, `asInteger` and `asApproximateFloat` go by that, not by the value: "2000m" is no integer.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from dra_driver.api.quantity import Format, Quantity
from dra_driver.cel.value import INT_MAX, INT_MIN, register

_TEXT: Final = re.compile(r"[+-]?([0-9]*)(?:\.([0-9]*))?([eE][+-]?[0-9]+|[KMGTPE]i|[numkMGTPE]?)")
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DIGITS: Final = 18
_BINARY_DIGITS: Final = 15
_NANO: Final = 9


@dataclass(frozen=True, slots=True)
class Amount:
    """`value` · 10^`exponent`; without `value` a decimal with -`exponent` places."""

    value: int | None
    exponent: int

    def whole(self) -> int | None:
        """Give it as a number of 64 bits, if upstream can."""
        if self.value is None or self.exponent < 0:
            return None
        return _scaled(self.value, self.exponent)


class ParsedQuantity(Quantity):
    """A quantity that was read from a text."""

    __slots__ = ("amount",)

    amount: Amount

    def __init__(self, nanos: int, format_: Format, amount: Amount) -> None:
        super().__init__(nanos, format_)
        object.__setattr__(self, "amount", amount)


class QuantityResult(ParsedQuantity):
    """A quantity that was computed. Upstream holds it by pointer, which equality notices."""

    __slots__ = ()


register(ParsedQuantity, "kubernetes.Quantity")
register(QuantityResult, "kubernetes.Quantity")


def parse_amount(text: str) -> ParsedQuantity:
    """Read a quantity. Raises ValueError."""
    quantity = Quantity.parse(text)
    return ParsedQuantity(quantity.nanos, quantity.format, read_amount(text, quantity))


def amount_of(quantity: Quantity) -> Amount:
    """Tell how upstream holds a quantity; one of a device as if it had been read from its canonical form."""
    if isinstance(quantity, ParsedQuantity):
        return quantity.amount
    return _canonical(quantity.nanos, quantity.format)


@lru_cache(4096)
def _canonical(nanos: int, format_: Format) -> Amount:
    quantity = Quantity(nanos, format_)
    return read_amount(str(quantity), quantity)


def read_amount(text: str, quantity: Quantity) -> Amount:
    """Tell how upstream holds what it reads from a text."""
    match = _TEXT.fullmatch(text)
    big = Amount(None, -_NANO)
    if match is None:
        return big
    whole, places, suffix = match[1].lstrip("0") or "0", match[2] or "", match[3]
    if suffix in _BINARY:
        exponent = _BINARY[suffix]
        if places or _BINARY_DIGITS - len(whole) - exponent * 3 // 10 - 1 < 0:
            return big
        value = int(whole) << exponent
        return Amount(-value if text[0] == "-" else value, 0)
    exponent = _DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:])
    if len(whole) + len(places) > _DIGITS or exponent - len(places) < -_NANO:
        return big if quantity.nanos else Amount(None, 0)
    value = int(whole + places)
    return Amount(-value if text[0] == "-" else value, exponent - len(places))


def add_amounts(left: Quantity, right: Quantity, *, sign: int = 1) -> QuantityResult:
    """Add, or with `sign` -1 subtract. Upstream cannot negate the smallest number; neither do we."""
    total = left + right if sign > 0 else left - right
    one, two = amount_of(left), amount_of(right)
    amount = None
    if one.value is not None and two.value is not None:
        addend = two.value if two.value == INT_MIN else sign * two.value
        amount = _add(one.value, one.exponent, addend, two.exponent)
    if amount is None:
        return QuantityResult(total.nanos, total.format, Amount(None, min(one.exponent, two.exponent)))
    value, exponent = amount
    return QuantityResult(value * 10 ** (exponent + _NANO), total.format, Amount(value, exponent))


def _add(left: int, left_exponent: int, right: int, right_exponent: int) -> tuple[int, int] | None:
    if right == 0:
        return left, left_exponent
    if left == 0:
        return right, right_exponent
    exponent = min(left_exponent, right_exponent)
    one, two = _scaled(left, left_exponent - exponent), _scaled(right, right_exponent - exponent)
    if one is None or two is None or not INT_MIN <= one + two <= INT_MAX:
        return None
    return one + two, exponent


def _scaled(value: int, exponent: int) -> int | None:
    if value == 0:
        return 0
    if exponent > _DIGITS:
        return None
    scaled = value * int(10**exponent)
    return scaled if INT_MIN <= scaled <= INT_MAX else None


def as_float(quantity: Quantity) -> float:
    """Give a double near the value."""
    amount = amount_of(quantity)
    base = amount.value
    if base is None:
        places = -amount.exponent
        base = quantity.nanos * 10 ** (places - _NANO) if places >= _NANO else quantity.nanos // 10 ** (_NANO - places)
    try:
        return float(base) if amount.exponent == 0 else float(base) * _power(amount.exponent)
    except OverflowError:
        return float("inf") if base > 0 else float("-inf")


def _power(exponent: int) -> float:
    return float(f"1e{exponent}")
