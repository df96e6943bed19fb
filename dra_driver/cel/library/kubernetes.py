"""Quantities and semantic versions."""

from typing import Final

from dra_driver.api.quantity import NANO, Format, Quantity
from dra_driver.api.semver import Semver, compare_semver, parse_semver
from dra_driver.cel.error import Fault
from dra_driver.cel.function import Library, Overload
from dra_driver.cel.library.amount import (
    Amount,
    ParsedQuantity,
    QuantityResult,
    add_amounts,
    amount_of,
    as_float,
    parse_amount,
)
from dra_driver.cel.type import BOOL, DOUBLE, INT, QUANTITY, SEMVER, STRING
from dra_driver.cel.value import INT_MAX

KUBERNETES: Final = Library()
_PARTS: Final = 3


def parse_quantity(text: str) -> ParsedQuantity:
    """`quantity(text)`."""
    try:
        return parse_amount(text)
    except ValueError as error:
        raise Fault(str(error)) from None


def _is_quantity(text: str) -> bool:
    try:
        Quantity.parse(text)
    except ValueError:
        return False
    return True


def _compare(left: Quantity, right: Quantity) -> int:
    one, two = left.nanos, right.nanos
    return (one > two) - (one < two)


def _is_integer(value: Quantity) -> bool:
    return amount_of(value).whole() is not None


def _as_integer(value: Quantity) -> int:
    whole = amount_of(value).whole()
    if whole is None:
        raise Fault("cannot convert value to integer")
    return whole


def _subtract(left: Quantity, right: Quantity) -> QuantityResult:
    return add_amounts(left, right, sign=-1)


def _whole(value: int) -> ParsedQuantity:
    return ParsedQuantity(value * NANO, Format.DECIMAL_EXPONENT, Amount(value, 0))


def parse_version(text: str, normalize: bool = False) -> Semver:  # noqa: FBT001, FBT002 - the function of the language
    """`semver(text, normalize)`."""
    try:
        return parse_semver(_normalized(text) if normalize else text)
    except ValueError as error:
        raise Fault(str(error)) from None


def _normalized(text: str) -> str:
    """Add what is missing of three numbers, take a `v` and leading zeros away."""
    parts = text.removeprefix("v").split(".", _PARTS - 1)
    for place, part in enumerate(parts):
        if len(part) > 1:
            stripped = part.lstrip("0")
            parts[place] = stripped if stripped[:1].isascii() and stripped[:1].isdigit() else "0" + stripped
    if len(parts) < _PARTS:
        if "+" in parts[-1] or "-" in parts[-1]:
            raise ValueError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (_PARTS - len(parts))
    return ".".join(parts)


def _is_version(text: str, normalize: bool = False) -> bool:  # noqa: FBT001, FBT002 - the function of the language
    try:
        parse_version(text, normalize)
    except Fault:
        return False
    return True


def _wrapped(value: int) -> int:
    """Give a number of 64 bits as a signed one."""
    return value if value <= INT_MAX else value - 2**64


_TWO: Final = (QUANTITY, QUANTITY)
KUBERNETES.add("quantity", Overload("string_to_quantity", (STRING,), QUANTITY, run=parse_quantity))
KUBERNETES.add("isQuantity", Overload("is_quantity_string", (STRING,), BOOL, run=_is_quantity))
KUBERNETES.add("sign", Overload("quantity_sign", (QUANTITY,), INT, run=Quantity.sign))
KUBERNETES.add(
    "isGreaterThan",
    Overload("quantity_is_greater_than", _TWO, BOOL, member=True, run=lambda left, right: left.nanos > right.nanos),
)
KUBERNETES.add(
    "isLessThan",
    Overload("quantity_is_less_than", _TWO, BOOL, member=True, run=lambda left, right: left.nanos < right.nanos),
)
KUBERNETES.add("compareTo", Overload("quantity_compare_to", _TWO, INT, member=True, run=_compare))
KUBERNETES.add("asApproximateFloat", Overload("quantity_get_float", (QUANTITY,), DOUBLE, member=True, run=as_float))
KUBERNETES.add("asInteger", Overload("quantity_get_int", (QUANTITY,), INT, member=True, run=_as_integer))
KUBERNETES.add("isInteger", Overload("quantity_is_integer", (QUANTITY,), BOOL, member=True, run=_is_integer))
KUBERNETES.add(
    "add",
    Overload("quantity_add", _TWO, QUANTITY, member=True, run=add_amounts),
    Overload(
        "quantity_add_int",
        (QUANTITY, INT),
        QUANTITY,
        member=True,
        run=lambda left, right: add_amounts(left, _whole(right)),
    ),
)
KUBERNETES.add(
    "sub",
    Overload("quantity_sub", _TWO, QUANTITY, member=True, run=_subtract),
    Overload(
        "quantity_sub_int",
        (QUANTITY, INT),
        QUANTITY,
        member=True,
        run=lambda left, right: _subtract(left, _whole(right)),
    ),
)
KUBERNETES.add(
    "semver",
    Overload("string_to_semver", (STRING,), SEMVER, run=parse_version),
    Overload("string_bool_to_semver", (STRING, BOOL), SEMVER, run=parse_version),
)
KUBERNETES.add(
    "isSemver",
    Overload("is_semver_string", (STRING,), BOOL, run=_is_version),
    Overload("is_semver_string_bool", (STRING, BOOL), BOOL, run=_is_version),
)
KUBERNETES.add("major", Overload("semver_major", (SEMVER,), INT, member=True, run=lambda value: _wrapped(value.major)))
KUBERNETES.add("minor", Overload("semver_minor", (SEMVER,), INT, member=True, run=lambda value: _wrapped(value.minor)))
KUBERNETES.add("patch", Overload("semver_patch", (SEMVER,), INT, member=True, run=lambda value: _wrapped(value.patch)))
KUBERNETES.add(
    "isGreaterThan",
    Overload(
        "semver_is_greater_than",
        (SEMVER, SEMVER),
        BOOL,
        member=True,
        run=lambda left, right: compare_semver(left, right) > 0,
    ),
)
KUBERNETES.add(
    "isLessThan",
    Overload(
        "semver_is_less_than",
        (SEMVER, SEMVER),
        BOOL,
        member=True,
        run=lambda left, right: compare_semver(left, right) < 0,
    ),
)
KUBERNETES.add("compareTo", Overload("semver_compare_to", (SEMVER, SEMVER), INT, member=True, run=compare_semver))
