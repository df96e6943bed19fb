"""What Kubernetes refuses in an expression whose types are right."""

from collections.abc import Callable
from typing import Final

from dra_driver.cel.check import Checked
from dra_driver.cel.error import Abort, CompileError, Fault, Issue, issue_at
from dra_driver.cel.library.layout import parse_layout
from dra_driver.cel.library.moment import parse_duration, parse_timestamp
from dra_driver.cel.library.standard import compile_pattern
from dra_driver.cel.tree import Call, ListNode, Literal, MapNode, Node, children
from dra_driver.cel.type import Kind, Type, is_equivalent
from dra_driver.cel.value import Value

_KINDS: Final = {
    "d": (Kind.INT, Kind.UINT),
    "f": (Kind.DOUBLE, Kind.STRING),
    "e": (Kind.DOUBLE, Kind.STRING),
    "b": (Kind.INT, Kind.UINT, Kind.BOOL),
    "x": (Kind.INT, Kind.UINT, Kind.STRING, Kind.BYTES),
    "X": (Kind.INT, Kind.UINT, Kind.STRING, Kind.BYTES),
    "o": (Kind.INT, Kind.UINT),
    "s": (
        Kind.LIST,
        Kind.MAP,
        Kind.INT,
        Kind.UINT,
        Kind.DOUBLE,
        Kind.BOOL,
        Kind.STRING,
        Kind.TIMESTAMP,
        Kind.BYTES,
        Kind.DURATION,
        Kind.TYPE,
        Kind.NULL,
    ),
}


def validate(checked: Checked) -> None:
    """Check literals: durations, timestamps, patterns, formats, and that lists and maps have elements of one type.

    Raises CompileError with all that is wrong.
    """
    issues: list[Issue] = []

    def report(node: Node, found: str, wanted: str = "") -> None:
        issues.append(issue_at(checked.expression, node.offset, found, wanted))

    pending: list[tuple[Node, bool]] = [(checked.root, False)]
    while pending:
        node, in_format = pending.pop()
        if isinstance(node, Call):
            in_format = in_format or node.function == "format"
            _check_literal(node, report)
            _check_format(node, checked, report)
        elif not in_format:
            _check_homogeneous(node, checked, report)
        pending += [(each, in_format) for each in children(node)]
    if issues:
        raise CompileError(checked.expression, tuple(sorted(issues, key=lambda issue: issue.offset)))


Report = Callable[..., None]


def _read_duration(text: Value) -> None:
    if type(text) is str:
        parse_duration(text)


def _read_timestamp(text: Value) -> None:
    if type(text) is str:
        parse_timestamp(text)


_READERS: Final[dict[str, tuple[Callable[[Value], object], str]]] = {
    "duration": (_read_duration, "want one like '1h30m'"),
    "timestamp": (_read_timestamp, "want one like '2026-01-31T12:00:00Z'"),
    "matches": (compile_pattern, "want a pattern of RE2, which has no look-around and no back-references"),
}
_NOUNS: Final = {"duration": "duration", "timestamp": "timestamp", "matches": "pattern"}


def _check_literal(node: Call, report: Report) -> None:
    if node.function not in _READERS or not node.arguments or not isinstance(node.arguments[0], Literal):
        return
    read, wanted = _READERS[node.function]
    argument = node.arguments[0]
    try:
        read(argument.value)
    except Fault as fault:
        reason = f" ({fault})" if node.function == "matches" else ""
        report(argument, f"{argument.value!r} is no {_NOUNS[node.function]}{reason}", wanted)


def _check_homogeneous(node: Node, checked: Checked, report: Report) -> None:
    if isinstance(node, ListNode):
        types = [_unwrapped(checked, each, place in node.optional) for place, each in enumerate(node.elements)]
        _check_same(node.elements, types, report)
    elif isinstance(node, MapNode):
        keys = [entry.key for entry in node.entries]
        values = [entry.value for entry in node.entries]
        _check_same(keys, [checked.types[key.id] for key in keys], report)
        _check_same(values, [_unwrapped(checked, entry.value, entry.optional) for entry in node.entries], report)


def _unwrapped(checked: Checked, node: Node, optional: bool) -> Type:  # noqa: FBT001 - internal
    type_ = checked.types[node.id]
    return type_.parameters[0] if optional else type_


def _check_same(nodes: list[Node], types: list[Type], report: Report) -> None:
    for node, type_ in zip(nodes[1:], types[1:], strict=True):
        if not is_equivalent(types[0], type_):
            report(node, f"a {type_} after a {types[0]}", "elements of a literal have one type; wrap all in dyn(…)")
            return


def _check_format(node: Call, checked: Checked, report: Report) -> None:
    """Check `"…".format([…])` where both are literals."""
    target, arguments = node.target, node.arguments
    if node.function != "format" or not isinstance(target, Literal) or len(arguments) != 1:
        return
    values = arguments[0]
    if not isinstance(values, ListNode) or type(target.value) is not str:
        return
    elements = values.elements

    def clause(place: int, letter: str, _: int | None) -> str:
        _check_clause(elements[place], letter, checked)
        return ""

    try:
        used = parse_layout(target.value, clause, len(elements))[1]
    except (Fault, Abort) as error:
        report(node, str(error))
        return
    if used < len(elements):
        report(node, f"{len(elements)} values for {used} clauses")


def _check_clause(node: Node, letter: str, checked: Checked) -> None:
    type_ = checked.types[node.id]
    if type_.kind is not Kind.DYN and type_.kind not in _KINDS[letter]:
        raise Fault(f"%{letter} does not take a {type_}")
    if letter == "s" and isinstance(node, ListNode | MapNode):
        for each in children(node):
            _check_clause(each, letter, checked)
