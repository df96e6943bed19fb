"""Kubernetes quantities, exact: what `resource.Quantity` of k8s.io/apimachinery parses, compares and prints.

A value is a whole number of nano-units; smaller parts are rounded away from zero when parsed, as upstream does.

Where we differ, on purpose:

* Text of more than 1,000 characters, values of more than about 1,000 digits and exponents beyond 32 bits are refused.
  Upstream lets some of them hang the process, and wraps exponents. `1e-30000000` is 1n at once.
* A decimal suffix beyond `E` does not exist; upstream prints 1000E as `1`, we print `1000E`.
* `value` and `milli_value` are not limited to 64 bits, and negative values are always rounded away from zero.
"""

import re
from enum import StrEnum
from functools import total_ordering
from typing import Final

NANO: Final = 10**9
MAX_LENGTH: Final = 1000
MAX_DIGITS: Final = 1000
_MAX_EXPONENT: Final = 2**31 - 1

# The largest value that a binary suffix can give; upstream caps it there.
_MAX_BINARY: Final = (2**63 - 1) * NANO

_PATTERN: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?(?P<suffix>[eE][+-]?[0-9]+|[KMGTPE]i|[numkMGTPE]?)"
)
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX: Final = {0: ""} | {exponent: suffix for suffix, exponent in _BINARY.items()}


class Format(StrEnum):
    """How a quantity prints."""

    BINARY_SI = "BinarySI"
    DECIMAL_SI = "DecimalSI"
    DECIMAL_EXPONENT = "DecimalExponent"


