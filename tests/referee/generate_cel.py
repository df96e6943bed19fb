"""Random selectors, well and ill typed, over random devices."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

from tests.referee.cel_grammar import DRIVER, OTHER_DOMAIN, read_grammar
from tests.referee.expression import Tree, render
from tests.referee.process import Question

_PLACEHOLDER = re.compile(r"\{([a-z]+)(\|[^}]*)?\}")
_OPERATOR = re.compile(r"[!-]?\{[a-z@]+\}( [^ ]+ \{|$)")
_PRODUCTIONS = read_grammar()
_LEAVES = {
    kind: tuple(row for row in rows if not _PLACEHOLDER.search(row)) or ("1",) for kind, rows in _PRODUCTIONS.items()
}
# One expression a line; ¶ is a line break.
_EDGES = tuple(
    line.replace("¶", "\n")
    for line in (Path(__file__).parent / "cel_edge.txt").read_text(encoding="utf-8").removesuffix("\n").split("\n")
)
_KINDS = tuple(_PRODUCTIONS)
# One part in so many has a random type.
_MISTAKE = 40
_DERIVED = 1 / 12
_TOKENS = (*"()[]{},.?:!-'\"\\ x0`\n", "==", "&&", "in", "//")
_TYPOS = (("attributes", "atributes"), ("device", "devices"), ("size", "length"), ("exists", "any"), ("model", "Model"))
_DEEP = (
    *("({})", "[{}]", "!{}", "-{}", "{}.trim()", "1+{}", "{}*1", "true&&{}"),
    *("true?{}:false", "{}||false", "[{}][0]", "{}==1"),
)


def cel_question(random: Random) -> Question:
    """Draw a question; about one in three does not compile, one in twelve is about a derived attribute."""
    return cel_problem(random)[1]


def cel_problem(random: Random) -> tuple[Tree, Question]:
    """Draw an expression and a question about it."""
    is_derived = random.random() < _DERIVED
    tree = _derived_expression(random) if is_derived else expression(random)
    question = question_of(random, tree)
    return tree, {**question, "derived": True} if is_derived else question


def expression(random: Random) -> Tree:
    """Draw an expression that is meant to be a bool."""
    roll = random.random()
    if roll < 0.01:
        return (_deep(random),)
    if roll < 0.03:
        return (random.choice(_EDGES),)
    tree = _grow(random, "bool")
    return (_spoil(random, render(tree)),) if roll < 0.08 else tree


def _derived_expression(random: Random) -> Tree:
    """Draw an expression that is meant to be the value of an attribute."""
    return _grow(random, random.choice(("bool", "int", "str", "sem", "li", "ls", "lb", "lsem", "dyn", "ld")))


def _grow(random: Random, kind: str) -> Tree:
    return _Growth(random).grow(kind, random.choice((1, 2, 2, 3, 3, 4)), {})


def edge_questions() -> Iterator[Question]:
    """Give the expressions of `cel_edge.txt`, each in the allocator's environment and in that of the API server."""
    for text in _EDGES:
        for stored in (True, False):
            yield {"op": "cel", "expr": text, "driver": DRIVER, "devices": _PLAIN, "stored": stored}


def question_of(random: Random, tree: Tree) -> Question:
    """Draw devices and an environment for an expression."""
    has_lists = random.random() < 0.5
    question: dict[str, Any] = {"op": "cel", "expr": render(tree), "driver": DRIVER}
    question["devices"] = [_device(random, index, has_lists=has_lists) for index in range(random.randint(1, 3))]
    for name, probability in (("stored", 0.6), ("lists", 0.4), ("exclusive", 0.15)):
        if random.random() < probability:
            question[name] = True
    return question


