"""Label and field selectors, parsed once for a list or watch and asked for each object."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from dra_driver.api.name import validate_label_key, validate_label_value
from sandbox.api_server.kind import Kind, Object
from sandbox.api_server.refusal import Refusal, bad_request

Matches = Callable[[Object], bool]

_TOKEN: Final = re.compile(r"\s*(==|!=|[=,()!<>]|[^\s=,()!<>]+)")
_OPERATORS: Final = ("=", "==", "!=", "in", "notin", ">", "<")


def parse_selectors(kind: Kind, labels: str, fields: str) -> Matches | None:
    """Make a predicate of both selectors; None if every object is selected. Raises Refusal."""
    label_terms = tuple(parse_labels(labels))
    field_terms = tuple(parse_fields(kind, fields))
    if not label_terms and not field_terms:
        return None

    def matches(value: Object) -> bool:
        of_labels = value["metadata"].get("labels") or {}
        return all(term.holds(of_labels.get(term.key)) for term in label_terms) and all(
            (field_value(value, path) == wanted) is equal for path, equal, wanted in field_terms
        )

    return matches


@dataclass(frozen=True, slots=True)
class Term:
    """One requirement of a label selector."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def holds(self, value: str | None) -> bool:
        """Tell whether a label with this value (None: no such label) meets it."""
        match self.operator:
            case "exists":
                return value is not None
            case "!":
                return value is None
            case "=" | "==" | "in":
                return value in self.values
            case "!=" | "notin":
                return value not in self.values
            case ">" | "<":
                return value is not None and _compare(value, self.operator, next(iter(self.values)))
        return False


def _compare(value: str, operator: str, bound: str) -> bool:
    try:
        return int(value) > int(bound) if operator == ">" else int(value) < int(bound)
    except ValueError:
        return False


class _Parser:
    """Reads a label selector, token by token."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _TOKEN.findall(text.rstrip())
        self._at = 0

    def terms(self) -> Iterator[Term]:
        while self._peek():
            yield self._term()
            if self._peek():
                self._expect(",")
                if not self._peek():
                    raise self._problem("found '', expected: identifier after ','")

    def _term(self) -> Term:
        if self._peek() == "!":
            self._next()
            return Term(self._key(), "!")
        key = self._key()
        operator = self._peek()
        if operator in ("", ","):
            return Term(key, "exists")
        if operator not in _OPERATORS:
            raise self._problem(f"found '{operator}', expected: in, notin, =, ==, !=, gt, lt")
        self._next()
        values = self._set() if operator in ("in", "notin") else frozenset((self._value(),))
        if operator in (">", "<"):
            self._check_number(next(iter(values)))
        for value in values:
            if problems := validate_label_value(value):
                raise self._problem(f"values[0][{key}]: Invalid value: {problems[0]}")
        return Term(key, operator, values)

    def _key(self) -> str:
        key = self._next()
        if not key or key in ("=", "==", "!=", ",", "(", ")", "!", "<", ">"):
            raise self._problem(f"found '{key}', expected: identifier")
        if problems := validate_label_key(key):
            raise self._problem(f"key: Invalid value: {problems[0]}")
        return key

    def _value(self) -> str:
        return "" if self._peek() in ("", ",", ")") else self._next()

    def _set(self) -> frozenset[str]:
        self._expect("(")
        values = [self._value()]
        while self._peek() == ",":
            self._next()
            values.append(self._value())
        self._expect(")")
        return frozenset(values)

    def _check_number(self, value: str) -> None:
        if not re.fullmatch(r"[+-]?[0-9]+", value):
            raise self._problem(f"for 'Gt', 'Lt' operators, the value must be an integer, not '{value}'")

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        self._at += 1
        return token

    def _expect(self, token: str) -> None:
        if self._next() != token:
            raise self._problem(f"found '{self._tokens[self._at - 1] if self._at <= len(self._tokens) else ''}', "
                                f"expected: '{token}'")  # fmt: skip

    def _problem(self, problem: str) -> Refusal:
        return bad_request(f"unable to parse requirement: {problem}")


def parse_labels(text: str) -> Iterator[Term]:
    """Give the requirements of a label selector. Raises Refusal."""
    return _Parser(text).terms()


def parse_fields(kind: Kind, text: str) -> Iterator[tuple[str, bool, str]]:
    """Give path, whether it must be equal, and value of each requirement of a field selector. Raises Refusal."""
    for term in _split_fields(text):
        path, operator, value = _split_term(term)
        if not operator:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{term}'")
        known = ("metadata.name", *(("metadata.namespace",) if kind.namespaced else ()), *kind.fields)
        if path not in known:
            raise bad_request(f"field label not supported: {path}")
        yield path, operator != "!=", value


def _split_fields(text: str) -> Iterator[str]:
    """Split at commas that are not escaped by a backslash."""
    start, escaped = 0, False
    for at, character in enumerate(text):
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif character == ",":
            yield from filter(None, [text[start:at]])
            start = at + 1
    yield from filter(None, [text[start:]])


def _split_term(term: str) -> tuple[str, str, str]:
    found = re.match(r"^(.*?)(!=|==|=)(.*)$", term, re.DOTALL)
    return (found[1], found[2], re.sub(r"\\(.)", r"\1", found[3])) if found else (term, "", "")


def field_value(value: Object, path: str) -> str:
    """Give the value of a selectable field, as text."""
    found: Any = value
    for part in path.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    if path in ("source", "reportingComponent"):
        found = (value.get("source") or {}).get("component") or value.get("reportingComponent")
    if found is None and path in ("spec.unschedulable", "spec.hostNetwork"):
        found = False
    if isinstance(found, bool):
        return "true" if found else "false"
    return "" if found is None else str(found)
