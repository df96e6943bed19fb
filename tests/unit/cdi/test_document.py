import pytest

from cdi import InvalidSpecError
from cdi.document import Scalar, parse_document


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("0644", Scalar(420, "0644"), id="octal as in YAML 1.1"),
        pytest.param("0o644", Scalar(420, "0o644"), id="octal as in YAML 1.2"),
        pytest.param("'0o644'", "0o644", id="quoted octal is text"),
        pytest.param("1.0", Scalar(1.0, "1.0"), id="float"),
        pytest.param("yes", Scalar(value=True, text="yes"), id="truth value"),
        pytest.param("~", None, id="null"),
        pytest.param("", None, id="nothing"),
        pytest.param("2026-01-01", "2026-01-01", id="date is text"),
        pytest.param("1:20", "1:20", id="base 60 is text"),
        pytest.param("=", "=", id="equals sign is text"),
        pytest.param("!!int foo", "foo", id="no number after all"),
    ],
)
def test_yaml_scalars_keep_their_text(text: str, value: object) -> None:
    assert parse_document(f"a: {text}".encode(), "spec") == {"a": value}


def test_json_scalars_keep_their_text() -> None:
    assert parse_document(b'{"a": [1.50, 07e1, true, null]}'.replace(b"07e1", b"7e1"), "spec") == {
        "a": [Scalar(1.5, "1.50"), Scalar(70.0, "7e1"), Scalar(value=True, text="true"), None]
    }


def test_json_that_only_yaml_allows_is_read() -> None:
    assert parse_document(b"{a: b, # note\n c: [d,],}", "spec") == {"a": "b", "c": ["d"]}


@pytest.mark.parametrize("text", ["\x7f", "\x81", "\uffff", r"\ud83d\ude00"])
def test_json_that_a_runtime_refuses_since_it_is_not_yaml_is_refused(text: str) -> None:
    with pytest.raises(InvalidSpecError):
        parse_document(f'{{"a": "{text}"}}'.encode(), "spec")


def test_a_line_break_of_unicode_in_json_is_read_as_in_yaml() -> None:
    assert parse_document('{"a": "b\x85c"}'.encode(), "spec") == {"a": "b c"}


def test_a_byte_order_mark_is_skipped() -> None:
    assert parse_document(b'\xef\xbb\xbf{"a": "b"}', "spec") == {"a": "b"}


def test_yaml_aliases_and_merges_are_resolved() -> None:
    text = b"x: &x {a: b}\ny: &y {a: c, d: e}\nz: {<<: [*x, *y], f: g}\nw: {<<: *y, a: own}\nv: *x"
    assert parse_document(text, "spec") == {
        "x": {"a": "b"},
        "y": {"a": "c", "d": "e"},
        "z": {"a": "b", "d": "e", "f": "g"},
        "w": {"a": "own", "d": "e"},
        "v": {"a": "b"},
    }


def test_aliases_of_aliases_do_not_explode() -> None:
    lines = ["a0: &a0 [x, x]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 40)]
    assert parse_document("\n".join(lines).encode(), "spec")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        pytest.param(b"a: \xff", "byte 3 is not UTF-8, want JSON or YAML", id="not UTF-8"),
        pytest.param(b'{\n"a": [}', "line 2 column 7 is not JSON: expecting value", id="not JSON"),
        pytest.param(b'{"a": 1', "line 1 column 8 is not JSON: expecting ',' delimiter", id="half a file"),
        pytest.param(b"a: [", "line 2 column 1 is not YAML: did not find expected node content", id="not YAML"),
        pytest.param(b"a: \x07", "character 3 is not YAML: control characters are not allowed", id="control character"),
        pytest.param(b"a: 1\n---\nb: 2", "line 2 column 1 is not YAML: but found another document", id="two documents"),
        pytest.param(b"a: 1\nb: 2\na: 3", "line 3 repeats the field 'a', want it once", id="field twice in YAML"),
        pytest.param(b'{"a": {"b": 1, "b": 1}}', "field 'b' stands twice in one object, want it once", id="in JSON"),
        pytest.param(b"[a]: b", "line 1 has an object or a list as a key, want a string", id="key is a list"),
        pytest.param(b"a: &a [*a]", "line 1 nests too deep, want a CDI spec", id="endless"),
        pytest.param(b"<<: b", "line 1 merges what is no object, want one", id="merge of text"),
        pytest.param(b"a: !x b", "line 1 has the tag '!x', want a plain value", id="tag"),
        pytest.param(b'{"a":' * 9999, "objects nest too deep, want a CDI spec", id="deep JSON"),
        pytest.param(b"[" * 9999, "line 1 column 1001 is not YAML: exceeded maximum nesting depth", id="deep YAML"),
    ],
)
def test_what_is_not_well_formed_is_refused_with_its_place(data: bytes, problem: str) -> None:
    with pytest.raises(InvalidSpecError) as caught:
        parse_document(data, "file.json")
    assert str(caught.value) == f"file.json: {problem}"