class _Growth:
    """Makes one expression; variables get names of their own."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._count = 0

    def grow(self, kind: str, depth: int, scope: Mapping[str, str]) -> Tree:
        random = self._random
        if random.randrange(_MISTAKE) == 0:
            kind = random.choice(_KINDS)
        names = [name for name, its_kind in scope.items() if its_kind == kind]
        if names and random.random() < 0.5:
            return (random.choice(names),)
        template = random.choice(_PRODUCTIONS[kind] if depth > 0 else _LEAVES[kind])
        return self._fill(template, depth - 1, scope)

    def _fill(self, template: str, depth: int, scope: Mapping[str, str]) -> Tree:
        is_operator = _OPERATOR.match(template) is not None or " ? " in template
        renamed = {mark: self._name() for mark in ("$x", "$y") if mark in template}
        for mark, name in renamed.items():
            template = template.replace(mark, name)
        parts: list[str | Tree] = []
        end = 0
        for match in _PLACEHOLDER.finditer(template):
            bound = dict(pair.split(":") for pair in (match[2] or "|")[1:].split(",") if pair)
            parts += [template[end : match.start()], self.grow(match[1], depth, {**scope, **bound})]
            end = match.end()
        parts.append(template[end:])
        return ("(", *parts, ")") if is_operator and self._random.random() < 0.85 else tuple(parts)

    def _name(self) -> str:
        self._count += 1
        return f"x{self._count}"


def _spoil(random: Random, text: str) -> str:
    roll = random.random()
    if roll < 0.3:
        return text.replace(*random.choice(_TYPOS))
    place = random.randint(0, len(text))
    return text[:place] + (random.choice(_TOKENS) if roll < 0.7 else "") + text[place + random.randint(0, 2) :]


def _deep(random: Random) -> str:
    wrap = random.choice(_DEEP)
    before, after = wrap.split("{}")
    depth = random.choice((5, 30, 31, 32, 33, 60, *range(245, 256)))
    core = '"a"' if "trim" in wrap else random.choice(("1", "true"))
    text = before * depth + core + after * depth
    return text if random.random() < 0.5 else f"dyn({text}) == dyn({core})"


def _device(random: Random, index: int, *, has_lists: bool) -> dict[str, Any]:
    attributes: dict[str, Any] = {}
    for name, values in (_ATTRIBUTES | _LIST_ATTRIBUTES if has_lists else _ATTRIBUTES).items():
        # An attribute with the driver's domain and one without are the same one, and either may win.
        own = "" if random.random() < 0.9 else f"{DRIVER}/"
        for prefix, probability in ((own, 0.6), (f"{OTHER_DOMAIN}/", 0.15)):
            if random.random() < probability:
                attributes[prefix + name] = random.choice(values)
    capacity = {
        name: {"value": random.choice(_AMOUNTS)} for name in ("memory", "cores", "slots") if random.random() < 0.7
    }
    device: dict[str, Any] = {"name": f"gpu-{index}", "attributes": attributes, "capacity": capacity}
    if random.random() < 0.3:
        device["allowMultipleAllocations"] = random.random() < 0.7
    return device


_ATTRIBUTES: dict[str, tuple[dict[str, Any], ...]] = {
    "model": ({"string": "H100"}, {"string": "A100"}, {"string": "ab"}, {"string": ""}, {"string": "é𝄞"}, {"int": 100}),
    "index": ({"int": 0}, {"int": 1}, {"int": 7}, {"int": -3}, {"int": 2**63 - 1}, {"string": "1"}),
    "healthy": ({"bool": True}, {"bool": False}, {"bool": True}, {"bool": False}, {"string": "true"}),
    "version": (
        *({"version": text} for text in ("1.2.3", "535.104.5", "1.2.3-rc.1", "1.0.0+b1", "1.2.3", "1.0.0") * 5),
        *({"string": "1.2.3"}, {"string": "1.2.3"}, {"version": "1.2"}, {}),
    ),
}
_LIST_ATTRIBUTES: dict[str, tuple[dict[str, Any], ...]] = {
    "zones": ({"strings": ["a"]}, {"strings": ["a", "b", "H100"]}, {"string": "a"}),
    "numa": ({"ints": [0, 1]}, {"ints": [3]}, {"ints": [2, 2, 1]}, {"int": 1}),
    "flags": ({"bools": [True]}, {"bools": [True, False]}, {"versions": ["1.2.3", "1.0.0"]}),
}
_AMOUNTS = ("80Gi", "40Gi", "0", "1", "100", "1500m", "-1", "16777216Ki", "100000Gi", "1e3", "12345678901234567890")
# A device that has what the edge cases ask for, and one that has nothing.
_PLAIN: list[dict[str, Any]] = [
    {
        "name": "full",
        "attributes": {
            "model": {"string": "H100"},
            "index": {"int": 0},
            "healthy": {"bool": True},
            "version": {"version": "1.2.3"},
            "zones": {"strings": ["a", "b"]},
            "numa": {"ints": [0, 1]},
            "flags": {"bools": [True, False]},
            f"{OTHER_DOMAIN}/model": {"string": "other"},
        },
        "capacity": {"memory": {"value": "80Gi"}, "cores": {"value": "100"}},
        "allowMultipleAllocations": True,
    },
    {"name": "empty"},
]
