"""`"text %s".format([values])`, printed as Go prints in American English."""

import math
from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext
from typing import Final

from dra_driver.cel.error import Fault
from dra_driver.cel.function import Library, Overload
from dra_driver.cel.library.conversion import to_text
from dra_driver.cel.library.standard import check_length
from dra_driver.cel.type import DYN, STRING, list_of
from dra_driver.cel.value import INT_MAX, LISTS, MAPS, Duration, Timestamp, TypeValue, Uint, Value, type_name

LAYOUT: Final = Library()
_PRECISION: Final = 6
_MAX_DIGITS: Final = 19
# Go reads no further digit of a number in a clause that is above this, and then sees no verb.
_MAX_NUMBER: Final = 10**6
_NO_VERB: Final = "%!(NOVERB)"
# No double has more digits after its point, or in all.
_FRACTION: Final = 1074
_EXACT: Final = Context(prec=1500, rounding=ROUND_HALF_EVEN)
_SHORT: Final = Context(prec=_PRECISION + 1, rounding=ROUND_HALF_EVEN)
_NAMED: Final = frozenset(("NaN", "Infinity", "-Infinity"))
_SUPERSCRIPT: Final = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_PLAIN: Final = (int, Uint, float, bool, str, Timestamp, bytes, Duration, TypeValue)
_ESCAPES: Final = {"\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v"}


def parse_layout(text: str, clause: Callable[[int, str, int | None], str], count: int) -> tuple[str, int]:
    """Put what `clause(place, letter, precision)` gives in place of each clause. Give the text and their number."""
    parts: list[str] = []
    position = used = 0
    while (start := text.find("%", position)) >= 0:
        parts.append(text[position:start])
        if text[start + 1 : start + 2] == "%":
            parts.append("%")
            position = start + 2
            continue
        if used >= count:
            raise Fault(f"index {used} out of range")
        letter, precision, position = _read_clause(text, start + 1)
        parts.append(clause(used, letter, precision))
        used += 1
        check_length(sum(map(len, parts[-2:])))
    parts.append(text[position:])
    return "".join(parts), used


def _read_clause(text: str, position: int) -> tuple[str, int | None, int]:
    precision = None
    if position >= len(text):
        raise Fault("unexpected end of string")
    if text[position] == ".":
        start = position = position + 1
        while position < len(text) and "0" <= text[position] <= "9":
            position += 1
        digits = text[start:position]
        if position >= len(text):
            raise Fault("could not find end of precision specifier")
        if not digits or len(digits.lstrip("0")) > _MAX_DIGITS or int(digits) > INT_MAX:
            raise Fault(f"precision {digits[:30]!r}, want a number")
        precision = int(digits)
    if text[position] not in "sdfebxXo":
        raise Fault(f"unrecognized formatting clause {text[position]!r}")
    return text[position], precision, position + 1


def format_text(text: str, values: Value) -> str:
    """`text.format(values)`."""
    arguments = tuple(values)

    def clause(place: int, letter: str, precision: int | None) -> str:  # noqa: PLR0911 - a case of each kind
        value = arguments[place]
        match letter:
            case "s":
                return format_string(value)
            case "d":
                return _decimal(value)
            case "f":
                return _fixed(_double(value), _PRECISION if precision is None else precision)
            case "e":
                return _scientific(_double(value), _PRECISION if precision is None else precision)
            case "b":
                return _binary(value)
            case "o":
                return _octal(value)
            case _:
                return _hexadecimal(value, upper=letter == "X")

    return parse_layout(text, clause, len(arguments))[0]


def _unfit(letter: str, value: Value) -> Fault:
    return Fault(f"%{letter} does not take a {type_name(value)}")


def format_string(value: Value) -> str:
    """Print a value as `%s` does."""
    if isinstance(value, LISTS):
        return f"[{', '.join(map(_quoted, value))}]"
    if isinstance(value, MAPS):
        return _map(value)
    if value is None:
        return "null"
    if not isinstance(value, _PLAIN):
        raise _unfit("s", value)
    return to_text(value)


def _map(value: Value) -> str:
    pairs = []
    for key, each in value.items():
        if type(key) not in (str, bool, int, Uint):
            raise Fault(f"no formatting function for map key of type {type_name(key)}")
        pairs.append((_quoted(key), _quoted(each)))
    pairs.sort(key=lambda pair: pair[0].encode())
    return "{" + ", ".join(f"{key}:{each}" for key, each in pairs) + "}"


