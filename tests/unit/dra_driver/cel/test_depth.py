import json
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from dra_driver.cel import DeviceInput, compile_selector
from dra_driver.cel.depth import LIMIT, with_room

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
def test_a_deep_expression_is_decided(expression: str) -> None:
    selector = compile_selector(expression)
    assert selector.evaluate(DEVICE)
    assert selector.evaluate_with_cost(DEVICE)[0]
    assert sys.getrecursionlimit() <= LIMIT


def test_readers_of_json_still_refuse_hostile_nesting() -> None:
    compile_selector(DEEP["parentheses"])
    with pytest.raises(RecursionError):
        json.loads("[" * 50_000)


def dive(depth: int, act: Callable[[], None] = lambda: None) -> int:
    if depth == 0:
        act()
        return 0
    return 1 + dive(depth - 1, act)


def test_threads_may_be_deep_at_once() -> None:
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(lambda depth: with_room(lambda: dive(depth)), [LIMIT // 2] * 64)) == [LIMIT // 2] * 64


def test_the_room_stays_while_a_thread_that_did_not_ask_for_it_is_deep() -> None:
    with_room(lambda: dive(LIMIT // 2))
    is_deep, may_go_on = Event(), Event()

    def wait() -> None:
        is_deep.set()
        may_go_on.wait(10)
        dive(10)

    with ThreadPoolExecutor(1) as threads:
        deep = threads.submit(dive, LIMIT // 2, wait)
        is_deep.wait(10)
        with_room(lambda: dive(LIMIT // 2))
        may_go_on.set()
        assert deep.result() == LIMIT // 2
