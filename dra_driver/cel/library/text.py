"""Functions on strings: cel-go's library in version 2, and the regular expressions of Kubernetes."""

from collections.abc import Callable
from typing import Final

from dra_driver.cel.error import Abort, Fault
from dra_driver.cel.function import Library, Overload
from dra_driver.cel.library.standard import check_length, compile_pattern
from dra_driver.cel.type import INT, STRING, Type, list_of
from dra_driver.cel.value import Value

TEXTS: Final = Library()
_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER: Final = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
# What Go takes for white space.
_MAX_FOUND: Final = 20_000
_BLANK: Final = (
    "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
)
_QUOTED: Final = {
    ord(character): escape
    for character, escape in zip(
        '\a\b\f\n\r\t\v\\"', (r"\a", r"\b", r"\f", r"\n", r"\r", r"\t", r"\v", r"\\", r"\""), strict=True
    )
}


def char_at(text: str, place: int) -> str:
    """`text.charAt(place)`."""
    if not 0 <= place <= len(text):
        raise Fault(f"index out of range: {place}")
    return text[place : place + 1]


def index_of(text: str, part: str, start: int = 0) -> int:
    """`text.indexOf(part, start)`."""
    if start < 0:
        raise Fault(f"index out of range: {start}")
    if not part:
        return min(start, len(text))
    return -1 if start >= len(text) else text.find(part, start)


def last_index_of(text: str, part: str, start: int | None = None) -> int:
    """`text.lastIndexOf(part, start)`; `start` is the last place where `part` may begin."""
    if start is None:
        if not part:
            return len(text)
        if len(text.encode()) < len(part.encode()):
            return -1
        start = len(text) - 1
    if start < 0:
        raise Fault(f"index out of range: {start}")
    if not part:
        return min(start, len(text))
    return -1 if start >= len(text) else text.rfind(part, 0, start + len(part))


def replace(text: str, old: str, new: str, count: int = -1) -> str:
    """`text.replace(old, new, count)`."""
    found = text.count(old) if old else len(text) + 1
    found = found if count < 0 else min(found, count)
    check_length(len(text) + found * (len(new) - len(old)))
    if found == 0:
        return text
    return text.replace(old, new, found)


def split(text: str, separator: str, count: int = -1) -> Value:
    """`text.split(separator, count)`."""
    if count == 0:
        return ()
    if separator:
        return tuple(text.split(separator) if count < 0 else text.split(separator, min(count - 1, len(text))))
    if count < 0 or count >= len(text):
        return tuple(text)
    return (*text[: count - 1], text[count - 1 :])


def substring(text: str, start: int, end: int | None = None) -> str:
    """`text.substring(start, end)`."""
    stop = len(text) if end is None else end
    if end is not None and start > end:
        raise Fault(f"invalid substring range. start: {start}, end: {end}")
    for place in (start, stop):
        if not 0 <= place <= len(text):
            raise Fault(f"index out of range: {place}")
    return text[start:stop]


def join(parts: Value, separator: str = "") -> str:
    """`parts.join(separator)`."""
    size = 0
    for part in parts:
        if type(part) is not str:
            raise Fault(f"join: invalid input: {part!r}")
        size += len(part) + len(separator)
    check_length(size)
    return separator.join(parts)


def quote(text: str) -> str:
    """`strings.quote(text)`."""
    return f'"{text.translate(_QUOTED)}"'


def find(text: str, pattern: str) -> str:
    """`text.find(pattern)`."""
    found = compile_pattern(pattern).search(text)
    return "" if found is None else found[0]


def find_all(text: str, pattern: str, count: int = -1) -> Value:
    """`text.findAll(pattern, count)`."""
    compiled = compile_pattern(pattern)
    found: list[str] = []
    if count == 0:
        return ()
    last_end = -1
    for match in compiled.finditer(text):
        start, end = match.span()
        # An empty match right after another one does not count.
        if end > start or start != last_end:
            found.append(text[start:end])
            if len(found) == count:
                break
            if len(found) > _MAX_FOUND:
                raise Abort(f"findAll: {len(found)} parts, want at most {_MAX_FOUND}")
        last_end = end
    return tuple(found)


def _member(name: str, id_: str, parameters: tuple[Type, ...], result: Type, run: Callable[..., Value]) -> None:
    TEXTS.add(
        name,
        Overload(id_, parameters, result, member=True, run=run, varargs=len(parameters) > 2),  # noqa: PLR2004 - two sides
    )


_member("charAt", "string_char_at_int", (STRING, INT), STRING, char_at)
_member("indexOf", "string_index_of_string", (STRING, STRING), INT, index_of)
_member("indexOf", "string_index_of_string_int", (STRING, STRING, INT), INT, index_of)
_member("lastIndexOf", "string_last_index_of_string", (STRING, STRING), INT, last_index_of)
_member("lastIndexOf", "string_last_index_of_string_int", (STRING, STRING, INT), INT, last_index_of)
_member("lowerAscii", "string_lower_ascii", (STRING,), STRING, lambda text: text.translate(_LOWER))
_member("upperAscii", "string_upper_ascii", (STRING,), STRING, lambda text: text.translate(_UPPER))
_member("replace", "string_replace_string_string", (STRING, STRING, STRING), STRING, replace)
_member("replace", "string_replace_string_string_int", (STRING, STRING, STRING, INT), STRING, replace)
_member("split", "string_split_string", (STRING, STRING), list_of(STRING), split)
_member("split", "string_split_string_int", (STRING, STRING, INT), list_of(STRING), split)
_member("substring", "string_substring_int", (STRING, INT), STRING, substring)
_member("substring", "string_substring_int_int", (STRING, INT, INT), STRING, substring)
_member("trim", "string_trim", (STRING,), STRING, lambda text: text.strip(_BLANK))
_member("join", "list_join", (list_of(STRING),), STRING, join)
_member("join", "list_join_string", (list_of(STRING), STRING), STRING, join)
_member("find", "string_find_string", (STRING, STRING), STRING, find)
_member("findAll", "string_find_all_string", (STRING, STRING), list_of(STRING), find_all)
_member("findAll", "string_find_all_string_int", (STRING, STRING, INT), list_of(STRING), find_all)
TEXTS.add("strings.quote", Overload("strings_quote", (STRING,), STRING, run=quote))