def _quoted(value: Value) -> str:
    """Print an element of a list or a map."""
    match value:
        case Timestamp():
            return f"timestamp({quote_go(to_text(value))})"
        case Duration():
            return f"duration({quote_go(to_text(value))})"
        case str():
            return quote_go(value)
        case bytes():
            return f"b{quote_go(to_text(value))}"
        case float():
            text = "NaN" if value != value else f"{value:.6f}"  # noqa: PLR0124 - NaN
            return {"inf": '"+Inf"', "-inf": '"-Inf"', "NaN": '"NaN"'}.get(text, text)
        case _:
            return format_string(value)


def quote_go(text: str) -> str:
    """Quote a text as Go does."""
    parts = ['"']
    for character in text:
        code = ord(character)
        if character in '"\\':
            parts.append("\\" + character)
        elif character in _ESCAPES:
            parts.append(_ESCAPES[character])
        elif character == " " or (character.isprintable() and not character.isspace()):
            parts.append(character)
        elif code < 0x80:  # noqa: PLR2004 - ASCII
            parts.append(f"\\x{code:02x}")
        else:
            parts.append(f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")  # noqa: PLR2004 - of 16 bits
    parts.append('"')
    return "".join(parts)


def _decimal(value: Value) -> str:
    if type(value) not in (int, Uint):
        raise _unfit("d", value)
    return str(int(value))


def _double(value: Value) -> float:
    if type(value) is str and value in _NAMED:
        return float(value)
    if type(value) is not float:
        raise _unfit("f", value)
    return float(value)


def _fixed(value: float, precision: int) -> str:
    """Print as `%.2f` does. Go keeps the number of digits in 8 bits, as the least, and in 16, as the most."""
    if precision // 10 > _MAX_NUMBER:
        return _NO_VERB
    if not math.isfinite(value):
        return _unreal(value)
    least, most = precision % 2**8, (precision + 2**15) % 2**16 - 2**15
    exact = Decimal(value or 0) if most >= 0 else Decimal(repr(value or 0.0))
    if most >= 0:
        with localcontext(_EXACT):
            exact = exact.quantize(Decimal(1).scaleb(-min(most, _FRACTION)))
    whole, _, fraction = f"{exact:,f}".partition(".")
    fraction = fraction.rstrip("0").ljust(least, "0")
    return f"{whole}.{fraction}" if fraction else whole


def _scientific(value: float, width: int) -> str:
    """Print as `%6e` does: what looks like a precision is the width, and there are always 6 digits."""
    if width // 10 > _MAX_NUMBER:
        return _NO_VERB
    text = _unreal(value)
    if math.isfinite(value):
        with localcontext(_SHORT):
            rounded = +Decimal(value or 0)
        exponent = rounded.adjusted() if value else 0
        digits = "".join(map(str, rounded.as_tuple().digits)).ljust(_PRECISION + 1, "0")
        power = f"{'-' if exponent < 0 else ''}{abs(exponent):02d}".translate(_SUPERSCRIPT)
        text = f"{'-' if value < 0 else ''}{digits[0]}.{digits[1:]}×10{power}"  # noqa: RUF001 - as Go prints powers
    return text.rjust(width % 2**16)


def _unreal(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "∞" if value > 0 else "-∞"


def _binary(value: Value) -> str:
    if type(value) is bool:
        return "1" if value else "0"
    if type(value) not in (int, Uint):
        raise _unfit("b", value)
    return f"{int(value):b}"


def _octal(value: Value) -> str:
    if type(value) not in (int, Uint):
        raise _unfit("o", value)
    return f"{int(value):o}"


def _hexadecimal(value: Value, *, upper: bool) -> str:
    match value:
        case str():
            text = value.encode().hex()
        case bytes():
            text = value.hex()
        case int() if type(value) is not bool:
            text = f"{int(value):x}"
        case _:
            raise _unfit("x", value)
    return text.upper() if upper else text


LAYOUT.add(
    "format",
    Overload("string_format", (STRING, list_of(DYN)), STRING, member=True, run=format_text, varargs=True),
)
