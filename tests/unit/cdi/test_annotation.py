import pytest

from cdi.annotation import validate_annotations


@pytest.mark.parametrize(
    "key", ["a", "Model.Name_1-x", "example.com/model", "EXAMPLE.com/Model", f"{'p' * 253}/{'n' * 63}"]
)
def test_a_key_may_be(key: str) -> None:
    assert validate_annotations({key: "any value, also\nseveral lines"}) == ()


@pytest.mark.parametrize(
    ("key", "part"),
    [
        pytest.param("", "the name ''", id="empty"),
        pytest.param("-a", "the name '-a'", id="mark first"),
        pytest.param("a_", "the name 'a_'", id="mark last"),
        pytest.param("a b", "the name 'a b'", id="space"),
        pytest.param("n" * 64, "up to 63", id="name too long"),
        pytest.param("/a", "the prefix ''", id="prefix empty"),
        pytest.param("a_b/c", "the prefix 'a_b'", id="prefix no domain"),
        pytest.param("a/b/c", "the prefix 'a/b'", id="two slashes"),
        pytest.param(f"{'p' * 254}/a", "up to 253", id="prefix too long"),
        pytest.param("a/", "the name ''", id="name empty after prefix"),
    ],
)
def test_a_key_may_not_be(key: str, part: str) -> None:
    (problem,) = validate_annotations({key: ""})
    assert part in problem


def test_all_together_may_have_256_kib() -> None:
    assert validate_annotations({"a": "x" * (256 * 1024 - 1)}) == ()
    assert validate_annotations({"a": "ö" * (128 * 1024)}) == ("262145 bytes of keys and values, want at most 262144",)


def test_every_problem_is_reported() -> None:
    assert len(validate_annotations({"-": "", "_/a": "", "ok": "x" * 300_000})) == 3
