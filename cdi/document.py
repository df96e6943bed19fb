"""JSON or YAML bytes as a plain tree, before anything is known about what they mean.

A runtime reads every spec file as YAML, of which JSON is a part, whatever its extension. Here a text that starts like
JSON is tried as JSON first, since that gives the better messages, unless it has characters or escapes that YAML takes
for something else. Unlike the usual loaders this one refuses repeated keys, and keeps how numbers and truth values are
written: where a name is wanted, `0` is "0" and `1.0` is "1.0".
"""

import json
import re
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeAlias

import yaml

from cdi.errors import InvalidSpecError, Problem


@dataclass(frozen=True, slots=True)
class Scalar:
    """An unquoted number or truth value: what it is, and how it is written."""

    value: int | float | bool
    text: str


Tree: TypeAlias = "dict[str, Tree] | list[Tree] | str | Scalar | None"

_Loader: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG: Final = "tag:yaml.org,2002:"
_OCTAL: Final = re.compile(r"0o[0-7]+")
_YAML_DIFFERS: Final = re.compile(r"[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]|\\u[dD][89abAB]..\\u[dD][c-fC-F]")
_MAX_DEPTH: Final = 64


class _DocumentError(Exception):
    """Why a text is no document."""


def parse_document(data: bytes, subject: str) -> Tree:
    """Parse JSON or YAML in UTF-8. Raises InvalidSpecError with the place of what is not well-formed."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidSpecError(subject, [Problem("", f"byte {error.start} is not UTF-8, want JSON or YAML")]) from None
    json_error: _DocumentError | None = None
    if text.lstrip().startswith("{") and not _YAML_DIFFERS.search(text):
        try:
            return _parse_json(text)
        except _DocumentError as error:
            json_error = error
    try:
        return _parse_yaml(text)
    except _DocumentError as error:
        raise InvalidSpecError(subject, [Problem("", str(json_error or error))]) from None


def _parse_json(text: str) -> Tree:
    try:
        return _wrap_booleans(
            json.loads(
                text,
                object_pairs_hook=_refuse_repetition,
                parse_int=lambda digits: Scalar(int(digits), digits),
                parse_float=lambda digits: Scalar(float(digits), digits),
                parse_constant=_refuse_constant,
            )
        )
    except json.JSONDecodeError as error:
        message = error.msg[:1].lower() + error.msg[1:]
        raise _DocumentError(f"line {error.lineno} column {error.colno} is not JSON: {message}") from None
    except ValueError:
        raise _DocumentError("a number has too many digits, want at most 64 bits") from None
    except RecursionError:
        raise _DocumentError("objects nest too deep, want a CDI spec") from None


def _refuse_repetition(pairs: list[tuple[str, Tree]]) -> Tree:
    fields: dict[str, Tree] = {}
    for key, value in pairs:
        if key in fields:
            raise _DocumentError(f"field {key!r} stands twice in one object, want it once")
        fields[key] = value
    return fields


def _wrap_booleans(tree: Any) -> Tree:
    match tree:
        case dict():
            return {key: _wrap_booleans(value) for key, value in tree.items()}
        case list():
            return [_wrap_booleans(item) for item in tree]
        case bool():
            return Scalar(tree, "true" if tree else "false")
        case str() | Scalar() | None:
            return tree
    raise _DocumentError(f"{tree!r} is not JSON, want a CDI spec")


def _refuse_constant(text: str) -> NoReturn:
    raise _DocumentError(f"{text} is not JSON, want a number")


def _parse_yaml(text: str) -> Tree:
    try:
        node = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"line {mark.line + 1} column {mark.column + 1}" if mark else "the text"
        raise _DocumentError(f"{place} is not YAML: {error.problem or error.context}") from None
    except yaml.reader.ReaderError as error:
        raise _DocumentError(f"character {error.position} is not YAML: {error.reason}") from None
    except RecursionError:
        raise _DocumentError("objects nest too deep, want a CDI spec") from None
    return _NodeReader().read(node, _MAX_DEPTH) if node is not None else None


class _NodeReader:
    """Turns YAML nodes into a tree. What an alias repeats is read once, so that aliases of aliases stay cheap."""

    def __init__(self) -> None:
        self._done: dict[int, Tree] = {}
        self._constructor = yaml.constructor.SafeConstructor()

    def read(self, node: yaml.Node, depth: int) -> Tree:
        if id(node) not in self._done:
            self._done[id(node)] = self._read(node, depth)
        return self._done[id(node)]

    def _read(self, node: yaml.Node, depth: int) -> Tree:
        if depth == 0:  # an alias of what it stands in ends here, too
            raise _DocumentError(f"{_line(node)} nests too deep, want a CDI spec")
        match node:
            case yaml.MappingNode():
                return self._read_mapping(node, depth)
            case yaml.SequenceNode():
                return [self.read(item, depth - 1) for item in node.value]
            case yaml.ScalarNode():
                return self._read_scalar(node)
        raise _DocumentError(f"{_line(node)} is a node of an unknown type, want a CDI spec")

    def _read_mapping(self, node: yaml.MappingNode, depth: int) -> Tree:
        fields: dict[str, Tree] = {}
        merged: dict[str, Tree] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _DocumentError(f"{_line(key)} has an object or a list as a key, want a string")
            if key.tag == f"{_TAG}merge":
                merged |= self._read_merge(value, depth)
            elif key.value in fields:
                raise _DocumentError(f"{_line(key)} repeats the field {key.value!r}, want it once")
            else:
                fields[key.value] = self.read(value, depth - 1)
        return merged | fields

    def _read_merge(self, node: yaml.Node, depth: int) -> dict[str, Tree]:
        source = self.read(node, depth - 1)
        merged: dict[str, Tree] = {}
        for part in reversed(source if isinstance(source, list) else [source]):  # the first in the list wins
            if not isinstance(part, dict):
                raise _DocumentError(f"{_line(node)} merges what is no object, want one")
            merged |= part
        return merged

    def _read_scalar(self, node: yaml.ScalarNode) -> Tree:
        match node.tag.removeprefix(_TAG):
            case "null":
                return None
            case "bool" | "int" | "float":
                return self._read_number(node)
            case "str" if not node.style and _OCTAL.fullmatch(node.value):
                return Scalar(int(node.value, 8), node.value)
            case "str" | "timestamp" | "value" | "merge":
                return str(node.value)
        raise _DocumentError(f"{_line(node)} has the tag {node.tag!r}, want a plain value")

    def _read_number(self, node: yaml.ScalarNode) -> Tree:
        if ":" in node.value:  # base 60 is of YAML 1.1 only
            return str(node.value)
        try:
            return Scalar(self._constructor.construct_object(node), node.value)
        except (ValueError, yaml.YAMLError, KeyError):
            return str(node.value)


def _line(node: yaml.Node) -> str:
    return f"line {node.start_mark.line + 1}"
