"""Quantities and semantic versions."""

from typing import Final

from dra_driver.api.quantity import NANO, Format, Quantity
from dra_driver.api.semver import Semver, compare_semver, parse_semver
from dra_driver.cel.error import Fault
from dra_driver.cel.function import Library, Overload
from dra_driver.cel.type import BOOL, DOUBLE, INT, QUANTITY, SEMVER, STRING
from dra_driver.cel.value import INT_MAX, INT_MIN, QuantityResult

KUBERNETES: Final = Library()
_PARTS: Final = 3


def parse_quantity(text: str) -> Quantity:
    """`quantity(text)`."""
    try:
        return Quantity.parse(text)
    except ValueError as error:
        raise Fault(str(error)) from None


def _is_quantity(text: str) -> bool:
    try:
        Quantity.parse(text)
    except ValueError:
        return False
    return True


def _compare(left: Quantity, right: Quantity) -> int:
    return (left.nanos > right.nanos) - (left.nanos < right.nanos)


def _is_integer(value: Quantity) -> bool:
    """Tell whether upstream gives it as a whole number of 64 bits."""
    return value.is_integer() and INT_MIN <= value.nanos // NANO <= INT_MAX


def _as_integer(value: Quantity) -> int:
    if not _is_integer(value):
        raise Fault("cannot convert value to integer")
    return value.nanos // NANO


def _as_float(value: Quantity) -> float:
    try:
        return value.nanos / NANO
    except OverflowError:
        return float("inf") if value.nanos > 0 else float("-inf")


def _add(left: Quantity, right: Quantity) -> QuantityResult:
    total = left + right
    return QuantityResult(total.nanos, total.format)


def _subtract(left: Quantity, right: Quantity) -> QuantityResult:
    total = left - right
    return QuantityResult(total.nanos, total.format)


def _whole(value: int) -> Quantity:
    return Quantity(value * NANO, Format.DECIMAL_EXPONENT)


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
KUBERNETES.add("asApproximateFloat", Overload("quantity_get_float", (QUANTITY,), DOUBLE, member=True, run=_as_float))
KUBERNETES.add("asInteger", Overload("quantity_get_int", (QUANTITY,), INT, member=True, run=_as_integer))
KUBERNETES.add("isInteger", Overload("quantity_is_integer", (QUANTITY,), BOOL, member=True, run=_is_integer))
KUBERNETES.add(
    "add",
    Overload("quantity_add", _TWO, QUANTITY, member=True, run=_add),
    Overload(
        "quantity_add_int", (QUANTITY, INT), QUANTITY, member=True, run=lambda left, right: _add(left, _whole(right))
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
