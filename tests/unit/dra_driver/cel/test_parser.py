from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_driver.cel import CompileError, compile_selector
from dra_driver.cel.parser import parse
from dra_driver.cel.tree import Literal, walk
from dra_driver.cel.value import Uint


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-9223372036854775808", -(2**63)),
        ("0x1F", 31),
        ("18446744073709551615u", Uint(2**64 - 1)),
        ("-.5e1", -5.0),
        (r'"\a\x41\u00e9\U0001F600\101\`\?"', "\aAé😀A`?"),
        (r"r'\n'", r"\n"),
        ("'''a\r\nb\rc'''", "a\nb\nc"),
        (r'b"\xff\377é"', b"\xff\xff\xc3\xa9"),
        (r'bR"\x"', rb"\x"),
        ("null", None),
    ],
)
def test_a_literal_has_the_value_that_the_language_gives_it(text: str, value: object) -> None:
    node = parse(text)

    assert isinstance(node, Literal)
    assert node.value == value
    assert type(node.value) is type(value)


@pytest.mark.parametrize(
    "text",
    [
        "[1, 2,]",
        "{1: 2,}",
        "[,]",
        "a.`b-c/d e.f`",
        "a.?b[?c].d",
        "[?a, b]",
        "{?a: b}",
        "a ? b : c ? d : e",
        ".a.b",
        "!!!a",
        "---1",
        "a.for",
        "// comment\n1",
        "a in b",
        "1 - -1",
    ],
)
def test_syntax_of_kubernetes_is_accepted(text: str) -> None:
    parse(text)


@pytest.mark.parametrize(
    ("text", "offset", "words"),
    [
        ("", 0, "unexpected end"),
        ("1 +", 3, "unexpected end"),
        ("f(1,)", 4, "unexpected ')'"),
        ("a & b", 2, "want '&&'"),
        ("a = b", 2, "want '=='"),
        ("for", 0, "reserved word"),
        ("a.in", 2, "reserved word"),
        ('"a', 0, "without an end"),
        (r'"\q"', 0, "unknown escape"),
        (r'"\ud800"', 0, "no Unicode code point"),
        (r'b"\u0041"', 0, "stands in bytes"),
        ("9223372036854775808", 0, "does not fit an int"),
        ("1e999", 0, "does not fit a double"),
        ("a ? b ? c : d : e", 6, "want ':'"),
        ("has(a)", 4, "has() takes the selection"),
        ("[1].all(1, true)", 8, "simple name"),
        ("[1].all(x, x, true)", 11, "stands twice"),
        ("`a`", 0, "want an expression"),
        ("\ud800", 0, "not Unicode"),
        ("a # b", 2, "want '//' before a comment"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text: str, offset: int, words: str) -> None:
    with pytest.raises(CompileError) as caught:
        parse(text)

    assert caught.value.issues[0].offset == offset
    assert words in str(caught.value)


def test_lines_and_columns_are_those_of_the_text() -> None:
    with pytest.raises(CompileError, match="line 2 column 5: unexpected end"):
        parse("1 +\n 2 +")


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("({})", 249),
        ("[{}]", 249),
        ("(1+{})", 124),
        ("1 + {}", 251),
        ("true ? true : {}", 249),
    ],
)
def test_nesting_ends_where_it_does_in_kubernetes(text: str, most: int) -> None:
    def nested(depth: int) -> str:
        before, after = text.split("{}")
        if after:
            return before * depth + "1" + after * depth
        return before * (depth - 1) + "1"

    parse(nested(most))
    with pytest.raises(CompileError, match="more than 250"):
        parse(nested(most + 1 + (text == "true ? true : {}")))


_HOSTILE = ["(" * 9000, "[" * 9000, "-" * 9999 + "1", '"' * 9000, "a." * 4000, "?" * 9000, "f(" * 4000]


@pytest.mark.parametrize("text", _HOSTILE, ids=[text[:2] for text in _HOSTILE])
def test_no_text_makes_the_parser_crash(text: str) -> None:
    with suppress(CompileError):
        parse(text)


@given(st.text(alphabet="ab1.?:()[]{}+-*/%<>=!&|,'\"\\`rux \n", max_size=40))
def test_any_text_is_a_tree_or_a_refusal(text: str) -> None:
    with suppress(CompileError):
        numbers = [each.id for each in walk(parse(text))]
        assert len(numbers) == len(set(numbers))


@pytest.mark.parametrize("operator", [" < ", " != ", " in ", " + ", " % "])
def test_long_chains_of_operators_compile(operator: str) -> None:
    with suppress(CompileError):
        compile_selector(operator.join(["dyn(1)"] * 240))
