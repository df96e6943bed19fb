"""What expressions the generator makes: for each type, templates of expressions that have it.

They stand in `cel_grammar.txt`, one a line below the type's name; ¶ is a line break.
`{int}` is an expression of type int; `{bool|$x:int}` one that may use the variable that the template binds as `$x`.
Braces around anything else are CEL's. Alternatives that are more likely stand more than once. A template without
such parts is a leaf.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

DRIVER = "gpu.example.com"
OTHER_DOMAIN = "other.example.com"

_COMPARED = ["int", "uint", "dbl", "str", "qty", "sem", "dur", "time", "bool", "byt"]
_NUMBERS = ("int", "uint", "dbl")
_TIME_PARTS = (
    *("getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek"),
    *("getDayOfYear", "getHours", "getMinutes", "getSeconds", "getMilliseconds"),
)
_EQUAL = [
    *_COMPARED,
    *["ip", "cidr", "url", "li", "ls", "lb", "ll", "lq", "lu", "lf", "ldur", "ltime", "lby", "lrec"],
    *["msi", "mis", "mk", "oi", "os", "dyn", "typ", "null", "rec", "fmt"],
]
_LISTS = {
    "li": "int",
    "ls": "str",
    "lb": "bool",
    "ld": "dyn",
    "ll": "li",
    "lq": "qty",
    "lsem": "sem",
    "lu": "uint",
    "lf": "dbl",
    "ldur": "dur",
    "ltime": "time",
    "lby": "byt",
    "lrec": "rec",
    "lip": "ip",
}
# Those whose items have an order, and those that can be added up.
_SORTABLE = ("li", "lu", "lf", "ls", "lb", "lby", "ldur", "ltime", "lsem", "lq", "lip")
_SUMMABLE = ("li", "lu", "lf", "ldur")

# `@` is a type of lists, `#` the type of its items.
_LIST_TESTS = (
    "{#} in {@}",
    "{@}.all($x, {bool|$x:#})",
    "{@}.exists($x, {bool|$x:#})",
    "{@}.exists_one($x, {bool|$x:#})",
)
_LIST_OPERATIONS = (
    "[]",
    "{@} + {@}",
    "{bool} ? {@} : {@}",
    "{@}.filter($x, {bool|$x:#})",
    "{@}.map($x, {#|$x:#})",
    "{@}.map($x, {bool|$x:#}, {#|$x:#})",
    "{@}.transformList($x, $y, {#|$x:int,$y:#})",
    "{@}.transformList($x, $y, {bool|$x:int,$y:#}, {#|$x:int,$y:#})",
    "{@}.slice({int}, {int})",
    "{@}.reverse()",
    "{@}.distinct()",
    "[{#}]",
    "[{#}, {#}]",
    "[{#}, {#}, {#},]",
)


def read_grammar() -> Mapping[str, tuple[str, ...]]:
    """Read the templates of each type."""
    rows: dict[str, list[str]] = {}
    kind = ""
    for line in Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("= "):
            kind = line.removeprefix("= ")
            rows[kind] = []
        elif line:
            rows[kind].append(line.replace("¶", "\n"))
    rows["bool"] += _comparisons()
    for name, item in _LISTS.items():
        rows["bool"] += (row.replace("@", name).replace("#", item) for row in _LIST_TESTS)
        rows[name] += (row.replace("@", name).replace("#", item) for row in _LIST_OPERATIONS)
    for name in _SORTABLE:
        item = _LISTS[name]
        rows["bool"].append(f"{{{name}}}.isSorted()")
        rows[item] += (f"{{{name}}}.min()", f"{{{name}}}.max()")
        rows[name] += (f"{{{name}}}.sort()", f"{{li}}.sortBy($x, {{{item}|$x:int}}).map($x, {{{item}|$x:int}})")
    for name in _SUMMABLE:
        rows[_LISTS[name]].append(f"{{{name}}}.sum()")
    rows["int"] += (f"{{time}}.{part}({zone})" for part in _TIME_PARTS for zone in ("", "{zone}"))
    return {kind: tuple(templates) for kind, templates in rows.items()}


def _comparisons() -> Iterator[str]:
    for kind in _EQUAL:
        yield f"{{{kind}}} == {{{kind}}}"
        yield f"{{{kind}}} != {{{kind}}}"
    for left in _NUMBERS:
        for right in _NUMBERS:
            for operator in ("<", "<=", ">", ">=", "=="):
                if left != right:
                    yield f"{{{left}}} {operator} {{{right}}}"
                    yield f"dyn({{{left}}}) {operator} {{{right}}}"
    for kind in _COMPARED:
        for operator in ("<", "<=", ">", ">="):
            yield f"{{{kind}}} {operator} {{{kind}}}"
