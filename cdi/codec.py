"""Specs as bytes: JSON out, JSON or YAML in.

Reading is as strict as a runtime is, since a field that nobody knows is a device that does not work: unknown and
repeated fields are refused. `null` is the same as absent. A number or truth value where text is wanted is taken as it
is written, for device names such as `0`. Only slips that the reference overlooks are refused on top: `null` in a list,
`1.0` for an integer, `'yes'` for a truth value, private YAML tags, a second YAML document.
"""

import re
from collections.abc import Collection
from difflib import get_close_matches
from typing import Final

import msgspec
from msgspec import inspect, structs

from cdi.document import Scalar, Tree, parse_document
from cdi.errors import InvalidSpecError, Problem
from cdi.spec import NO_EDITS, Spec
from cdi.validation import require_valid

_ENCODER: Final = msgspec.json.Encoder(order="deterministic")
_SPEC_TYPE: Final = inspect.type_info(Spec)
_ESCAPED: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""Characters that stand for themselves in JSON, but not in YAML, as which a runtime reads it."""


def encode_spec(spec: Spec) -> bytes:
    """Encode as JSON, absent fields left out, with a line feed at the end. Equal specs give equal bytes.

    Nothing else is validated here: see `validate_spec`. Raises InvalidSpecError if a text cannot be UTF-8.
    """
    if spec.container_edits == NO_EDITS:  # only the default itself is left out, not what equals it
        spec = structs.replace(spec, container_edits=NO_EDITS)
    try:
        text = _ENCODER.encode(spec).decode()
    except UnicodeEncodeError as error:
        raise InvalidSpecError("spec", [Problem("", f"{error.object!r} cannot be UTF-8, want text that can")]) from None
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode() + b"\n"


def decode_spec(data: bytes, subject: str = "spec") -> Spec:
    """Decode and validate JSON or YAML. `subject`, such as the path of the file, starts the text of an error.

    Raises InvalidSpecError: with the place if the text is not well-formed; else with every unknown field, missing
    field and wrong type; else with everything that `validate_spec` finds.
    """
    tree = parse_document(data, subject)
    if tree is None:
        raise InvalidSpecError(subject, [Problem("", "empty, want a CDI spec")])
    reader = _Reader()
    plain = reader.read(tree, _SPEC_TYPE, "")
    if reader.problems:
        raise InvalidSpecError(subject, reader.problems)
    spec = msgspec.convert(plain, Spec)
    require_valid(spec, subject)
    return spec


class _Reader:
    """Brings a tree into the form that msgspec converts without complaint, and collects all that is wrong with it."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def read(self, tree: Tree, wanted: inspect.Type, path: str) -> object:
        match wanted, tree:
            case inspect.UnionType(types=(inner, inspect.NoneType())), _:
                return self.read(tree, inner, path)
            case inspect.StructType(), dict():
                return self._read_struct(tree, wanted, path)
            case inspect.DictType(), dict():
                return {key: self.read(value, wanted.value_type, _join(path, key)) for key, value in tree.items()}
            case inspect.VarTupleType(), list():
                return [self.read(item, wanted.item_type, f"{path}[{index}]") for index, item in enumerate(tree)]
        return self._read_leaf(tree, wanted, path)

    def _read_leaf(self, tree: Tree, wanted: inspect.Type, path: str) -> object:
        match wanted, tree:
            case inspect.StrType(), str():
                return self._read_text(tree, path)
            case inspect.StrType(), Scalar():
                return tree.text
            case inspect.BoolType(), Scalar(value=bool()):
                return tree.value
            case inspect.IntType(), Scalar(value=int()) if not isinstance(tree.value, bool):
                return self._read_integer(tree.value, wanted, path)
        self._add(path, f"{_describe(tree)}, want {_WANTED[type(wanted)]}")
        return None

    def _read_struct(self, tree: dict[str, Tree], wanted: inspect.StructType, path: str) -> dict[str, object]:
        fields = {field.encode_name: field for field in wanted.fields}
        for key in (key for key in tree if key not in fields):
            self._add(_join(path, key), f"unknown field{_suggest(key, fields)}")
        for name, field in fields.items():
            if field.required and tree.get(name) is None:
                self._add(_join(path, name), "missing, want a value")
        return {
            name: self.read(tree[name], field.type, _join(path, name))
            for name, field in fields.items()
            if tree.get(name) is not None
        }

    def _read_text(self, text: str, path: str) -> str:
        if any("\ud800" <= character <= "\udfff" for character in text):
            self._add(path, f"{text!r} has half a surrogate pair, want text")
        return text

    def _read_integer(self, number: float, wanted: inspect.IntType, path: str) -> float:
        if (wanted.ge is not None and number < wanted.ge) or (wanted.le is not None and number > wanted.le):
            self._add(path, f"{number} is out of range, want {wanted.ge} to {wanted.le}")
        return number

    def _add(self, path: str, problem: str) -> None:
        self.problems.append(Problem(path, problem))


_WANTED: Final = {
    inspect.StructType: "an object",
    inspect.DictType: "an object",
    inspect.VarTupleType: "a list",
    inspect.StrType: "a string",
    inspect.BoolType: "true or false",
    inspect.IntType: "an integer",
}


def _describe(tree: Tree) -> str:
    match tree:
        case dict():
            return "an object"
        case list():
            return "a list"
        case None:
            return "null"
        case Scalar():
            return tree.text
        case str():
            return repr(tree)


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _suggest(key: str, known: Collection[str]) -> str:
    by_lower = {name.lower(): name for name in known}
    close = get_close_matches(key.lower(), by_lower, n=1)
    return f"; did you mean {by_lower[close[0]]!r}?" if close else f", want one of {', '.join(known)}"