@total_ordering
class Quantity:
    """An amount. Immutable; equality, order and hash go by value, whatever the format."""

    __slots__ = ("_format", "_nanos")

    _nanos: int
    _format: Format

    def __init__(self, nanos: int, format: Format = Format.DECIMAL_SI) -> None:  # noqa: A002 - upstream's word
        object.__setattr__(self, "_nanos", nanos)
        object.__setattr__(self, "_format", format)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Quantity.{name}: is immutable")

    @classmethod
    def parse(cls, text: str) -> "Quantity":
        """Parse `text`. Raises ValueError with a text for the person who wrote it."""
        return _parse(text)

    @classmethod
    def of_bytes(cls, count: int) -> "Quantity":
        """Make a quantity of whole bytes that prints with a binary suffix: 1073741824 as `1Gi`."""
        return cls(count * NANO, Format.BINARY_SI)

    @classmethod
    def of_int(cls, count: int) -> "Quantity":
        """Make a quantity of whole units that prints with a decimal suffix."""
        return cls(count * NANO)

    @property
    def format(self) -> Format:
        """How it prints."""
        return self._format

    @property
    def nanos(self) -> int:
        """The value in nano-units, exact."""
        return self._nanos

    def value(self) -> int:
        """Give whole units, rounded away from zero."""
        return _divide_away(self._nanos, NANO)

    def milli_value(self) -> int:
        """Give thousandths, rounded away from zero."""
        return _divide_away(self._nanos, NANO // 1000)

    def is_integer(self) -> bool:
        """Tell whether it is a whole number of units."""
        return self._nanos % NANO == 0

    def sign(self) -> int:
        """Give -1, 0 or 1."""
        return (self._nanos > 0) - (self._nanos < 0)

    def __add__(self, other: "Quantity") -> "Quantity":
        return Quantity(self._nanos + other._nanos, self._format if self._nanos else other._format)

    def __sub__(self, other: "Quantity") -> "Quantity":
        return Quantity(self._nanos - other._nanos, self._format if self._nanos else other._format)

    def __neg__(self) -> "Quantity":
        return Quantity(-self._nanos, self._format)

    def __eq__(self, other: object) -> bool:
        return self._nanos == other._nanos if isinstance(other, Quantity) else NotImplemented

    def __lt__(self, other: "Quantity") -> bool:
        return self._nanos < other._nanos

    def __hash__(self) -> int:
        return hash(self._nanos)

    def __bool__(self) -> bool:
        return self._nanos != 0

    def __str__(self) -> str:
        return _render(self._nanos, self._format)

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"


def _divide_away(dividend: int, divisor: int) -> int:
    quotient = -(-abs(dividend) // divisor)
    return quotient if dividend >= 0 else -quotient


def _parse(text: str) -> Quantity:
    if len(text) > MAX_LENGTH:
        raise ValueError(f"{text[:20]!r}…: {len(text)} characters, want at most {MAX_LENGTH}")
    match = _PATTERN.fullmatch(text)
    if match is None or not text:
        raise ValueError(f"{text!r}: not a quantity, want a number with an optional suffix such as 'Gi', 'k' or 'm'")
    sign, whole, fraction, suffix = match["sign"], match["whole"], match["fraction"] or "", match["suffix"]
    unscaled = int(whole + fraction or "0")
    if not whole and not fraction and _needs_digits(suffix):
        raise ValueError(f"{text!r}: no digits, want a number before the suffix")
    if suffix in _BINARY:
        nanos = _divide_away((unscaled << _BINARY[suffix]) * NANO, 10 ** len(fraction))
        nanos = min(nanos, _MAX_BINARY)
        format_ = Format.DECIMAL_SI if 0 < nanos < NANO else Format.BINARY_SI
    else:
        is_exponent = suffix not in _DECIMAL
        exponent = int(suffix[1:]) if is_exponent else _DECIMAL[suffix]
        if abs(exponent) > _MAX_EXPONENT:
            raise ValueError(f"{text!r}: exponent {exponent}, want at most {_MAX_EXPONENT}")
        nanos = _scale(text, unscaled, exponent - len(fraction) + 9)
        format_ = Format.DECIMAL_EXPONENT if is_exponent else Format.DECIMAL_SI
    return Quantity(-nanos if sign == "-" else nanos, format_)


def _needs_digits(suffix: str) -> bool:
    """Tell whether upstream refuses the bare suffix. It reads others, and the empty number, as 0."""
    if suffix[:1] in ("e", "E") and len(suffix) > 1 and suffix not in _BINARY:
        return int(suffix[1:]) < _DECIMAL["n"]
    return suffix in ("Pi", "Ei")


def _scale(text: str, unscaled: int, exponent: int) -> int:
    """Give `unscaled` times 10^`exponent`, rounded up, for `unscaled` ≥ 0."""
    if unscaled == 0:
        return 0
    if exponent < 0:
        return 1 if -exponent > MAX_LENGTH else _divide_away(unscaled, 10**-exponent)
    if exponent > MAX_DIGITS:
        raise ValueError(f"{text!r}: too large, want at most {MAX_DIGITS} digits")
    return int(unscaled * 10**exponent)


def _render(nanos: int, format_: Format) -> str:
    if nanos == 0:
        return "0"
    if format_ is Format.BINARY_SI and nanos % NANO == 0 and abs(nanos) >= 1024 * NANO:
        return _render_binary(nanos // NANO)
    return _render_decimal(nanos, format_)


def _render_binary(units: int) -> str:
    exponent = 0
    while units % 1024 == 0 and exponent + 10 in _BINARY_SUFFIX:
        units //= 1024
        exponent += 10
    return f"{units}{_BINARY_SUFFIX[exponent]}"


def _render_decimal(nanos: int, format_: Format) -> str:
    """Print with the largest exponent that leaves a whole number and is a multiple of three."""
    exponent = -9
    limit = None if format_ is Format.DECIMAL_EXPONENT else 18
    while nanos % 1000 == 0 and exponent != limit:
        nanos //= 1000
        exponent += 3
    if format_ is Format.DECIMAL_EXPONENT:
        return f"{nanos}e{exponent}" if exponent else str(nanos)
    return f"{nanos}{_DECIMAL_SUFFIX[exponent]}"
