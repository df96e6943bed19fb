from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.api_server.options import parse_options, read_token, write_token
from sandbox.api_server.refusal import Refusal
from sandbox.api_server.store import Key

NAMES = st.from_regex(r"\A[a-z0-9]([-a-z0-9.]{0,20}[a-z0-9])?\Z")


@given(st.integers(1, 2**62), NAMES | st.just(""), NAMES)
def test_a_token_says_where_a_list_goes_on(revision: int, namespace: str, name: str) -> None:
    key = Key(namespace, name)
    assert read_token(write_token(revision, key)) == (revision, key)


@given(st.text(max_size=40))
def test_any_other_text_is_no_token(text: str) -> None:
    with suppress(Refusal):
        assert read_token(text)[0] > 0


def test_a_list_goes_on_as_of_its_begin() -> None:
    options = parse_options({"continue": write_token(7, Key("ns", "a")), "limit": "2"})
    assert (options.revision, options.start, options.is_exact, options.limit) == (7, Key("ns", "a"), True, 2)


@pytest.mark.parametrize("text", ["1", "true", "anything"])
def test_what_is_not_false_is_a_watch(text: str) -> None:
    assert parse_options({"watch": text}).is_watch


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"limit": "x"}, 400),
        ({"resourceVersion": "-1"}, 400),
        ({"resourceVersion": "9" * 30}, 400),
        ({"continue": "x", "resourceVersion": "5"}, 400),
        ({"resourceVersionMatch": "Exact"}, 422),
        ({"resourceVersionMatch": "Roughly", "resourceVersion": "1"}, 422),
        ({"sendInitialEvents": "true"}, 422),
        ({"sendInitialEvents": "true", "watch": "1"}, 422),
    ],
)
def test_options_that_make_no_sense_are_refused(query: dict[str, str], code: int) -> None:
    with pytest.raises(Refusal) as caught:
        parse_options(query)
    assert caught.value.code == code
