"""Our side of the referee's protocol."""

import json

from tests.referee.ours import answer_lines


def answers(*lines: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in answer_lines(lines)]


def test_lines_are_answered_in_order() -> None:
    first, second = answers('{"op": "quantity", "text": "1.5Gi"}\n', '{"op": "quantity", "text": "x"}\n')
    numbers = {"value": 1610612736, "milli": 1610612736000, "int": 0, "exact": False, "sign": 1}
    assert first == {"canonical": "1536Mi", **numbers}
    assert set(second) == {"error"}


def test_a_line_that_cannot_be_read_is_a_bad_question() -> None:
    for answer in answers("{", "3", '{"op": "nonsense"}', "{}"):
        assert set(answer) == {"badQuestion"}


def test_a_defect_is_an_answer() -> None:
    assert answers('{"op": "quantity"}', '{"op": "quantity", "text": "1"}')[0] == {"panic": "KeyError: 'text'"}
