"""YAML that people write, decoded strictly: every mistake at once, with its line and what was probably meant."""

import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar

import msgspec
import yaml

from dra_driver.errors import FieldError, InvalidError
from dra_driver.suggestion import explain_meant

T = TypeVar("T")

MAX_LENGTH = 64 * 1024
"""The most characters that a person writes; what is longer would keep the node waiting for the YAML library."""

Path = tuple[str | int, ...]
"""Where something stands in a document: field names and list indices, from the outside in."""


class Written(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Base of what people write; unknown fields are refused."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, and where."""

    path: Path
    text: str


@dataclass(frozen=True, slots=True)
class Document:
    """A YAML document: its plain value, and the lines its parts stand on. `subject` names it in errors."""

    subject: str
    value: Any
    root: yaml.Node | None

    def build_error(self, problems: Iterable[Problem]) -> InvalidError:
        """Turn problems into one error that tells the lines."""
        return InvalidError(self.subject, [self._field_error(problem) for problem in problems])

    def _field_error(self, problem: Problem) -> FieldError:
        line = _line_of(self.root, problem.path)
        where = f" (line {line})" if line else ""
        return FieldError(render_path(problem.path), f"{problem.text}{where}")


def parse_document(text: str, subject: str) -> Document:
    """Read YAML. Raises InvalidError with line and column if it is malformed or says a key twice."""
    if len(text) > MAX_LENGTH:
        raise InvalidError(subject, [FieldError("", f"{len(text)} characters, want at most {MAX_LENGTH}")])
    try:
        root, value = _load(text)
        repeated = list(_repeated_keys(root, (), set()))
    except yaml.MarkedYAMLError as error:
        raise InvalidError(subject, [FieldError("", _malformed(error))]) from error
    except (LookupError, AttributeError):  # what the library makes of `!!bool x` and `!!timestamp x`
        problem = "malformed YAML, a value is not of the type that its tag says"
        raise InvalidError(subject, [FieldError("", problem)]) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InvalidError(subject, [FieldError("", f"malformed YAML, {str(error).splitlines()[0]}")]) from error
    document = Document(subject, value, root)
    if repeated:
        raise document.build_error(repeated)
    return document


def decode_document(document: Document, want: type[T]) -> T:
    """Convert a document to a struct. Raises InvalidError with every unknown, missing or mistyped field."""
    problems = list(_problems(document.value, want, ()))
    if problems:
        raise document.build_error(problems)
    return msgspec.convert(document.value, want)


def render_path(path: Path) -> str:
    """A path as people write it: `devices[0].model`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


def _load(text: str) -> tuple[yaml.Node | None, Any]:
    loader = yaml.SafeLoader(text)
    root = loader.get_single_node()
    return root, None if root is None else loader.construct_document(root)


_PLAIN = {
    "`": "",
    " | null": "",
    "object": "a mapping",
    "array": "a list",
    "str": "text",
    "int": "a whole number",
    "bool": "true or false",
    " | ": " or ",
}
"""What msgspec calls the types, and what people call them."""


def _malformed(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    return f"{where}malformed YAML, {error.problem or error.context}"


def _repeated_keys(node: yaml.Node | None, path: Path, visited: set[yaml.Node]) -> Iterator[Problem]:
    """Yield keys that stand twice in a mapping. A node that many aliases name is looked at once."""
    if node is None or node in visited:
        return
    visited.add(node)
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield from _repeated_keys(item, (*path, index), visited)
    elif isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            inner = (*path, str(key.value))
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                yield Problem(inner, "stands here twice")
            seen.add(str(key.value))
            yield from _repeated_keys(value, inner, visited)


def _line_of(node: yaml.Node | None, path: Path) -> int:
    """The line of the deepest part of the path that exists, 0 in an empty document."""
    line = node.start_mark.line + 1 if node else 0
    for part in path:
        key, node = _child(node, part)
        if key is None:
            break
        line = key.start_mark.line + 1
    return line


def _child(node: yaml.Node | None, part: str | int) -> tuple[yaml.Node | None, yaml.Node | None]:
    """A part of a node: the node that marks its place, and its value."""
    match node, part:
        case yaml.MappingNode(), _:
            found = [(key, value) for key, value in node.value if key.value == str(part)]
            return found[-1] if found else (None, None)
        case yaml.SequenceNode(), int() if part < len(node.value):
            return node.value[part], node.value[part]
        case _:
            return None, None


def _problems(value: Any, want: Any, path: Path) -> Iterator[Problem]:
    for option in _options(want):
        origin = typing.get_origin(option)
        match value:
            case dict() if isinstance(option, type) and issubclass(option, msgspec.Struct):
                yield from _struct_problems(value, option, path)
                return
            case dict() if origin is dict:
                wanted_key, wanted = typing.get_args(option)
                for key, item in value.items():
                    yield from _problems(key, wanted_key, (*path, str(key)))
                    yield from _problems(item, wanted, (*path, str(key)))
                return
            case list() if origin is tuple:
                for index, item in enumerate(value):
                    yield from _problems(item, typing.get_args(option)[0], (*path, index))
                return
    try:
        msgspec.convert(value, want)
    except msgspec.ValidationError as error:
        yield Problem(path, _mistyped(value, want, str(error)))


def _struct_problems(value: Mapping[Any, Any], want: type[msgspec.Struct], path: Path) -> Iterator[Problem]:
    fields = {field.encode_name: field for field in msgspec.structs.fields(want)}
    for key, item in value.items():
        if key in fields:
            yield from _problems(item, fields[key].type, (*path, key))
        else:
            yield Problem((*path, str(key)), f"unknown field{explain_meant(str(key), fields)}")
    for name, field in fields.items():
        if field.required and name not in value:
            yield Problem(path, f"field {name!r} is missing")


def _options(want: Any) -> tuple[Any, ...]:
    return (
        typing.get_args(want)
        if isinstance(want, types.UnionType) or typing.get_origin(want) is typing.Union
        else (want,)
    )


def _mistyped(value: Any, want: Any, problem: str) -> str:
    for option in _options(want):
        if isinstance(option, type) and issubclass(option, Enum) and isinstance(value, str):
            known = [str(member.value) for member in option]
            return f"unknown value {value!r}, want {' or '.join(map(repr, known))}{explain_meant(value, known)}"
    wanted = problem.removeprefix("Expected ").split(", got")[0].split(" - at")[0]
    for word, plain in _PLAIN.items():
        wanted = wanted.replace(word, plain)
    quotes = "; put it in quotes" if wanted.startswith("text") and isinstance(value, int | float) else ""
    return f"got {_shown(value)}, want {wanted}{quotes}"


def _shown(value: Any) -> str:
    match value:
        case None:
            return "nothing"
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case _:
            return repr(value)
