"""JSON for people."""

import json

from hypothesis import given
from hypothesis import strategies as st

from kubectl_dra.demo.format import format_json

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
)


@given(JSON)
def test_what_is_written_is_the_same_value(value: object) -> None:
    assert json.loads(format_json(value)) == value


def test_what_fits_on_a_line_stands_on_one() -> None:
    value = {"name": "x" * 60, "small": {"a": 1, "b": [2, 3]}, "long": ["y" * 50, "z" * 50]}
    assert format_json(value).splitlines() == [
        "{",
        f'  "name": "{"x" * 60}",',
        '  "small": {"a": 1, "b": [2, 3]},',
        '  "long": [',
        f'    "{"y" * 50}",',
        f'    "{"z" * 50}"',
        "  ]",
        "}",
    ]
