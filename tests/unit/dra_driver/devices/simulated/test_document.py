import msgspec
import pytest

from dra_driver.devices.model import DeviceType
from dra_driver.devices.simulated.document import decode_document, parse_document
from dra_driver.errors import InvalidError


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    size: int
    label: str = ""


class Outer(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    type: DeviceType
    full_name: str | None = None
    items: tuple[Inner, ...] = ()
    counters: dict[str, int] = {}
    added: int | tuple[Inner, ...] = 0


def decode(text: str) -> Outer:
    return decode_document(parse_document(text, "file"), Outer)


def problems(text: str) -> list[str]:
    with pytest.raises(InvalidError) as caught:
        decode(text)
    assert caught.value.subject == "file"
    return [str(error) for error in caught.value.errors]


def test_a_document_becomes_a_struct() -> None:
    outer = decode("type: gpu\nfullName: x\nitems: [{size: 1}]\ncounters: {a: 2}\nadded: [{size: 3}]")
    assert outer == Outer(DeviceType.GPU, "x", (Inner(1),), {"a": 2}, (Inner(3),))


def test_every_mistake_is_told_at_once_with_its_line() -> None:
    text = "type: gpu\nfulName: x\nitems:\n  - size: many\n  - lable: a\ncounters:\n  a: 1.5\n"
    assert problems(text) == [
        "fulName: unknown field; did you mean 'fullName'? (line 2)",
        "items[0].size: got 'many', want a whole number (line 4)",
        "items[1].lable: unknown field; did you mean 'label'? (line 5)",
        "items[1]: field 'size' is missing (line 5)",
        "counters.a: got 1.5, want a whole number (line 7)",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(
            "type: gqu",
            "type: unknown value 'gqu', want 'gpu' or 'npu'; did you mean 'gpu'? (line 1)",
            id="enum",
        ),
        pytest.param("{}", "field 'type' is missing (line 1)", id="missing"),
        pytest.param(
            "type: gpu\nfullName: 9.0", "fullName: got 9.0, want text; put it in quotes (line 2)", id="number"
        ),
        pytest.param(
            "type: gpu\nadded: {}", "added: got a mapping, want a whole number or a list (line 2)", id="union"
        ),
        pytest.param("type: gpu\nitems: 3", "items: got 3, want a list (line 2)", id="list"),
        pytest.param("- 1", "got a list, want a mapping (line 1)", id="root"),
        pytest.param("", "got nothing, want a mapping", id="empty"),
        pytest.param("type: gpu\ntype: npu", "type: stands here twice (line 2)", id="repeated key"),
    ],
)
def test_a_mistake_says_what_was_wanted(text: str, problem: str) -> None:
    assert problems(text) == [problem]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("a: [1\nb: 2", "line 2, column 2: malformed YAML, expected ',' or ']', but got ':'", id="bracket"),
        pytest.param("a: *b", "line 1, column 4: malformed YAML, found undefined alias 'b'", id="alias"),
        pytest.param("a: !!python/object:os.system x", "malformed YAML", id="tag"),
        pytest.param("a: \x07", "malformed YAML", id="control character"),
        pytest.param("a: 2026-13-45", "malformed YAML", id="impossible date"),
        pytest.param("{[1]: 2}", "malformed YAML", id="list as key"),
        pytest.param("a: 1\n---\nb: 2", "malformed YAML", id="two documents"),
    ],
)
def test_malformed_yaml_is_refused_with_its_place(text: str, problem: str) -> None:
    (found,) = problems(text)
    assert problem in found
    assert "\n" not in found


def test_a_document_that_holds_itself_is_refused() -> None:
    assert problems("&a {type: gpu, items: [*a]}") != []


@pytest.mark.parametrize("text", ["type: !!bool x", "type: !!timestamp x", "type: !!int x", "type: !!binary x"])
def test_a_value_that_is_not_what_its_tag_says_is_malformed(text: str) -> None:
    (problem,) = problems(text)
    assert "malformed YAML, " in problem


@pytest.mark.parametrize("key", ["null", "1", "1.5", "true", "2001-01-01"])
def test_a_key_of_another_type_is_named(key: str) -> None:
    (problem,) = problems(f"type: gpu\ncounters: {{{key}: 1}}")
    assert problem.startswith("counters.")
    assert "want text" in problem


def test_aliases_of_aliases_are_looked_at_once() -> None:
    lines = ["a: &l0 [x]", *(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 30))]
    assert "a: unknown field (line 1)" in problems("\n".join(lines))


def test_a_document_that_nobody_wrote_by_hand_is_refused_at_once() -> None:
    assert problems("#" * 70_000) == ["70000 characters, want at most 65536"]
