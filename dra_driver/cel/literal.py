"""The values of literals: escapes, and numbers that fit their types."""

from typing import Final

from dra_driver.cel.value import INT_MAX, INT_MIN, UINT_MAX, Uint, Value

_SIMPLE: Final = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}
_WIDTH: Final = {"x": 2, "X": 2, "u": 4, "U": 8}
_MAX_DIGITS: Final = 40


class LiteralError(ValueError):
    """A literal that means no value."""


KINDS: Final = frozenset(("int", "uint", "double", "string", "bytes", "true", "false", "null"))


def parse_literal(kind: str, text: str, *, negative: bool) -> Value:  # noqa: PLR0911 - a kind each
    """Give the value of a word; `negative` if a sign stands before it. Raises LiteralError."""
    match kind:
        case "int":
            return parse_int(text, negative=negative)
        case "double":
            value = parse_double(text)
            return -value if negative else value
        case _ if negative:
            raise LiteralError(f"a sign before {text[:30]}, want a number")
        case "uint":
            return parse_uint(text)
        case "string":
            return parse_string(text)
        case "bytes":
            return parse_bytes(text[1:])
        case "null":
            return None
        case _:
            return kind == "true"


def parse_int(text: str, *, negative: bool) -> int:
    """Give the value of `12` or `0x1f`."""
    value = _whole(text)
    value = -value if negative else value
    if not INT_MIN <= value <= INT_MAX:
        raise LiteralError(f"{text[:30]} does not fit an int of 64 bits")
    return value


def parse_uint(text: str) -> Uint:
    """Give the value of `12u`."""
    value = _whole(text[:-1])
    if value > UINT_MAX:
        raise LiteralError(f"{text[:30]} does not fit a uint of 64 bits")
    return Uint(value)


def _whole(text: str) -> int:
    digits, base = (text[2:], 16) if text.startswith("0x") else (text, 10)
    digits = digits.lstrip("0") or "0"
    if len(digits) > _MAX_DIGITS:
        raise LiteralError(f"{text[:30]}… has {len(digits)} digits")
    return int(digits, base)


def parse_double(text: str) -> float:
    """Give the value of `1.5e3`."""
    value = float(text)
    if value == float("inf"):
        raise LiteralError(f"{text[:30]} does not fit a double")
    return value


def parse_string(text: str) -> str:
    """Give the value of a string with its quotes."""
    raw, body = _strip_quotes(text)
    return body if raw or "\\" not in body else _unescape(body)


def parse_bytes(text: str) -> bytes:
    """Give the value of bytes, without the leading `b`; hexadecimal and octal escapes are bytes, the rest is UTF-8."""
    raw, body = _strip_quotes(text)
    if raw or "\\" not in body:
        return body.encode()
    return _unescape_bytes(body)


def _strip_quotes(text: str) -> tuple[bool, str]:
    raw = text[0] in "rR"
    text = text[1:] if raw else text
    width = 3 if text[:3] in ('"""', "'''") and len(text) >= 6 else 1  # noqa: PLR2004 - both quotes
    body = text[width:-width]
    return raw, body.replace("\r\n", "\n").replace("\r", "\n")


def _unescape(body: str) -> str:
    parts = []
    position = 0
    while position < len(body):
        start = body.find("\\", position)
        if start < 0:
            parts.append(body[position:])
            break
        parts.append(body[position:start])
        mark = body[start + 1]
        if mark in _WIDTH or mark in "0123":
            code, position = _code_point(body, start, mark)
            if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:  # noqa: PLR2004 - the ranges of Unicode
                raise LiteralError(f"{body[start:position]} is no Unicode code point")
            parts.append(chr(code))
        else:
            parts.append(_SIMPLE.get(mark, mark))
            position = start + 2
    return "".join(parts)


def _unescape_bytes(body: str) -> bytes:
    parts = bytearray()
    position = 0
    while position < len(body):
        start = body.find("\\", position)
        if start < 0:
            parts += body[position:].encode()
            break
        parts += body[position:start].encode()
        mark = body[start + 1]
        if mark in "uU":
            raise LiteralError(f"\\{mark} stands in bytes, want \\x")
        if mark in _WIDTH or mark in "0123":
            code, position = _code_point(body, start, mark)
            parts.append(code)
        else:
            parts += _SIMPLE.get(mark, mark).encode()
            position = start + 2
    return bytes(parts)


def _code_point(body: str, start: int, mark: str) -> tuple[int, int]:
    if mark in _WIDTH:
        end = start + 2 + _WIDTH[mark]
        return int(body[start + 2 : end], 16), end
    end = start + 4
    return int(body[start + 1 : end], 8), end
