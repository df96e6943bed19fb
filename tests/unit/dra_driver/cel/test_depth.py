import json
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from dra_driver.cel import DeviceInput, compile_selector
from dra_driver.cel.depth import with_room

DEVICE = DeviceInput(driver="d", attributes={}, capacity={})
DEEP = {
    "parentheses": "(" * 249 + "true" + ")" * 249,
    "operands": " + ".join(["1"] * 250) + " == 250",
    "lists": "[" * 248 + "1" + "]" * 248 + ".size() == 1",
    "negations": "!" * 250 + "true",
    "conditions": "false ? false : " * 240 + "true",
    "loops": "[1].all(a, " * 60 + "true" + ")" * 60,
}


@pytest.mark.parametrize("expression", DEEP.values(), ids=DEEP)
def test_a_deep_expression_is_decided_and_leaves_the_limit_on_nested_calls_as_it_was(expression: str) -> None:
    before = sys.getrecursionlimit()
    selector = compile_selector(expression)
    assert selector.evaluate(DEVICE)
    assert selector.evaluate_with_cost(DEVICE)[0]
    assert sys.getrecursionlimit() == before


def test_readers_of_json_still_refuse_hostile_nesting() -> None:
    compile_selector(DEEP["parentheses"])
    with pytest.raises(RecursionError):
        json.loads("[" * 50_000)


def test_threads_that_are_deep_at_once_share_the_room() -> None:
    before = sys.getrecursionlimit()

    def dive(depth: int) -> int:
        return 0 if depth == 0 else 1 + dive(depth - 1)

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(lambda depth: with_room(lambda: dive(depth)), [before * 2] * 64)) == [before * 2] * 64
    assert sys.getrecursionlimit() == before
